"""Strategies: products, schedules and the order of layers."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from meshwright.errors import StrategyError
from meshwright.strategy import AXIS_ORDERS, Schedule, Stage, Strategy

from ..strategies import uniform  # noqa: TID252 - importlib mode


def test_products_by_hand():
    strategy = uniform(
        24,
        pipeline=4,
        virtual_stages=3,
        micro_batch_size=2,
        micro_batches=8,
        tensor=4,
        context=2,
        data_replicate=2,
        data_shard=3,
    )
    assert strategy.pipeline == 4
    assert strategy.virtual_stages == 3
    assert strategy.num_layers == 24
    assert strategy.data == 6
    assert strategy.num_devices == 4 * 4 * 2 * 6
    assert strategy.global_batch_size == 2 * 8 * 6
    assert strategy.stages[1].layers == ((2, 4), (10, 12), (18, 20))


def test_the_mesh_of_a_stage():
    order = ("data", "tensor", "pipeline", "context")
    strategy = uniform(4, pipeline=2, tensor=2, context=4, data_shard=8, axis_order=order)
    mesh = strategy.mesh()
    assert mesh.order == order
    assert mesh.sizes == (8, 2, 2, 4)
    assert mesh.num_ranks == strategy.num_devices


def test_stages_may_have_different_tensor_degrees():
    stages = (
        Stage(layers=((0, 1),), tensor=4, data_shard=2),
        Stage(layers=((1, 4),), tensor=2, context=2, data_shard=2),
    )
    strategy = Strategy(stages=stages, micro_batch_size=1, micro_batches=2)
    assert strategy.num_devices == 16
    assert strategy.mesh(1).size("tensor") == 2


def test_no_stages():
    with pytest.raises(StrategyError, match="no stages"):
        Strategy(stages=(), micro_batch_size=1, micro_batches=1)


@pytest.mark.parametrize("name", ["micro_batch_size", "micro_batches"])
@pytest.mark.parametrize("value", [0, -3, 1.5, True, "1"])
def test_counts_are_positive_whole_numbers(name, value):
    with pytest.raises(StrategyError) as caught:
        uniform(2, **{name: value})
    assert caught.value.where == f"strategy.{name}"
    assert repr(value) in caught.value.what


@pytest.mark.parametrize(
    "order", [("tensor",), ("tensor", "context", "data", "data"), ("a", "b", "c", "d"), ()]
)
def test_axis_orders_name_every_axis_once(order):
    with pytest.raises(StrategyError, match="does not name every axis once"):
        uniform(2, axis_order=order)


def test_stages_with_different_data_degrees_are_listed():
    stages = (Stage(layers=((0, 1),), data_shard=2), Stage(layers=((1, 2),), data_replicate=4))
    with pytest.raises(StrategyError) as caught:
        Strategy(stages=stages, micro_batch_size=1, micro_batches=2)
    assert "[2, 4]" in caught.value.what


@pytest.mark.parametrize(
    "ranges",
    [
        [(0, 1), (2, 3)],  # a gap
        [(0, 2), (1, 3)],  # twice
        [(1, 2), (2, 3)],  # the first is missing
        [(1, 2), (0, 1)],  # out of order
    ],
)
def test_every_layer_exactly_once_in_order(ranges):
    stages = tuple(Stage(layers=(own,)) for own in ranges)
    with pytest.raises(StrategyError) as caught:
        Strategy(stages=stages, micro_batch_size=1, micro_batches=2)
    assert caught.value.where.startswith("strategy.stages[")
    assert caught.value.allowed == "every layer exactly once, in order"


def test_virtual_stages_are_equal_in_number():
    stages = (Stage(layers=((0, 1), (2, 3))), Stage(layers=((1, 2),)))
    with pytest.raises(StrategyError, match=r"different numbers of virtual stages: \[1, 2\]"):
        Strategy(
            stages=stages,
            micro_batch_size=1,
            micro_batches=2,
            schedule=Schedule.INTERLEAVED,
        )


@pytest.mark.parametrize("schedule", [Schedule.ONE_F_ONE_B, Schedule.GPIPE])
def test_virtual_stages_need_interleaving(schedule):
    strategy = uniform(4, pipeline=2, virtual_stages=2, micro_batches=2)
    with pytest.raises(StrategyError, match="with 2 virtual stages"):
        replace(strategy, schedule=schedule)


def test_interleaving_needs_virtual_stages():
    with pytest.raises(StrategyError, match="'interleaved' with 1 virtual stages"):
        replace(uniform(4, pipeline=2, micro_batches=2), schedule=Schedule.INTERLEAVED)


def test_interleaving_runs_in_groups_of_the_pipeline_degree():
    with pytest.raises(StrategyError) as caught:
        uniform(8, pipeline=4, virtual_stages=2, micro_batches=6)
    assert "6 micro-batches" in caught.value.what
    assert "4 stages" in caught.value.what


def test_interleaving_needs_a_pipeline():
    with pytest.raises(StrategyError, match="groups of the pipeline degree"):
        uniform(4, pipeline=1, virtual_stages=2, micro_batches=4)


@given(
    st.integers(1, 40),
    st.integers(1, 6),
    st.integers(1, 3),
    st.sampled_from(AXIS_ORDERS),
    st.integers(1, 4),
)
def test_what_the_helpers_cut_is_a_strategy(layers, pipeline, virtual, order, t):
    if pipeline * virtual > layers or (virtual > 1 and pipeline == 1):
        return
    strategy = uniform(
        layers,
        pipeline=pipeline,
        virtual_stages=virtual,
        micro_batches=2 * pipeline,
        axis_order=order,
        tensor=t,
    )
    assert strategy.num_layers == layers
    assert strategy.num_devices == pipeline * t
    owned = sorted(
        layer
        for stage in strategy.stages
        for start, stop in stage.layers
        for layer in range(start, stop)
    )
    assert owned == list(range(layers))
