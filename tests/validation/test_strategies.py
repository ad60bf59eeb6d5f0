"""Strategies from the columns of a row."""

from __future__ import annotations

import pytest

from meshwright.strategy import Offload, Recompute, Schedule
from meshwright.validation.skips import RowSkippedError
from meshwright.validation.strategies import strategy_of


def strategy(make_runs, layers=8, **cells):
    (run,) = make_runs(cells)
    return strategy_of(run.inputs, num_layers=layers)


def test_degrees_and_batches(make_runs):
    found = strategy(make_runs)
    assert (found.pipeline, found.data, found.stages[0].tensor) == (2, 2, 2)
    assert (found.micro_batch_size, found.micro_batches) == (2, 8)
    assert found.schedule is Schedule.ONE_F_ONE_B
    assert found.stages[0].recompute_of_layers() == (Recompute.FULL,) * 4


def test_the_data_degree_and_the_micro_batch_follow_from_the_others(make_runs):
    found = strategy(make_runs, dp="", micro_batch="", num_microbatches=4)
    assert (found.data, found.micro_batch_size, found.micro_batches) == (2, 4, 4)


def test_virtual_stages_interleave_and_are_idle_without_a_pipeline(make_runs):
    assert strategy(make_runs, vpp=2).schedule is Schedule.INTERLEAVED
    assert strategy(make_runs, vpp=2, pp=1, dp=4).virtual_stages == 1


def test_the_ends_of_a_pipeline_may_have_no_layer(make_runs):
    """As Llama 3.1 405B on NVIDIA's recipes: 126 layers in 16 × 8 chunks."""
    found = strategy(make_runs, layers=6, tp=1, pp=4, dp=2, vpp=2, global_batch=32)
    assert [stage.num_layers for stage in found.stages] == [1, 2, 2, 1]
    with pytest.raises(RowSkippedError, match="8 chunks of 5 layers"):
        strategy(make_runs, layers=5, tp=1, pp=4, dp=2, vpp=2, global_batch=32)


@pytest.mark.parametrize(
    ("framework", "layers", "sizes"),
    [
        ("Megatron-DeepSpeed", 11, [3, 3, 3, 2]),
        ("Megatron-LM", 11, [3, 3, 3, 2]),
        ("Megatron-DeepSpeed", 13, [4, 4, 4, 1]),  # fills from the first
        ("Megatron-LM", 13, [3, 4, 3, 3]),
        ("Megatron-DeepSpeed", 14, [3, 4, 4, 3]),  # 16 with embedding and loss
        ("Megatron-DeepSpeed", 9, [2, 3, 2, 2]),  # 3 + 3 + 3 leave none for the last
    ],
)
def test_how_layers_are_cut(make_runs, framework, layers, sizes):
    found = strategy(
        make_runs, layers=layers, framework=framework, tp=1, pp=4, dp=2, global_batch=32
    )
    assert [stage.num_layers for stage in found.stages] == sizes


def test_alpas_heuristic_divides_every_tensor_over_all_devices(make_runs):
    cells = {"tp": 1, "pp": 1, "dp": 8, "micro_batch": 1, "global_batch": 8, "zero_stage": ""}
    found = strategy(make_runs, framework="Alpa intra-op: parax.heuristic", **cells)
    assert (found.stages[0].tensor, found.data, found.micro_batch_size) == (8, 1, 8)
    other = strategy(make_runs, framework="Alpa intra-op: parax.data_parallel", **cells)
    assert (other.stages[0].tensor, other.data, other.micro_batch_size) == (1, 8, 1)


@pytest.mark.parametrize(
    ("cells", "zero", "shard"),
    [
        ({"zero_stage": ""}, 0, 1),
        ({"zero_stage": "1"}, 1, 8),
        ({"zero_stage": "1 (shard group 4)"}, 1, 4),
        ({"zero_stage": "1 (shard group 64)"}, 1, 8),
        ({"zero_stage": "1 (shard group all dp)"}, 1, 8),
        ({"zero_stage": "1 (all dp)"}, 1, 8),
        ({"zero_stage": "3(megatron-fsdp)", "fsdp": 1}, 3, 8),
        ({"zero_stage": "3 (FSDP axis)", "fsdp": 1}, 3, 8),
        ({"zero_stage": "", "fsdp": 1}, 3, 8),
        ({"zero_stage": "2", "fsdp": 1}, 2, 8),
        ({"zero_stage": "ILP (auto, reduce-scatter allowed)"}, 2, 8),
    ],
)
def test_sharding(make_runs, cells, zero, shard):
    stage = strategy(make_runs, tp=1, pp=1, dp=8, **cells).stages[0]
    assert (stage.zero_stage, stage.data_shard, stage.data) == (zero, shard, 8)


F, S, N = Recompute.FULL, Recompute.SELECTIVE, Recompute.NONE


@pytest.mark.parametrize(
    ("text", "modes"),
    [
        ("", (N, N, N, N)),
        ("none", (N, N, N, N)),
        ("none_or_recipe_default", (N, N, N, N)),
        ("full", (F, F, F, F)),
        ("full (inferred from TFLOPS)", (F, F, F, F)),
        ("full:block:3", (F, F, F, N)),
        ("full:block:70", (F, F, F, F)),
        ("selective", (S, S, S, S)),
        ("selective:core_attention", (S, S, S, S)),
        ("selective(every other layer/op SAC)", (N, F, N, F)),
        ("selective(per-op)", (N, F, N, F)),
        ("selective:mlp", (N, F, N, F)),
        ("selective:moe+layernorm+core_attn+moe_act", (N, F, N, F)),
        ("selective:mla_up_proj", (N, N, N, N)),
        ("selective:layernorm+moe_act", (N, N, N, N)),
    ],
)
def test_recomputation(make_runs, text, modes):
    first = strategy(make_runs, recompute=text).stages[0]
    assert first.recompute_of_layers() == modes


def test_experts(make_runs):
    cells = {"moe_experts": 8, "ep": 4, "tp": 2, "pp": 1, "dp": 4}
    stage = strategy(make_runs, **cells).stages[0]
    assert (stage.expert, stage.expert_tensor, stage.sequence_parallel) == (4, 1, True)
    for more in ({"etp": 2}, {"framework": "NeMo"}):
        stage = strategy(make_runs, **cells | more).stages[0]
        assert (stage.expert, stage.expert_tensor) == (4, 2)
    stage = strategy(make_runs, **cells | {"framework": "NeMo", "etp": 1}).stages[0]
    assert (stage.expert, stage.expert_tensor) == (4, 1)


def test_a_degree_over_experts_is_idle_without_experts(make_runs):
    assert strategy(make_runs, ep=4).stages[0].expert == 1


@pytest.mark.parametrize(
    ("framework", "algorithm"),
    [("NeMo", "ring"), ("torchtitan", "all_gather"), ("Megatron-DeepSpeed (new)", "ulysses")],
)
def test_context_algorithms(make_runs, framework, algorithm):
    found = strategy(make_runs, cp=2, dp=1, framework=framework).stages[0]
    assert (found.context, found.context_algorithm.value) == (2, algorithm)


def test_offload(make_runs):
    assert strategy(make_runs, offload="cpu full").stages[0].offload is Offload.OPTIMIZER
    assert strategy(make_runs, offload="cpu_offload_layers=20").stages[0].offload is Offload.NONE


@pytest.mark.parametrize(
    ("cells", "key"),
    [
        ({"dp": 3}, "degrees_disagree"),
        ({"tp": 3, "dp": ""}, "degrees_disagree"),
        ({"global_batch": 31}, "degrees_disagree"),
        ({"micro_batch": ""}, "batch_missing"),
        ({"vpp": 2, "global_batch": 12}, "strategy_not_expressible"),
        ({"moe_experts": 8, "ep": 16}, "strategy_not_expressible"),
    ],
)
def test_what_does_not_agree_has_a_reason(make_runs, cells, key):
    with pytest.raises(RowSkippedError) as caught:
        strategy(make_runs, **cells)
    assert caught.value.key == key
