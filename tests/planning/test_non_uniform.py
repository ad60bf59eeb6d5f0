"""Strategies whose stages differ: uneven layers, recomputation per layer, other degrees."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import meshwright
from meshwright.cluster import load_cluster
from meshwright.cost.compute import ComputeModel
from meshwright.cost.local import LocalShapes
from meshwright.cost.stacks import MODERN
from meshwright.graph import BlockRole
from meshwright.graph.sources import load_model
from meshwright.planning.predict import predict
from meshwright.strategy import (
    Offload,
    Recompute,
    RecomputeRun,
    Stage,
    Strategy,
    Workload,
)

from ..strategies import (  # noqa: TID252 - importlib mode
    H100,
    configs,
    gpt2_config,
    llama_config,
    mixtral_config,
    uniform,
    with_level,
)

LAYERS = 8
MODEL = load_model(llama_config(num_hidden_layers=LAYERS))
WORK = Workload(global_batch_size=16, seq_length=512)
modes = st.sampled_from(list(Recompute))


def estimate(strategy, *, cluster="1x8xH100", work=WORK, model=MODEL):
    return meshwright.estimate(model, cluster, work, strategy).prediction


def pipeline_of(cuts, runs=None, **degrees):
    """Stages of these many layers each; ``runs`` is a mode per layer."""
    stages, start = [], 0
    for count in cuts:
        own = runs[start : start + count] if runs else ()
        stages.append(
            Stage(
                layers=((start, start + count),),
                recompute=tuple(RecomputeRun(count=1, mode=mode) for mode in own),
                **degrees,
            )
        )
        start += count
    return Strategy(stages=tuple(stages), micro_batch_size=1, micro_batches=16 // stages[0].data)


def pass_seconds(block):
    """Forward and backward of a whole block on one H100, op by op."""
    shapes = LocalShapes(block, configs(), seq_length=512)
    compute = ComputeModel(shapes, H100, WORK, MODERN)
    times = [compute.time(op) for op in block.ops]
    return sum(float(t.forward_s[0]) for t in times), sum(float(t.backward_s[0]) for t in times)


def launch_waits(block):
    """How long the device waits for launches: one per op forward, two backward."""
    forward_s, backward_s = pass_seconds(block)
    launch_s = MODERN.launch_s * sum(not op.fused for op in block.ops)
    return max(0.0, launch_s - forward_s), max(0.0, 2 * launch_s - backward_s)


# ---------------------------------------------------------------- one device
@pytest.mark.parametrize(
    "config", [llama_config(), mixtral_config(), gpt2_config()], ids=lambda c: c["model_type"]
)
def test_degree_one_is_the_sum_of_the_ops_on_one_device(config):
    """No communication, no bubble: forward and backward of every op, and the optimizer."""
    model, cluster = load_model(config), load_cluster("1x1xH100")
    device = cluster.groups[0].device
    found = estimate(uniform(4, micro_batches=16), cluster=cluster, model=model)
    seconds = sum(run.count * sum(pass_seconds(run.block)) for run in model.runs)
    waits = sum(run.count * sum(launch_waits(run.block)) for run in model.runs)
    assert found.time.compute_s == pytest.approx(16 * seconds)
    assert found.time.launch_s == pytest.approx(16 * waits)
    assert waits > 0.0  # these models are small: the host is the slower one
    assert found.time.communication_s == found.time.bubble_s == found.time.data_total_s == 0.0
    assert found.time.recompute_s == 0.0
    states = found.memory[0]
    n = model.parameter_count(include_auxiliary=True)
    assert states.parameters_bytes == 2 * n
    assert states.gradients_bytes == 4 * n
    assert states.optimizer_bytes == 12 * n
    assert found.time.optimizer_s == pytest.approx(
        n * 30 / (device.memory_bandwidth_bytes_per_s * device.memory_efficiency)
    )
    assert found.step_time_s == pytest.approx(
        16 * (seconds + waits) + found.time.optimizer_s + MODERN.step_fixed_s
    )


# ---------------------------------------------------------------- uneven layers
def test_a_longer_stage_is_slower_and_fuller():
    even = estimate(pipeline_of([4, 4], data_shard=4))
    uneven = estimate(pipeline_of([6, 2], data_shard=4))
    assert uneven.step_time_s > even.step_time_s
    assert uneven.memory[0].total_bytes > even.memory[0].total_bytes
    assert uneven.memory[1].total_bytes < even.memory[1].total_bytes


@given(st.permutations([1, 2, 5]))
def test_every_cut_holds_every_parameter_once(cuts):
    found = estimate(pipeline_of([*cuts], data_shard=1), cluster="1x3xH100")
    held = sum(stage.parameters_bytes for stage in found.memory)
    assert held == 2 * MODEL.parameter_count()


def test_tied_embeddings_are_held_by_both_ends():
    model = load_model(gpt2_config())
    table = 1000 * 256
    for p, copies in ((1, 1), (2, 2), (4, 2)):
        found = estimate(
            uniform(4, pipeline=p, micro_batches=16), cluster=f"1x{p}xH100", model=model
        )
        held = sum(stage.parameters_bytes for stage in found.memory)
        assert held == 2 * (model.parameter_count() + (copies - 1) * table)


# ---------------------------------------------------------------- recomputation per layer
@settings(max_examples=25)
@given(st.lists(modes, min_size=LAYERS, max_size=LAYERS), st.integers(0, LAYERS - 1))
def test_more_recomputation_is_less_memory_and_more_time(runs, layer):
    more = [*runs]
    more[layer] = Recompute.FULL
    fused, unfused = WORK, replace(WORK, attention="unfused")
    for work in (fused, unfused):
        before = estimate(pipeline_of([5, 3], runs, data_shard=4), work=work)
        after = estimate(pipeline_of([5, 3], more, data_shard=4), work=work)
        assert after.step_time_s >= before.step_time_s
        for old, new in zip(before.memory, after.memory, strict=True):
            assert new.activations_bytes <= old.activations_bytes
        if runs[layer] is not Recompute.FULL:
            stage = 0 if layer < 5 else 1
            assert after.memory[stage].activations_bytes < before.memory[stage].activations_bytes
            assert after.hfu * after.step_time_s > before.hfu * before.step_time_s


def test_recomputation_runs_may_be_written_in_pieces():
    whole = (RecomputeRun(count=4, mode=Recompute.FULL),)
    pieces = tuple(RecomputeRun(count=2, mode=Recompute.FULL) for _ in range(2))
    one, other = (
        estimate(uniform(LAYERS, pipeline=2, micro_batches=4, data_shard=4, recompute=runs))
        for runs in (whole, pieces)
    )
    assert one == other


def test_recompute_seconds_by_hand():
    """Full recomputation repeats the forward of the layers, and nothing of the ends."""
    none = estimate(pipeline_of([8], data_shard=8))
    full = estimate(pipeline_of([8], [Recompute.FULL] * 8, data_shard=8))
    half = estimate(pipeline_of([8], [Recompute.FULL, Recompute.NONE] * 4, data_shard=8))
    layer = next(block for block in MODEL.blocks if block.role is BlockRole.LAYER)
    forward_s, _ = pass_seconds(layer)
    assert none.time.recompute_s == 0.0
    assert full.time.recompute_s == pytest.approx(2 * 8 * forward_s)  # two micro-batches
    assert half.time.recompute_s == pytest.approx(full.time.recompute_s / 2)


# ---------------------------------------------------------------- other degrees per stage
def test_stages_with_different_tensor_degrees():
    stages = (
        Stage(layers=((0, 6),), tensor=4, sequence_parallel=True, data_shard=2, zero_stage=1),
        Stage(layers=((6, 8),), tensor=2, data_shard=2),
    )
    mixed = Strategy(stages=stages, micro_batch_size=1, micro_batches=8)
    found = estimate(mixed, cluster="3x4xH100")
    first = estimate(
        uniform(
            LAYERS, tensor=4, sequence_parallel=True, data_shard=2, zero_stage=1, micro_batches=8
        )
    )
    # Three quarters of the layers on the same degrees: that much of the states, less the head.
    assert found.memory[0].parameters_bytes < first.memory[0].parameters_bytes
    layer = MODEL.blocks[1].parameter_count()
    assert found.memory[1].parameters_bytes > 2 * 2 * layer / 2
    assert found.memory[0].optimizer_bytes == 12 / 2 / 2 * found.memory[0].parameters_bytes
    assert found.memory[1].optimizer_bytes == 12 / 2 * found.memory[1].parameters_bytes


def test_equal_stages_are_a_uniform_strategy():
    """Writing the stages out changes nothing."""
    strategy = uniform(LAYERS, pipeline=4, tensor=2, micro_batches=16)
    again = Strategy(
        stages=tuple(replace(stage) for stage in strategy.stages),
        micro_batch_size=1,
        micro_batches=16,
    )
    assert estimate(strategy) == estimate(again)


@pytest.mark.parametrize("zero_stage", [1, 2, 3])
def test_offload_frees_memory_and_takes_time(zero_stage):
    here, host = (
        estimate(
            uniform(LAYERS, micro_batches=2, data_shard=8, zero_stage=zero_stage, offload=where)
        )
        for where in Offload
    )
    assert host.memory[0].optimizer_bytes == 0.0
    assert host.memory[0].total_bytes < here.memory[0].total_bytes
    assert host.time.optimizer_s > here.time.optimizer_s


def test_hybrid_sharding_keeps_more_and_gathers_inside_the_node():
    # V parameters over two slow nodes of 8. Full sharding gathers 2 V bytes twice and scatters
    # 4 V; half of each must enter a node through 8 ports: 8 V / 16. Hybrid sharding gathers
    # inside and all-reduces a rank's eighth of 4 V: 2 x 1/2 x 4 V / 8 through one port.
    slow = with_level(load_cluster("2x8xH100"), 1, bandwidth_bytes_per_s=1e-3)
    model, port = load_model("llama-3.1-8b"), 50e6 * 0.94
    full, hybrid = (
        estimate(
            uniform(32, data_replicate=16 // n, data_shard=n, micro_batches=1, zero_stage=3),
            cluster=slow,
            model=model,
        )
        for n in (16, 8)
    )
    assert hybrid.memory[0].parameters_bytes == 2 * full.memory[0].parameters_bytes
    assert hybrid.memory[0].optimizer_bytes == 2 * full.memory[0].optimizer_bytes
    expected = model.parameter_count() / 2 / port
    assert full.time.data_total_s == pytest.approx(expected, rel=0.02)
    assert hybrid.time.data_total_s == pytest.approx(expected, rel=0.02)


def test_interleaving_trades_bubble_for_messages():
    plain, interleaved = (
        estimate(uniform(LAYERS, pipeline=4, virtual_stages=v, micro_batches=8, data_shard=2))
        for v in (1, 2)
    )
    assert interleaved.time.bubble_s < plain.time.bubble_s
    assert interleaved.time.pipeline_s == pytest.approx(2 * plain.time.pipeline_s)
    assert interleaved.memory[0].activations_bytes > plain.memory[0].activations_bytes


def test_predictions_share_their_inputs_or_not():
    """A catalogue and models that the caller passes change nothing."""
    from meshwright.search.partitions import BlockCatalog
    from meshwright.search.uniform import device_models

    strategy, cluster = (
        uniform(LAYERS, pipeline=2, micro_batches=4, data_shard=4),
        load_cluster("1x8xH100"),
    )
    alone = predict(MODEL, cluster, WORK, strategy, coefficients=MODERN)
    shared = predict(
        MODEL,
        cluster,
        WORK,
        strategy,
        coefficients=MODERN,
        catalog=BlockCatalog(MODEL),
        models=device_models(cluster, MODERN),
    )
    assert alone == shared
