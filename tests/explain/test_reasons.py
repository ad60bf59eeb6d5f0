"""Why: what binds, what is nearest, what would change the choice; by hand on made-up numbers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from meshwright.cost.breakdown import CostBreakdown, MemoryBreakdown
from meshwright.explain.pace import stage_paces_s
from meshwright.explain.parts import memory_parts, time_parts
from meshwright.explain.reasons import (
    alternative_sentences,
    binding_sentences,
    bound_sentence,
    differences,
    memory_places,
)
from meshwright.units import GIB

TIME = CostBreakdown(
    compute_s=6.0,
    launch_s=0.0,
    recompute_s=0.0,
    tensor_s=2.0,
    context_s=0.0,
    expert_s=0.0,
    pipeline_s=0.5,
    data_s=0.5,
    bubble_s=1.0,
    optimizer_s=0.0,
    fixed_s=0.0,
    data_total_s=3.0,
)
MEMORY = MemoryBreakdown(
    parameters_bytes=10.0 * GIB,
    gradients_bytes=5.0 * GIB,
    optimizer_bytes=5.0 * GIB,
    activations_bytes=40.0 * GIB,
    temporaries_bytes=4.0 * GIB,
    buffers_bytes=4.0 * GIB,
    framework_bytes=4.0 * GIB,
    capacity_bytes=80.0 * GIB,
)


def with_numbers(plan, time=TIME, memory=MEMORY):
    """The same strategy, with this time, and this memory on every stage."""
    prediction = replace(
        plan.prediction,
        step_time=replace(plan.prediction.step_time, value=time.step_s),
        time=time,
        memory=tuple(memory for _ in plan.prediction.memory),
    )
    return replace(plan, prediction=prediction)


def test_parts_add_up():
    assert sum(part.value for part in time_parts(TIME)) == pytest.approx(10.0)
    assert sum(part.share for part in time_parts(TIME)) == pytest.approx(1.0)
    assert sum(part.value for part in memory_parts(MEMORY)) == pytest.approx(72 * GIB)


def test_what_binds_is_the_largest_part(result):
    first, hidden, *_, memory = binding_sentences(with_numbers(result.best))
    assert first == (
        "Time: bound by compute, 6.00 s of 10.0 s (60.0 %); then exposed tensor communication "
        "2.00 s (20.0 %), pipeline bubble 1.00 s (10.0 %), exposed stage-to-stage messages 500 ms "
        "(5.0 %)."
    )
    assert hidden.startswith("Of 3.00 s of gradient and parameter traffic, 2.50 s are hidden")
    assert memory.startswith("Memory does not bind: stage 1 of ")  # 8 of 80 GiB: exactly a tenth
    assert memory.endswith(
        "needs 72.0 GiB of 80.0 GiB per device, 10.0 % is left; the largest part is activations, "
        "40.0 GiB."
    )


def test_exposed_communication_may_bind(result):
    slow = replace(TIME, tensor_s=9.0)
    assert binding_sentences(with_numbers(result.best, slow))[0].startswith(
        "Time: bound by exposed tensor communication, 9.00 s of 17.0 s (52.9 %)"
    )


@pytest.mark.parametrize(
    ("more_gib", "words"),
    [(1, "Memory binds: "), (9, "Memory does not fit: "), (-20, "Memory does not bind: ")],
)
def test_memory_binds_when_little_is_left(result, more_gib, words):
    memory = replace(MEMORY, activations_bytes=(40.0 + more_gib) * GIB)
    assert binding_sentences(with_numbers(result.best, memory=memory))[-1].startswith(words)


def test_the_stage_that_sets_the_pace_is_the_slowest(result):
    plan = next(p for p in (result.best, *result.alternatives) if p.strategy.pipeline > 1)
    paces = stage_paces_s(plan)
    assert len(paces) == plan.strategy.pipeline
    sentences = [s for s in binding_sentences(plan) if "sets the pace" in s]
    if max(paces) > 1.01 * min(paces):
        assert sentences[0].startswith(f"Stage {paces.index(max(paces)) + 1} of {len(paces)} (")
    else:
        assert not sentences


def test_nearest_alternative_and_where_the_choice_turns(result):
    """The other plan is 0.5 s slower; its bubble is 2 s worse, other parts are better."""
    best = with_numbers(result.best)
    other = with_numbers(
        result.alternatives[0],
        replace(TIME, bubble_s=3.0, tensor_s=0.5),
        replace(MEMORY, activations_bytes=30.0 * GIB),
    )
    nearest, turning = alternative_sentences(
        replace(result, best=best, alternatives=(other,), pareto=())
    )
    changed = differences(best.strategy, other.strategy)
    assert nearest == f"Nearest alternative: {changed}; 5.0 % slower, 10.0 GiB less peak memory."
    assert turning == (
        "It would win if its pipeline bubble (3.00 s) were 16.7 % less than predicted."
    )


def test_no_alternative(result):
    alone = replace(result, alternatives=(), pareto=())
    assert alternative_sentences(alone) == ("No other strategy in the space fits.",)


def test_a_thriftier_plan_is_told_when_it_is_worth_it(result):
    best = with_numbers(result.best)  # 72 GiB, 10 s
    other = result.pareto[-1]

    def told(memory_gib, step_s):
        point = replace(other, peak_memory_bytes=memory_gib * GIB, step_time_s=step_s)
        found = alternative_sentences(replace(result, best=best, pareto=(point,)))[-1]
        return found if found.startswith("Less memory") else None

    changed = differences(best.strategy, other.strategy)
    assert told(60.0, 11.0) == f"Less memory: 60.0 GiB per device, 10.0 % slower, with {changed}."
    assert told(70.0, 11.0) is None, "saves too little"
    assert told(60.0, 12.0) is None, "too slow"


def test_differences_name_both_values(result):
    strategy = result.best.strategy
    assert differences(strategy, strategy) == "the same degrees in another arrangement"
    stages = tuple(replace(stage, zero_stage=3) for stage in strategy.stages)
    before = strategy.stages[0].zero_stage
    assert f"ZeRO 3 instead of {before}" in differences(strategy, replace(strategy, stages=stages))


def test_what_is_proved(result):
    assert bound_sentence(result).endswith("no strategy of the space is faster.")
    early = replace(result, complete=False, lower_bound_s=result.best.prediction.step_time_s / 2)
    assert bound_sentence(early).endswith("(roofline), 50.0 % less than the best found.")


def test_every_entry_of_memory_has_a_place(result, mixed):
    for plan in (result.best, mixed.best, *mixed.alternatives):
        places = memory_places(plan)
        assert len(places) == len(plan.prediction.memory)
    assert any("Ascend910B" in place for place in memory_places(mixed.best))
    assert not any("H100" in place for place in memory_places(result.best))
