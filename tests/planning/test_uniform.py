"""Strategies from degrees, and messages with every factor."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from meshwright.cluster import load_cluster
from meshwright.errors import MeshwrightError, StrategyError
from meshwright.graph.sources import load_model
from meshwright.planning import estimate, plan, uniform_strategy
from meshwright.strategy import Schedule, Space, Workload

MODEL, CLUSTER = load_model("llama-3.1-8b"), load_cluster("4x8xH100")
WORK = Workload(global_batch_size=64, seq_length=4096)


def strategy_of(**choices):
    return uniform_strategy(MODEL, CLUSTER, WORK, **choices)


def test_by_hand():
    found = strategy_of(tensor=4, pipeline=2, micro_batch_size=2)
    assert found.data == 4
    assert found.micro_batches == 8
    assert found.schedule is Schedule.ONE_F_ONE_B
    assert [stage.layers for stage in found.stages] == [((0, 16),), ((16, 32),)]
    for stage in found.stages:
        assert stage.sequence_parallel
        assert (stage.zero_stage, stage.data_shard, stage.data_replicate) == (1, 4, 1)


def test_interleaved():
    found = strategy_of(pipeline=4, virtual_stages=2)
    assert found.schedule is Schedule.INTERLEAVED
    assert found.stages[1].layers == ((4, 8), (20, 24))


def test_defaults_where_there_is_nothing_to_share():
    alone = uniform_strategy(MODEL, load_cluster("1x8xH100"), WORK, tensor=8)
    assert alone.stages[0].zero_stage == 0
    assert alone.data == 1
    assert not strategy_of().stages[0].sequence_parallel
    odd = Workload(global_batch_size=64, seq_length=4095)
    assert not uniform_strategy(MODEL, CLUSTER, odd, tensor=8).stages[0].sequence_parallel


def test_hybrid_sharding():
    stage = strategy_of(zero_stage=3, data_shard=8).stages[0]
    assert (stage.data_replicate, stage.data_shard) == (4, 8)


@pytest.mark.parametrize(
    ("choices", "words"),
    [
        ({"tensor": 3}, "tensor 3 × context 1 × pipeline 1 = 3 does not divide the 32 devices"),
        (
            {"tensor": 8, "pipeline": 2, "data": 4},
            "tensor 8 × context 1 × pipeline 2 × data 4 = 64, the cluster has 32 devices",
        ),
        ({"tensor": 8, "pipeline": 8, "data": 4}, "= 256, the cluster has 32"),
        (
            {"tensor": 8, "micro_batch_size": 5},
            "data 4 × micro-batch 5 = 20 does not divide the global batch of 64",
        ),
        (
            {"pipeline": 16, "virtual_stages": 4},
            "pipeline 16 × virtual stages 4 = 64 chunks, llama-3.1-8b has 32 layers",
        ),
        ({"tensor": 0}, "tensor is 0"),
        ({"data": -1}, "data is -1"),
        ({"context": True}, "context is True"),
        ({"micro_batch_size": 1.5}, "micro_batch_size is 1.5"),
        ({"axis_order": ("tensor", "data")}, "axis order"),
        ({"zero_stage": 7}, "zero_stage is 7"),
        ({"zero_stage": 1, "data_shard": 3}, "data_shard 3 does not divide data 32"),
        ({"zero_stage": 0, "data_shard": 2}, "ZeRO stage 0"),
        ({"expert": 3}, "expert 3"),
        ({"pipeline": 8, "virtual_stages": 2, "tensor": 1, "micro_batch_size": 8}, "2 micro-batch"),
    ],
)
def test_every_factor_is_printed(choices, words):
    with pytest.raises(StrategyError, match=words.replace("(", r"\(")) as caught:
        strategy_of(**choices)
    assert caught.value.where
    assert caught.value.allowed


def test_the_fix_of_a_wrong_product_works():
    with pytest.raises(StrategyError) as caught:
        strategy_of(tensor=8, pipeline=2, data=4)
    assert caught.value.fix == "use data 2, or leave it out"
    assert strategy_of(tensor=8, pipeline=2, data=2) == strategy_of(tensor=8, pipeline=2)


def test_equals_what_the_search_builds():
    best = plan(MODEL, CLUSTER, WORK, space=Space(tensor=(2,), pipeline=(4,)), top=1).best.strategy
    stage = best.stages[0]
    same = strategy_of(
        tensor=2,
        pipeline=4,
        context=stage.context,
        context_algorithm=stage.context_algorithm,
        virtual_stages=best.virtual_stages,
        micro_batch_size=best.micro_batch_size,
        zero_stage=stage.zero_stage,
        data_shard=stage.data_shard,
        sequence_parallel=stage.sequence_parallel,
        recompute=stage.recompute[0].mode,
        axis_order=best.axis_order,
    )
    assert same == best


def test_groups_of_a_mixed_cluster_follow_the_ranks():
    mixed = load_cluster("1x8xH100+1x8xA100-80GB")
    halves = uniform_strategy(MODEL, mixed, WORK, tensor=8, pipeline=2)
    assert [stage.groups for stage in halves.stages] == [(0,), (1,)]
    one = uniform_strategy(MODEL, mixed, WORK, tensor=8)
    assert one.stages[0].groups == (0, 1)


degrees = st.integers(-1, 40)


@given(
    choices=st.fixed_dictionaries(
        {"tensor": degrees, "pipeline": degrees},
        optional={
            "context": degrees,
            "data": degrees,
            "expert": degrees,
            "virtual_stages": degrees,
            "micro_batch_size": degrees,
            "zero_stage": st.integers(-1, 4),
            "data_shard": degrees,
        },
    )
)
def test_a_strategy_or_a_message(choices):
    try:
        found = strategy_of(**choices)
        done = estimate(MODEL, CLUSTER, WORK, found)
    except MeshwrightError:  # anything else fails the test
        return
    assert found.num_devices == 32
    assert found.num_layers == 32
    assert found.global_batch_size == 64
    assert done.prediction.step_time_s > 0
