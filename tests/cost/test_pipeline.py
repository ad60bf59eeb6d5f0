"""The step formula against closed forms and a discrete simulation of the schedules."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from meshwright.cost.step import OverlapFactors, PassTime, StateMode, in_flight, step_cost

from ..strategies import group_cost, stage_terms  # noqa: TID252 - importlib mode

NO_OVERLAP = OverlapFactors(gather=0.0, scatter=0.0, p2p=0.0, tail=0.0)
ALONE = StateMode(
    parameter_bytes=2.0,
    gradient_bytes=4.0,
    optimizer_bytes=12.0,
    parameter_sharded=False,
    gradient_sharded=False,
    optimizer_sharded=False,
    reduce_at_step=False,
    scatter_at_step=False,
    gather_at_step=False,
    scatter_per_micro_batch=False,
    gather_per_micro_batch=False,
    gather_bytes=2.0,
    reduce_bytes=4.0,
)


def stages(forwards, backwards, *, hop_s=0.0):
    return [
        stage_terms(
            position=i,
            forward=PassTime(compute_s=f),
            backward=PassTime(compute_s=b),
            hop_s=hop_s,
        )
        for i, (f, b) in enumerate(zip(forwards, backwards, strict=True))
    ]


def step_s(found, *, m, v=1, overlap=NO_OVERLAP):
    return step_cost(found, ALONE, overlap, virtual_stages=v, micro_batches=m).step_s


# ---------------------------------------------------------------- a simulation, for the tests
def order_1f1b(stage, p, m):
    """Passes of one stage under 1F1B: warm-up forwards, pairs, the rest of the backwards."""
    warm = min(m, p - 1 - stage)
    order = [("F", i) for i in range(warm)]
    for i in range(m - warm):
        order += [("F", warm + i), ("B", i)]
    return order + [("B", i) for i in range(m - warm, m)]


def order_interleaved(stage, p, v, m):
    """Narayanan et al. 2021, figure 4: chunks in rounds of p micro-batches."""
    total = m * v

    def unit(k, kind):
        round_, within = divmod(k, p * v)
        chunk, micro = divmod(within, p)
        return (kind, round_ * p + micro, chunk if kind == "F" else v - 1 - chunk)

    warm = min(total, (p - stage - 1) * 2 + (v - 1) * p)
    order = [unit(k, "F") for k in range(warm)]
    for k in range(total - warm):
        order += [unit(warm + k, "F"), unit(k, "B")]
    return order + [unit(k, "B") for k in range(total - warm, total)]


def simulate(orders, duration, needs):
    """End of the last pass when every stage runs its order and waits for what it needs."""
    done, clock, place = {}, [0.0] * len(orders), [0] * len(orders)
    while any(place[s] < len(order) for s, order in enumerate(orders)):
        moved = False
        for s, order in enumerate(orders):
            while place[s] < len(order):
                unit = (s, *order[place[s]])
                before = needs(unit)
                if before is not None and before not in done:
                    break
                start = max(clock[s], done.get(before, 0.0))
                clock[s] = done[unit] = start + duration(unit)
                place[s] += 1
                moved = True
        assert moved, "the schedule waits for itself"
    return max(clock)


def simulate_1f1b(forwards, backwards, m):
    p = len(forwards)

    def needs(unit):
        s, kind, i = unit
        if kind == "F":
            return (s - 1, "F", i) if s else None
        return (s + 1, "B", i) if s < p - 1 else (s, "F", i)

    def duration(unit):
        return (forwards if unit[1] == "F" else backwards)[unit[0]]

    return simulate([order_1f1b(s, p, m) for s in range(p)], duration, needs)


def simulate_interleaved(p, v, m, forward, backward):
    def needs(unit):
        s, kind, i, chunk = unit
        if kind == "F":
            if s:
                return (s - 1, "F", i, chunk)
            return (p - 1, "F", i, chunk - 1) if chunk else None
        if s < p - 1:
            return (s + 1, "B", i, chunk)
        return (0, "B", i, chunk + 1) if chunk < v - 1 else (s, "F", i, chunk)

    def duration(unit):
        return (forward if unit[1] == "F" else backward) / v

    return simulate([order_interleaved(s, p, v, m) for s in range(p)], duration, needs)


# ---------------------------------------------------------------- equal stages
@pytest.mark.parametrize(("p", "m"), [(1, 4), (2, 2), (4, 8), (8, 64), (16, 16)])
def test_the_bubble_of_1f1b(p, m):
    # Narayanan et al. 2021, section 2.2.1: bubble time over ideal time is (p - 1) / m.
    found = step_cost(
        stages([1.0] * p, [2.0] * p), ALONE, NO_OVERLAP, virtual_stages=1, micro_batches=m
    )
    assert found.bubble_s / found.compute_s == pytest.approx((p - 1) / m)
    assert found.step_s == pytest.approx(simulate_1f1b([1.0] * p, [2.0] * p, m))


@pytest.mark.parametrize(("p", "v", "m"), [(2, 2, 2), (4, 2, 8), (4, 3, 4), (8, 4, 16)])
def test_the_bubble_of_interleaving(p, v, m):
    # Section 2.2.2: (p - 1) / (v m).
    found = step_cost(
        stages([1.0] * p, [2.0] * p), ALONE, NO_OVERLAP, virtual_stages=v, micro_batches=m
    )
    assert found.bubble_s / found.compute_s == pytest.approx((p - 1) / (v * m))
    assert found.step_s == pytest.approx(simulate_interleaved(p, v, m, 1.0, 2.0))


# ---------------------------------------------------------------- uneven stages
times = st.lists(st.floats(0.5, 2.0), min_size=1, max_size=6)


@given(times, st.integers(1, 24), st.floats(1.0, 3.0))
def test_uneven_stages_against_the_simulation(forwards, m, ratio):
    """The formula is never too fast, and too slow at most by the stages behind the slowest.

    Stages behind the slowest one may do part of the fill and drain while it works; those before
    it cannot. With m micro-batches on p stages that is less than (p - 1)/m of the step.
    """
    backwards = [ratio * f for f in forwards]
    p, slowest = len(forwards), max(range(len(forwards)), key=forwards.__getitem__)
    formula = step_s(stages(forwards, backwards), m=m)
    simulated = simulate_1f1b(forwards, backwards, m)
    behind = sum((1 + ratio) * f for f in forwards[slowest + 1 :])
    assert simulated <= formula * (1 + 1e-9)
    assert simulated >= (formula - behind) * (1 - 1e-9)
    assert formula <= (1 + (p - 1) / m) * simulated * (1 + 1e-9)


@given(times, st.integers(1, 24))
def test_a_slowest_last_stage_is_exact(others, m):
    """The head makes the last stage the slowest of most pipelines of equal layers."""
    forwards = [*others, 2.0]
    backwards = [2.0 * f for f in forwards]
    formula = step_s(stages(forwards, backwards), m=m)
    assert formula == pytest.approx(simulate_1f1b(forwards, backwards, m))


def test_uneven_stages_by_hand():
    # Two stages of 3 and 6 s, four micro-batches: 4 x 6 + 3.
    assert step_s(stages([1.0, 2.0], [2.0, 4.0]), m=4) == 27.0


@given(times, st.integers(1, 16), st.integers(1, 3))
def test_merged_stages_are_as_single_ones(forwards, m, repeat):
    single = stages(np.repeat(forwards, repeat).tolist(), np.repeat(forwards, repeat).tolist())
    merged = [
        stage_terms(
            position=i * repeat,
            multiplicity=repeat,
            forward=PassTime(compute_s=f),
            backward=PassTime(compute_s=f),
        )
        for i, f in enumerate(forwards)
    ]
    assert step_s(merged, m=m) == pytest.approx(step_s(single, m=m))


# ---------------------------------------------------------------- messages
def test_boundary_messages_by_hand():
    # p = 4 stages of 3 s, m = 8, hops of 0.5 s, nothing hidden: 8 (3 + 2 x 0.5) + 3 x 4 (each
    # other stage waits once, its two messages included).
    found = step_cost(
        stages([1.0] * 4, [2.0] * 4, hop_s=0.5),
        ALONE,
        NO_OVERLAP,
        virtual_stages=1,
        micro_batches=8,
    )
    assert found.pipeline_s == 8.0
    assert found.step_s == 8 * 4 + 3 * 4


def test_hidden_messages_still_delay_the_fill():
    hidden = OverlapFactors(gather=0.0, scatter=0.0, p2p=1.0, tail=0.0)
    found = step_cost(
        stages([1.0] * 4, [2.0] * 4, hop_s=0.5), ALONE, hidden, virtual_stages=1, micro_batches=8
    )
    assert found.pipeline_s == 0.0
    assert found.step_s == 8 * 3 + 3 * 3 + 2 * 3 * 0.5


def test_interleaving_sends_v_times_as_many_messages():
    plain, interleaved = (
        step_cost(
            stages([1.0] * 4, [2.0] * 4, hop_s=0.5),
            ALONE,
            NO_OVERLAP,
            virtual_stages=v,
            micro_batches=8,
        )
        for v in (1, 3)
    )
    assert interleaved.pipeline_s == 3 * plain.pipeline_s


def test_a_single_stage_sends_nothing():
    assert step_s(stages([1.0], [2.0], hop_s=5.0), m=4) == 12.0


# ---------------------------------------------------------------- end of the step
def test_the_end_of_the_step_by_hand():
    # ZeRO-1 of 100 parameters on 4 ranks: reduce-scatter 400 bytes at 0.01 s/byte in 2 calls of
    # 0.25 s, gather 200 bytes; half the 2 s backward and a quarter of the 1 s forward hide
    # them; the update of 25 owned parameters at 0.1 s.
    group = group_cost(
        shards=4,
        gather_latency_s=0.25,
        gather_s_per_byte=0.01,
        scatter_latency_s=0.25,
        scatter_s_per_byte=0.01,
    )
    stage = stage_terms(
        blocks=2,
        forward=PassTime(compute_s=1.0),
        backward=PassTime(compute_s=2.0),
        dense_parameters=100.0,
        dense_group=group,
        optimizer_s_per_parameter=0.1,
    )
    mode = StateMode(
        **{
            **{n: getattr(ALONE, n) for n in ALONE.__slots__},
            "optimizer_sharded": True,
            "scatter_at_step": True,
            "gather_at_step": True,
        }
    )
    overlap = OverlapFactors(gather=0.25, scatter=0.5, p2p=0.0, tail=0.1)
    found = step_cost([stage], mode, overlap, virtual_stages=1, micro_batches=3, fixed_s=0.5)
    assert found.data_total_s == pytest.approx(4.5 + 2.5)
    assert found.data_s == pytest.approx((4.5 - 1.0) + (2.5 - 0.25))
    assert found.optimizer_s == pytest.approx(2.5)
    assert found.step_s == pytest.approx(3 * 3 + 5.75 + 2.5 + 0.5)


def test_the_tail_is_always_exposed():
    stage = stage_terms(
        forward=PassTime(compute_s=1e3),
        backward=PassTime(compute_s=1e3),
        dense_parameters=1.0,
        dense_group=group_cost(shards=2, reduce_latency_s=1.0),
    )
    mode = StateMode(**{**{n: getattr(ALONE, n) for n in ALONE.__slots__}, "reduce_at_step": True})
    overlap = OverlapFactors(gather=1.0, scatter=1.0, p2p=1.0, tail=0.25)
    found = step_cost([stage], mode, overlap, virtual_stages=1, micro_batches=1)
    assert found.data_s == 0.25


# ---------------------------------------------------------------- in flight
def peak_held(order):
    held = peak = 0
    for unit in order:
        held += 1 if unit[0] == "F" else -1
        peak = max(peak, held)
    assert held == 0
    return peak


@pytest.mark.parametrize("p", [1, 2, 4, 7])
@pytest.mark.parametrize("m", [1, 2, 5, 16])
def test_in_flight_of_1f1b_against_the_schedule(p, m):
    for s in range(p):
        found = in_flight(position=s, stages=p, virtual_stages=1, micro_batches=m)
        assert found == peak_held(order_1f1b(s, p, m))


@pytest.mark.parametrize(("p", "v"), [(2, 2), (4, 2), (4, 5), (8, 3)])
@pytest.mark.parametrize("rounds", [1, 2, 4])
def test_in_flight_of_interleaving_against_the_schedule(p, v, rounds):
    m = rounds * p
    for s in range(p):
        found = in_flight(position=s, stages=p, virtual_stages=v, micro_batches=m)
        assert found == pytest.approx(peak_held(order_interleaved(s, p, v, m)) / v)


def test_in_flight_of_the_first_stage_by_korthikanti():
    # Section 4.2.3: the first stage of an interleaved pipeline holds L (1 + (p - 1)/(p v))
    # layers' activations, L/p layers per micro-batch: p + (p - 1)/v micro-batches.
    p, v = 8, 3
    found = in_flight(position=0, stages=p, virtual_stages=v, micro_batches=64)
    assert found == pytest.approx(p * (1 + (p - 1) / (p * v)))
