"""Collectives by hand on one and two levels, and the laws they obey."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from meshwright.cost.collectives import Collective, Network

from ..strategies import flat_level  # noqa: TID252 - importlib mode

V = 1e9
HALVES = [Collective.ALL_GATHER, Collective.REDUCE_SCATTER]


def seconds(network, kind, volume, *members):
    return float(network.time(kind, np.array([volume]), np.array([members]))[0])


@pytest.mark.parametrize("n", [2, 4, 8])
def test_one_level_without_latency(n):
    network = Network((flat_level(8, bandwidth=100e9),), launch_s=0.0)
    for kind in HALVES:
        assert seconds(network, kind, V, n) == pytest.approx(V * (n - 1) / n / 100e9)
    ring = 2 * V * (n - 1) / n / 100e9
    assert seconds(network, Collective.ALL_REDUCE, V, n) == pytest.approx(ring)
    # V is what one rank holds; it keeps 1/n of it.
    exchange = V * (n - 1) / n / 100e9
    assert seconds(network, Collective.ALL_TO_ALL, V, n) == pytest.approx(exchange)


def test_nobody_to_talk_to_costs_nothing_not_even_a_launch():
    network = Network((flat_level(8, latency_s=1e-6),), launch_s=1e-5)
    for kind in Collective:
        assert seconds(network, kind, V, 1) == 0.0


def test_latency_of_an_empty_message():
    # Ring of 8: 7 hops, twice for an all-reduce, whose tree needs 2 x 3.
    network = Network((flat_level(8, latency_s=1e-6),), launch_s=1e-5)
    for kind in HALVES:
        assert seconds(network, kind, 0.0, 8) == pytest.approx(1e-5 + 7e-6)
    assert seconds(network, Collective.ALL_REDUCE, 0.0, 8) == pytest.approx(1e-5 + 6e-6)
    assert seconds(network, Collective.ALL_TO_ALL, 0.0, 8) == pytest.approx(1e-5 + 3e-6)


def test_ramp_by_hand():
    # x + 2 sqrt(ramp x), x = 7/8 V / B.
    network = Network((flat_level(8, bandwidth=100e9, ramp_s=2e-6),), launch_s=0.0)
    x = 7 / 8 * V / 100e9
    expected = x + 2 * (2e-6 * x) ** 0.5
    assert seconds(network, Collective.ALL_GATHER, V, 8) == pytest.approx(expected)


def test_efficiencies_by_kind():
    level = flat_level(
        8,
        bandwidth=100e9,
        efficiency=0.5,
        all_reduce_efficiency=1.25,
        all_to_all_efficiency=0.25,
        oversubscription=2.0,
    )
    network = Network((level,), launch_s=0.0)
    x = 7 / 8 * V / 50e9
    assert seconds(network, Collective.ALL_GATHER, V, 8) == pytest.approx(x / 0.5)
    assert seconds(network, Collective.ALL_REDUCE, V, 8) == pytest.approx(2 * x / 1.25)
    assert seconds(network, Collective.ALL_TO_ALL, V, 8) == pytest.approx(x / 0.25)


def two_levels(*, inner=300e9, outer=25e9, latency_s=0.0):
    levels = (
        flat_level(8, bandwidth=inner, latency_s=latency_s),
        flat_level(64, bandwidth=outer, latency_s=10 * latency_s),
    )
    return Network(levels, launch_s=0.0)


def test_a_rail_parallel_ring_over_four_nodes_of_eight():
    # Through the node boundary the 8 ranks of a node share 8 ports: 200 GB/s, less than the
    # 300 inside; 31/32 of the buffer passes there.
    found = two_levels().algorithms(Collective.ALL_GATHER, np.array([V]), np.array([[8, 32]]))
    ring, hierarchical = found[:, 0]
    assert ring == pytest.approx(31 / 32 * V / (8 * 25e9))
    # One level after the other: 7/8 inside, then 3/4 of an eighth over 25 GB/s.
    assert hierarchical == pytest.approx(7 / 8 * V / 300e9 + 3 / 4 * (V / 8) / 25e9)
    assert seconds(two_levels(), Collective.ALL_GATHER, V, 8, 32) == pytest.approx(ring)


def test_one_rank_per_node_uses_its_own_port_only():
    found = seconds(two_levels(), Collective.ALL_REDUCE, V, 1, 4)
    assert found == pytest.approx(2 * 3 / 4 * V / 25e9)


def test_hierarchical_has_fewer_steps_than_a_ring():
    # An all-gather of nothing over 8 nodes of 8: a ring makes 56 hops inside and 7 across
    # (64/1 - 64/8 = 56, 64/8 - 1 = 7), the hierarchical one 7 and 7.
    network = two_levels(latency_s=1e-6)
    found = network.algorithms(Collective.ALL_GATHER, np.zeros(1), np.array([[8, 64]]))[:, 0]
    assert found == pytest.approx([56e-6 + 7 * 10e-6, 7e-6 + 7 * 10e-6])


def test_all_to_all_is_set_by_its_slowest_level():
    # 7/32 of the messages stay in the node besides the own one, 24/32 leave it.
    found = seconds(two_levels(), Collective.ALL_TO_ALL, V, 8, 32)
    assert found == pytest.approx(max(31 / 32 * V / 300e9, 24 / 32 * V / 25e9))


@pytest.mark.parametrize("copies", [1, 2, 8])
def test_copies_of_a_token_for_one_node_cross_once(copies):
    # On 4 nodes k random choices meet 4 (1 - (3/4)^k) of them, 3/4 of these others than ours.
    network = two_levels(inner=1e15)
    found = network.exchange(np.array([V]), np.array([[8, 32]]), copies=copies)[0]
    met = 4 * (1 - 0.75**copies)
    assert found == pytest.approx(V / copies * met * 3 / 4 / 25e9)


@pytest.mark.parametrize(("extent", "level"), [(1, 0), (7, 0), (8, 1), (63, 1)])
def test_a_message_crosses_the_first_level_that_holds_both_ends(extent, level):
    network = two_levels(latency_s=1e-6)
    found = [float(part[0]) for part in network.hop(np.array([extent]))]
    assert found == pytest.approx([(1e-6, 1 / 300e9), (10e-6, 1 / 25e9)][level])


@pytest.mark.parametrize("kind", list(Collective))
def test_the_chord_meets_the_curve_at_the_reference_and_at_twice_it(kind):
    levels = (
        flat_level(8, bandwidth=300e9, latency_s=1e-6, ramp_s=1e-6),
        flat_level(64, bandwidth=25e9, latency_s=1e-5, ramp_s=4e-6),
    )
    network, members = Network(levels, launch_s=1e-5), np.array([[8, 32], [1, 4], [1, 1]])
    reference = 64e6
    latency_s, slope = network.linear(kind, members, reference_bytes=reference)
    for size in (reference, 2 * reference):
        exact = network.time(kind, np.full(3, size), members)
        assert latency_s + slope * size == pytest.approx(exact)
    assert latency_s[-1] == slope[-1] == 0.0


# ---------------------------------------------------------------- laws
networks = st.builds(
    lambda ratio, inner, outer, ramp, latency_s: (
        flat_level(4, bandwidth=inner, ramp_s=ramp, latency_s=latency_s),
        flat_level(4 * ratio, bandwidth=outer, ramp_s=3 * ramp, latency_s=2 * latency_s),
    ),
    st.integers(2, 16),
    st.floats(1e9, 1e12),
    st.floats(1e8, 1e12),
    st.floats(0, 1e-4),
    st.floats(0, 1e-4),
)
kinds = st.sampled_from(list(Collective))
groups = st.sampled_from([(1, 1), (2, 2), (4, 4), (1, 8), (2, 8), (4, 8)])
sizes = st.floats(0, 1e10)


@given(networks, kinds, groups, sizes, st.integers(0, 1), st.floats(1, 100))
def test_a_better_level_is_never_slower(levels, kind, members, volume, index, factor):
    before = seconds(Network(levels, launch_s=1e-5), kind, volume, *members)
    for name, by in (
        ("bandwidth_bytes_per_s", factor),
        ("latency_s", 1 / factor),
        ("ramp_s", 1 / factor),
    ):
        better = list(levels)
        values = {"bandwidth": levels[index].bandwidth_bytes_per_s}
        values |= {n: getattr(levels[index], n) for n in ("latency_s", "ramp_s")}
        values[name.removesuffix("_bytes_per_s")] *= by
        better[index] = flat_level(levels[index].size, **values)
        after = seconds(Network(tuple(better), launch_s=1e-5), kind, volume, *members)
        assert after <= before * (1 + 1e-12)


@given(networks, kinds, groups, sizes, sizes)
def test_more_bytes_are_never_faster(levels, kind, members, one, other):
    network = Network(levels, launch_s=1e-5)
    small, large = sorted((one, other))
    assert seconds(network, kind, small, *members) <= seconds(network, kind, large, *members)


@given(networks, groups, sizes)
def test_an_all_reduce_is_no_slower_than_its_two_halves(levels, members, volume):
    network = Network(levels, launch_s=1e-5)
    halves = sum(seconds(network, kind, volume, *members) for kind in HALVES)
    assert seconds(network, Collective.ALL_REDUCE, volume, *members) <= halves * (1 + 1e-12)


@given(networks, st.sampled_from(HALVES), groups, sizes)
def test_no_collective_beats_the_bytes_that_enter_a_rank(levels, kind, members, volume):
    """Each rank must receive (n - 1)/n of the buffer through its fastest way in."""
    network, n = Network(levels, launch_s=0.0), members[-1]
    best = max(
        level.bandwidth_bytes_per_s * below
        for level, below in zip(levels, (1, members[0]), strict=True)
    )
    least = volume * (n - 1) / n / best
    assert seconds(network, kind, volume, *members) >= least * (1 - 1e-12)


@given(networks, kinds, st.floats(1e6, 1e9), groups)
def test_a_chord_has_no_negative_part(levels, kind, reference, members):
    network = Network(levels, launch_s=0.0)
    latency_s, slope = network.linear(kind, np.array([members]), reference_bytes=reference)
    assert latency_s[0] >= 0
    assert slope[0] >= 0
