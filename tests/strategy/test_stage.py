"""Stages: what they derive, and what they refuse."""

from __future__ import annotations

import pytest

from meshwright.errors import StrategyError
from meshwright.strategy import Recompute, RecomputeRun, Stage


def test_degrees_by_hand():
    stage = Stage(
        layers=((0, 3), (8, 12)),
        tensor=4,
        context=2,
        data_replicate=2,
        data_shard=8,
        expert=16,
        expert_tensor=2,
    )
    assert stage.num_layers == 7
    assert stage.data == 16
    assert stage.num_devices == 4 * 2 * 16
    assert stage.expert_data == 128 // 32


def test_recompute_of_every_layer():
    runs = (
        RecomputeRun(count=1, mode=Recompute.FULL),
        RecomputeRun(count=2, mode=Recompute.SELECTIVE),
    )
    stage = Stage(layers=((4, 7),), recompute=runs)
    assert stage.recompute_of_layers() == (
        Recompute.FULL,
        Recompute.SELECTIVE,
        Recompute.SELECTIVE,
    )
    assert Stage(layers=((0, 2),)).recompute_of_layers() == (Recompute.NONE,) * 2


DEGREES = ("tensor", "context", "expert", "expert_tensor", "data_replicate", "data_shard")


@pytest.mark.parametrize("name", DEGREES)
@pytest.mark.parametrize("value", [0, -1, 1.5, True, "2", None])
def test_a_degree_is_a_positive_whole_number(name, value):
    with pytest.raises(StrategyError) as caught:
        Stage(layers=((0, 1),), **{name: value})
    assert caught.value.where == f"stage.{name}"
    assert repr(value) in caught.value.what
    assert caught.value.allowed
    assert caught.value.fix


@pytest.mark.parametrize("value", [-1, 4, 7])
def test_zero_stages_are_0_to_3(value):
    with pytest.raises(StrategyError, match=f"zero_stage is {value}"):
        Stage(layers=((0, 1),), zero_stage=value)


@pytest.mark.parametrize("layers", [((3, 2),), ((-1, 2),), ((0, 2), (5, 4))])
def test_layer_ranges_run_forwards(layers):
    with pytest.raises(StrategyError, match="layer range"):
        Stage(layers=layers)


@pytest.mark.parametrize("count", [1, 3])
def test_recompute_runs_cover_the_layers(count):
    runs = (RecomputeRun(count=count, mode=Recompute.FULL),)
    with pytest.raises(StrategyError) as caught:
        Stage(layers=((0, 2),), recompute=runs)
    assert str(count) in caught.value.what
    assert "2" in caught.value.what + caught.value.allowed


def test_expert_ranks_that_do_not_divide_print_every_factor():
    with pytest.raises(StrategyError) as caught:
        Stage(layers=((0, 1),), tensor=2, context=3, data_shard=5, expert=8, expert_tensor=2)
    what = caught.value.what
    for part in ("expert 8", "expert_tensor 2", "16", "tensor 2", "context 3", "data 5", "30"):
        assert part in what


def test_expert_tensor_divides_tensor():
    with pytest.raises(StrategyError, match="expert_tensor 4 does not divide tensor 2"):
        Stage(layers=((0, 1),), tensor=2, data_shard=8, expert_tensor=4)


def test_experts_may_use_all_ranks_of_the_stage():
    stage = Stage(layers=((0, 1),), tensor=2, context=2, data_shard=2, expert=4, expert_tensor=2)
    assert stage.expert_data == 1
