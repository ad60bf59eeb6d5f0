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


@settings(max_examples=50)
@given(strategies_of())
def test_every_prediction(drawn):
    """One strategy, every law: making the strategy costs more than checking it."""
    instance, strategy = drawn
    found = predict(
        instance.model,
        instance.cluster,
        instance.workload,
        strategy,
        coefficients=instance.coefficients,
    )
    step_is_no_shorter_than_its_bounds(instance, strategy, found)
    times_add_up(found.time)
    memory_adds_up(strategy, found)
    rates_follow_from_the_step(instance, strategy, found)
    all_states_are_held_somewhere(instance, strategy, found)


def step_is_no_shorter_than_its_bounds(instance, strategy, found):
    step_s = found.step_time_s
    assert step_s >= roofline_s(instance.model, instance.cluster, instance.workload)
    for f in fields(CostBreakdown):
        part = getattr(found.time, f.name)
        assert part >= 0.0, f.name
        if f.name != "data_total_s":
            assert step_s >= part, f.name
    assert found.time.data_s <= found.time.data_total_s * (1 + 1e-9)
    assert 0.0 < found.mfu <= found.hfu
    assert found.mfu < 1.0
    if strategy.pipeline == 1:
        assert found.time.bubble_s == 0.0


def times_add_up(time):
    parts = {f.name: getattr(time, f.name) for f in fields(CostBreakdown)}
    parts.pop("data_total_s")
    assert time.step_s == pytest.approx(sum(parts.values()), rel=1e-12)
    names = ("tensor_s", "context_s", "expert_s", "pipeline_s", "data_s")
    assert time.communication_s == pytest.approx(sum(parts[n] for n in names), rel=1e-12)


def memory_adds_up(strategy, found):
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


def rates_follow_from_the_step(instance, strategy, found):
    work, cluster = instance.workload, instance.cluster
    tokens = found.tokens_per_s_per_device * cluster.num_devices * found.step_time_s
    assert tokens == pytest.approx(work.tokens_per_step)
    possible = cluster_peak(cluster, work.recipe.peak) * found.step_time_s
    assert found.mfu * possible == pytest.approx(model_flops(instance.model, work))
    modes = {mode for stage in strategy.stages for mode in stage.recompute_of_layers()}
    assert (found.hfu > found.mfu) == (Recompute.FULL in modes)
    estimate = found.step_time
    assert estimate.low < estimate.value < estimate.high


def all_states_are_held_somewhere(instance, strategy, found):
    """What the stages hold together is at least the model, once."""
    held, index = 0.0, 0
    for stage in strategy.stages:
        held += found.memory[index].parameters_bytes * stage.num_devices
        index += len(stage.groups)
    count = instance.model.parameter_count(include_auxiliary=True)
    assert held >= instance.workload.recipe.parameter_bytes * count * (1 - 1e-9)


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
