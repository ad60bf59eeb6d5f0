"""Whole-model memory against published closed forms."""

from __future__ import annotations

import pytest

import meshwright
from meshwright.cluster import load_cluster
from meshwright.graph.sources import load_model
from meshwright.planning import uniform_strategy
from meshwright.strategy import Recompute, Workload

# Korthikanti et al. 2022, table 3: heads, hidden, layers, tensor, pipeline, virtual, micro-batch.
TABLE_3 = [
    ("megatron-22b", 64, 6144, 48, 8, 1, 1, 4),
    ("megatron-175b", 96, 12288, 96, 8, 8, 3, 1),
    ("megatron-530b", 128, 20480, 105, 8, 35, 3, 1),
    ("megatron-1t", 160, 25600, 128, 8, 64, 1, 1),
]


def first_stage(name, tensor, pipeline, virtual_stages, micro_batch, *, split, recompute):
    model = load_model(name)
    cluster = load_cluster(f"{tensor * pipeline // 8}x8xA100-80GB")
    work = Workload(
        global_batch_size=micro_batch * 8 * pipeline,
        seq_length=2048,
        precision="fp16",
        attention="unfused",
    )
    strategy = uniform_strategy(
        model,
        cluster,
        work,
        tensor=tensor,
        pipeline=pipeline,
        virtual_stages=virtual_stages,
        micro_batch_size=micro_batch,
        sequence_parallel=split,
        zero_stage=0,
        recompute=recompute,
    )
    return meshwright.estimate(model, cluster, work, strategy).prediction.memory[0]


@pytest.mark.parametrize(("name", "a", "h", "layers", "t", "p", "v", "b"), TABLE_3)
@pytest.mark.parametrize("split", [False, True])
@pytest.mark.parametrize("recompute", list(Recompute))
def test_activations_of_the_first_stage(name, a, h, layers, t, p, v, b, split, recompute):
    """Section 4.2.3, equation 5: L (1 + (p - 1)/(p v)) layers' activations, and the embedding.

    The embedding's dropout mask (s b h, over t with sequence parallelism) and its token
    numbers add a little per micro-batch in flight, p + (p - 1)/v of them.
    """
    s = 2048
    scores = 5 * a * s / h if recompute is Recompute.NONE else 0.0
    per_layer = (34 + scores) / t if split else 10 + (24 + scores) / t
    if recompute is Recompute.FULL:
        per_layer = 2 / t if split else 2.0
    in_flight = p * (1 + (p - 1) / (p * v)) if v > 1 else p
    expected = s * b * h * per_layer * layers / p * in_flight
    found = first_stage(name, t, p, v, b, split=split, recompute=recompute)
    ends = in_flight * s * b * (h / (t if split else 1) + 8)
    assert expected < found.activations_bytes <= (expected + ends) * (1 + 1e-9)


@pytest.mark.parametrize(("name", "a", "h", "layers", "t", "p", "v", "b"), TABLE_3)
def test_states_of_the_first_stage(name, a, h, layers, t, p, v, b):
    """12 L h^2 / (t p) parameters, 18 bytes each, and the table of tokens and positions."""
    del a
    found = first_stage(name, t, p, v, b, split=True, recompute=Recompute.SELECTIVE)
    states = found.parameters_bytes + found.gradients_bytes + found.optimizer_bytes
    weights = 12 * h * h * layers / p / t
    tables = (51200 / t + 2048) * h
    assert states == pytest.approx(18 * (weights + tables), rel=0.01)
