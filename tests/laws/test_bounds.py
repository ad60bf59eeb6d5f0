"""Bounds and sums that every prediction keeps."""

from __future__ import annotations

from dataclasses import fields

import pytest
from hypothesis import given, settings

from meshwright.cost.breakdown import CostBreakdown, MemoryBreakdown
from meshwright.planning.flops import cluster_peak, model_flops, roofline_s
from meshwright.planning.predict import predict
from meshwright.planning.searching import search_space
from meshwright.strategy import Recompute

from ..strategies import instances, strategies_of  # noqa: TID252 - importlib mode


def prediction(drawn):
    instance, strategy = drawn
    return predict(
        instance.model,
        instance.cluster,
        instance.workload,
        strategy,
        coefficients=instance.coefficients,
    )


@settings(max_examples=25)
@given(strategies_of())
def test_a_step_is_no_shorter_than_any_of_its_bounds(drawn):
    instance, strategy = drawn
    found = prediction(drawn)
    step_s = found.step_time_s
    assert step_s >= roofline_s(instance.model, instance.cluster, instance.workload)
    for f in fields(CostBreakdown):
        part = getattr(found.time, f.name)
        assert part >= 0.0, f.name
        if f.name != "data_total_s":
            assert step_s >= part, f.name
    assert found.time.data_s <= found.time.data_total_s * (1 + 1e-9)
    fixed = found.time.compute_s + found.time.recompute_s + found.time.fixed_s
    assert step_s >= fixed * (1 - 1e-12)
    assert 0.0 < found.mfu <= found.hfu
    assert found.mfu < 1.0
    if strategy.pipeline == 1:
        assert found.time.bubble_s == 0.0


@settings(max_examples=25)
@given(strategies_of())
def test_times_add_up(drawn):
    time = prediction(drawn).time
    parts = {f.name: getattr(time, f.name) for f in fields(CostBreakdown)}
    parts.pop("data_total_s")
    assert time.step_s == pytest.approx(sum(parts.values()), rel=1e-12)
    names = ("tensor_s", "context_s", "expert_s", "pipeline_s", "data_s")
    assert time.communication_s == pytest.approx(sum(parts[n] for n in names), rel=1e-12)


@settings(max_examples=25)
@given(strategies_of())
def test_memory_adds_up(drawn):
    _, strategy = drawn
    found = prediction(drawn)
    for stage in found.memory:
        parts = {f.name: getattr(stage, f.name) for f in fields(MemoryBreakdown)}
        capacity = parts.pop("capacity_bytes")
        assert all(part >= 0 for part in parts.values())
        assert stage.total_bytes == pytest.approx(sum(parts.values()), rel=1e-12)
        assert stage.headroom_bytes == capacity - stage.total_bytes
        assert stage.fits == (stage.headroom_bytes >= 0)
    assert found.peak_memory_bytes == max(stage.total_bytes for stage in found.memory)
    assert found.headroom_bytes == min(stage.headroom_bytes for stage in found.memory)
    assert found.fits == all(stage.fits for stage in found.memory)
    assert len(found.memory) == sum(len(stage.groups) for stage in strategy.stages)


@settings(max_examples=20)
@given(strategies_of())
def test_rates_follow_from_the_step(drawn):
    instance, strategy = drawn
    found = prediction(drawn)
    work, cluster = instance.workload, instance.cluster
    tokens = found.tokens_per_s_per_device * cluster.num_devices * found.step_time_s
    assert tokens == pytest.approx(work.tokens_per_step)
    possible = cluster_peak(cluster, work.recipe.peak) * found.step_time_s
    assert found.mfu * possible == pytest.approx(model_flops(instance.model, work))
    modes = {mode for stage in strategy.stages for mode in stage.recompute_of_layers()}
    assert (found.hfu > found.mfu) == (Recompute.FULL in modes)
    estimate = found.step_time
    assert estimate.low < estimate.value < estimate.high


@settings(max_examples=20)
@given(strategies_of())
def test_all_states_are_held_somewhere(drawn):
    """What the stages hold together is at least the model, once."""
    instance, strategy = drawn
    found = prediction(drawn)
    recipe, held = instance.workload.recipe, 0.0
    index = 0
    for stage in strategy.stages:
        held += found.memory[index].parameters_bytes * stage.num_devices
        index += len(stage.groups)
    count = instance.model.parameter_count(include_auxiliary=True)
    assert held >= recipe.parameter_bytes * count * (1 - 1e-9)


@settings(max_examples=8)
@given(instances())
def test_no_plan_beats_the_roofline(instance):
    result = search_space(
        instance.model,
        instance.cluster,
        instance.workload,
        instance.space,
        coefficients=instance.coefficients,
        top=1,
    ).result
    least = roofline_s(instance.model, instance.cluster, instance.workload)
    assert all(candidate.step_s > least for candidate in result.best)
