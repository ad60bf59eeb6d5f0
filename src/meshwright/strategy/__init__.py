"""Workloads, strategies, and the space of strategies."""

from __future__ import annotations

from meshwright.strategy.equal_stages import equal_stages
from meshwright.strategy.mesh import (
    AXIS_ORDERS,
    MESH_AXES,
    TENSOR_INNERMOST,
    Mesh,
    check_axis_order,
    mesh_of,
)
from meshwright.strategy.partition import balanced_chunks, stage_ranges, weighted_chunks
from meshwright.strategy.space import DEGREES, MICRO_BATCH_SIZES, VIRTUAL_STAGES, Space
from meshwright.strategy.stage import ContextAlgorithm, Offload, Recompute, RecomputeRun, Stage
from meshwright.strategy.strategy import Schedule, Strategy
from meshwright.strategy.target import Target, find_target, target_names
from meshwright.strategy.workload import (
    OPTIMIZERS,
    PRECISIONS,
    AttentionKernel,
    PrecisionRecipe,
    Workload,
)

__all__ = [
    "AXIS_ORDERS",
    "DEGREES",
    "MESH_AXES",
    "MICRO_BATCH_SIZES",
    "OPTIMIZERS",
    "PRECISIONS",
    "TENSOR_INNERMOST",
    "VIRTUAL_STAGES",
    "AttentionKernel",
    "ContextAlgorithm",
    "Mesh",
    "Offload",
    "PrecisionRecipe",
    "Recompute",
    "RecomputeRun",
    "Schedule",
    "Space",
    "Stage",
    "Strategy",
    "Target",
    "Workload",
    "balanced_chunks",
    "check_axis_order",
    "equal_stages",
    "find_target",
    "mesh_of",
    "stage_ranges",
    "target_names",
    "weighted_chunks",
]
