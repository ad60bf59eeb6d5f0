"""Model FLOPs of one step, and the bound they put on its time."""

from __future__ import annotations

import numpy as np

from meshwright.cluster import Cluster
from meshwright.cost.local import LocalConfigs, LocalShapes
from meshwright.graph import MATRIX_KINDS, Block, ModelGraph, Role, backward_factor
from meshwright.strategy import Workload


def forward_flops(block: Block, *, seq_length: int) -> tuple[float, float]:
    """FLOPs of one sequence through one block: (forward, backward), matrix ops only."""
    one = np.ones(1, dtype=np.int64)
    configs = LocalConfigs(
        micro_batch=one,
        tensor=one,
        sequence_parallel=0 * one,
        context=one,
        context_algorithm=0 * one,
        expert=one,
        expert_tensor=one,
    )
    shapes = LocalShapes(block, configs, seq_length=seq_length)
    forward = backward = 0.0
    for op in block.ops:
        if op.kind in MATRIX_KINDS:
            flops = float(shapes.flops(op)[0])
            learned = any(block.tensor(i.tensor).role is Role.PARAMETER for i in op.inputs)
            forward += flops
            backward += flops * backward_factor(op, learned=learned)
    return forward, backward


def model_flops(model: ModelGraph, workload: Workload) -> float:
    """FLOPs of one step over all devices: forward and backward, nothing repeated."""
    per_sequence = sum(
        run.count * sum(forward_flops(run.block, seq_length=workload.seq_length))
        for run in model.runs
    )
    return per_sequence * workload.global_batch_size


def cluster_peak(cluster: Cluster, precision: str) -> float:
    """FLOP/s of all devices together."""
    return sum(group.count * group.device.peak(precision) for group in cluster.groups)


def roofline_s(model: ModelGraph, cluster: Cluster, workload: Workload) -> float:
    """No strategy is faster: all FLOPs, spread evenly, at the peak of every device."""
    return model_flops(model, workload) / cluster_peak(cluster, workload.recipe.peak)
