"""The native core equals the Python reference on random spaces."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from meshwright.search import native, reference

TOLERANCE = 1e-9
SPACES = {
    "seed": st.integers(0, 2**32 - 1),
    "device_types": st.integers(1, 3),
    "blocks": st.integers(1, 4),
    "tight": st.booleans(),
}


def close(value):
    return pytest.approx(value, rel=TOLERANCE, abs=0.0)


def assert_same_candidate(tables, found, expected):
    """Equal values; the same candidate, or one that the reference finds equal."""
    assert found.step_s == close(expected.step_s)
    assert found.peak_bytes == close(expected.peak_bytes)
    slack = TOLERANCE * (expected.peak_bytes + float(tables.capacity_bytes.max()))
    assert found.headroom_bytes == pytest.approx(expected.headroom_bytes, rel=0.0, abs=slack)
    shape, row, partition, mode = found.index
    again = reference.evaluate(tables, shape=shape, row=row, partition=partition, mode=mode)
    assert found.step_s == close(again.step_s)
    assert found.peak_bytes == close(again.peak_bytes)


def assert_same_list(tables, found, expected):
    assert len(found) == len(expected)
    for ours, theirs in zip(found, expected, strict=True):
        assert_same_candidate(tables, ours, theirs)


@settings(max_examples=60, deadline=None)
@given(**SPACES)
def test_everything_agrees(make_tables, seed, device_types, blocks, tight):
    tables = make_tables(seed, device_types=device_types, blocks=blocks, tight=tight)
    found = native.search_uniform(tables, top_k=7)
    expected = reference.search_uniform(tables, top_k=7)

    assert found.complete
    assert found.candidates == expected.candidates == tables.candidates
    assert found.evaluated == expected.evaluated
    assert found.excluded == expected.excluded
    assert_same_list(tables, found.best, expected.best)
    assert_same_list(tables, found.pareto, expected.pareto)
    assert (found.nearest_misfit is None) == (expected.nearest_misfit is None)
    if found.nearest_misfit is not None:
        assert_same_candidate(tables, found.nearest_misfit, expected.nearest_misfit)


@settings(max_examples=30, deadline=None)
@given(**SPACES)
def test_every_candidate_is_counted_once(make_tables, seed, device_types, blocks, tight):
    tables = make_tables(seed, device_types=device_types, blocks=blocks, tight=tight)
    found = native.search_uniform(tables, top_k=1)
    assert found.evaluated + sum(found.excluded) == found.candidates


@settings(max_examples=30, deadline=None)
@given(threads=st.integers(2, 9), **SPACES)
def test_threads_change_nothing(make_tables, threads, seed, device_types, blocks, tight):
    tables = make_tables(seed, device_types=device_types, blocks=blocks, tight=tight)
    one = native.search_uniform(tables, top_k=5)
    assert native.search_uniform(tables, top_k=5, threads=threads) == one


@pytest.mark.parametrize("seed", [14, 26, 44])
def test_threads_change_nothing_among_ties(make_tables, repeat_shapes, seed):
    """Every candidate a thousand times: whichever thread is first, the first enumerated wins."""
    tables = repeat_shapes(make_tables(seed, device_types=2, tight=True), 1_000)
    one = native.search_uniform(tables, top_k=50)
    assert len(one.pareto) > 1
    assert one.nearest_misfit is not None
    assert one.best[0].step_s == one.best[49].step_s
    for threads in (2, 4, 8):
        assert native.search_uniform(tables, top_k=50, threads=threads) == one


@settings(max_examples=30, deadline=None)
@given(**SPACES)
def test_lists_are_what_they_say(make_tables, seed, device_types, blocks, tight):
    tables = make_tables(seed, device_types=device_types, blocks=blocks, tight=tight)
    everything = native.search_uniform(tables, top_k=tables.candidates)
    assert len(everything.best) == everything.evaluated
    order = [(c.step_s, c.peak_bytes, c.index) for c in everything.best]
    assert order == sorted(order)
    assert len(set(order)) == len(order)
    assert native.search_uniform(tables, top_k=3).best == everything.best[:3]

    pareto = everything.pareto
    assert all(a.step_s < b.step_s for a, b in pairwise(pareto))
    assert all(a.peak_bytes > b.peak_bytes for a, b in pairwise(pareto))
    for candidate in everything.best:
        assert any(
            p.step_s <= candidate.step_s and p.peak_bytes <= candidate.peak_bytes for p in pareto
        )


def test_random_spaces_reach_every_rule_and_outcome(make_tables):
    """The comparison above means something only if its spaces are varied."""
    spaces = [make_tables(seed, device_types=2, tight=seed % 2 == 0) for seed in range(20)]
    results = [native.search_uniform(tables, top_k=1) for tables in spaces]
    for rule in range(5):
        assert any(result.excluded[rule] for result in results)
    assert any(result.evaluated for result in results)
    assert any(len(result.pareto) > 1 for result in results)
    assert any(result.nearest_misfit for result in results)
