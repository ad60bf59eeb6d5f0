"""Speed of the native core on one thread, beside the Python reference.

Prints lines of ``name value unit``. The space is synthetic and of the size of a real one: a
dense transformer of 126 equal layers between an embedding and a head, on 16,384 devices, with
every power-of-two degree. A candidate counts only if its time and memory were both computed.

Usage: python benchmarks/core.py
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from itertools import product

import numpy as np

from meshwright.cost.step import OverlapFactors, StateMode
from meshwright.search import NO_PIPELINE_LIMIT, UniformResult, UniformTables, native, reference
from meshwright.search._layout import LAYOUT
from meshwright.units import GIB, GIGA, MEGA, MICROSECOND, MILLISECOND

DEVICES = 16_384
LAYERS = 126
GLOBAL_BATCH = 2_048
ROWS_PER_BASE = 96  # micro-batch x recomputation x sequence parallelism and the like
AXIS_ORDERS = 8
RUNS = 7
REFERENCE_SHAPES = 4

_WHOLE = StateMode(
    parameter_bytes=2.0,
    gradient_bytes=4.0,
    optimizer_bytes=12.0,
    parameter_sharded=False,
    gradient_sharded=False,
    optimizer_sharded=False,
    reduce_at_step=True,
    scatter_at_step=False,
    gather_at_step=False,
    scatter_per_micro_batch=False,
    gather_per_micro_batch=False,
    gather_bytes=2.0,
    reduce_bytes=4.0,
)
_SHARDED_STEP = replace(
    _WHOLE, optimizer_sharded=True, reduce_at_step=False, scatter_at_step=True, gather_at_step=True
)
_SHARDED_GRADIENTS = replace(
    _SHARDED_STEP, gradient_sharded=True, scatter_at_step=False, scatter_per_micro_batch=True
)
_SHARDED_ALL = replace(
    _SHARDED_GRADIENTS, parameter_sharded=True, gather_at_step=False, gather_per_micro_batch=True
)
MODES = (_WHOLE, _SHARDED_STEP, _SHARDED_GRADIENTS, _SHARDED_ALL)

FieldValue = object


def powers(limit: int) -> list[int]:
    """1, 2, 4, ... up to ``limit``."""
    return [2**i for i in range(limit.bit_length())]


def partition_fields(pipelines: list[int]) -> dict[str, FieldValue]:
    """First, middle and last stages for every pipeline degree and 1, 2 or 4 virtual stages."""
    cuts = [(p, v) for p in pipelines for v in (1, 2, 4) if v == 1 or 1 < p * v <= LAYERS]
    counts, first, multiplicity, ends = [], [], [], [0]
    for p, _ in cuts:
        per_stage = LAYERS // p
        if p == 1:
            parts = [(0, 1, (1.0, float(LAYERS), 1.0))]
        else:
            spare = LAYERS - per_stage * p
            parts = [(0, 1, (1.0, float(per_stage), 0.0))]
            if p > 2:
                parts.append((1, p - 2, (0.0, float(per_stage + (spare > 0)), 0.0)))
            parts.append((p - 1, 1, (0.0, float(per_stage), 1.0)))
        for position, stages, blocks in parts:
            first.append(position)
            multiplicity.append(stages)
            counts.append(blocks)
        ends.append(len(first))
    return {
        "partition_pipeline": np.array([p for p, _ in cuts]),
        "partition_virtual": np.array([v for _, v in cuts]),
        "partition_classes": np.array(ends),
        "class_blocks": np.array(counts),
        "class_first": np.array(first),
        "class_multiplicity": np.array(multiplicity),
        "class_devices": np.ones(len(first), np.uint32),
    }


def row_fields(rng: np.random.Generator, tensor: np.ndarray) -> dict[str, FieldValue]:
    """Rows for every base; ``tensor`` [Q] is the degree that divides a layer."""
    bases = len(tensor)
    rows = bases * ROWS_PER_BASE
    degree = np.repeat(tensor, ROWS_PER_BASE)
    micro_batch = np.tile(np.repeat([1, 2, 4, 8], ROWS_PER_BASE // 4), bases)
    work = micro_batch / degree
    scale = np.array([[0.2], [1.0], [0.6]])
    forward_s = 60 * MILLISECOND * scale * work * rng.uniform(1.0, 1.5, (3, rows))
    parameters = np.array([[2.1], [3.2], [2.1]]) * GIGA / tensor
    return {
        "micro_batch": micro_batch,
        "row_rule": np.full(rows, -1),
        "forward_s": forward_s[None],
        "backward_s": 2.0 * forward_s[None],
        "activation_bytes": 2.0 * GIB * scale * work * rng.uniform(0.1, 1.0, (3, rows)),
        "transient_bytes": 1.0 * GIB * scale * work * rng.uniform(0.5, 1.0, (3, rows)),
        "boundary_bytes": 256.0 * MEGA * work,
        "dense_parameters": parameters,
        "expert_parameters": np.zeros_like(parameters),
    }


def shape_fields(pipelines: list[int], tensors: list[int]) -> dict[str, FieldValue]:
    """Every product of degrees that uses all devices, under every axis order."""
    contexts = powers(16)
    degrees = [
        (base, p, DEVICES // (p * t * c))
        for (base, (t, c)), p in product(enumerate(product(tensors, contexts)), pipelines)
        if DEVICES % (p * t * c) == 0
    ]
    shapes = [(*degree, order) for degree in degrees for order in range(AXIS_ORDERS)]
    base, pipeline, data, order = np.array(shapes).T
    return {
        "base": base,
        "pipeline": pipeline,
        "data": data,
        "dense_link": order,
        "expert_link": order,
        "hop_link": (order + 3) % AXIS_ORDERS,
        "dense_shards": np.maximum(data, 2),
        "expert_shards": np.ones_like(data),
        "dense_ranks": np.maximum(data, 2),
        "expert_ranks": np.ones_like(data),
    }


def build(*, capacity_bytes: float) -> UniformTables:
    """The synthetic space."""
    rng = np.random.default_rng(405)
    pipelines, tensors = powers(64), powers(64)
    bases = np.array([t for t, _ in product(tensors, powers(16))])
    links = rng.uniform(1.0, 4.0, AXIS_ORDERS)
    fields: dict[str, FieldValue] = {
        **row_fields(rng, bases),
        **shape_fields(pipelines, tensors),
        "gather_latency_s": 20 * MICROSECOND * links,
        "gather_s_per_byte": links / (50 * GIGA),
        "scatter_latency_s": 20 * MICROSECOND * links,
        "scatter_s_per_byte": links / (50 * GIGA),
        "reduce_latency_s": 40 * MICROSECOND * links,
        "reduce_s_per_byte": 2 * links / (50 * GIGA),
        "hop_latency_s": 10 * MICROSECOND * links,
        "hop_s_per_byte": links / (50 * GIGA),
        **partition_fields(pipelines),
        "modes": MODES,
        "mode_needs_shards": np.array([0, 1, 1, 1]),
        "mode_max_pipeline": np.full(len(MODES), NO_PIPELINE_LIMIT),
        "optimizer_s_per_parameter": np.full((1, len(MODES)), 12 * MICROSECOND / MEGA),
        "capacity_bytes": np.array([capacity_bytes]),
        "framework_bytes": np.array([2.0 * GIB]),
        "overlap": OverlapFactors(gather=0.8, scatter=0.8, p2p=0.5, tail=0.05),
        "global_batch": GLOBAL_BATCH,
        "rules": 5,
        "rule_batch": 0,
        "rule_interleave": 1,
        "rule_unsharded": 2,
        "rule_zero_pipeline": 3,
        "rule_memory": 4,
    }
    return UniformTables(**fields)  # type: ignore[arg-type]


def subset(tables: UniformTables, shapes: slice) -> UniformTables:
    """The same space with fewer shapes."""
    names = [name for name, array in LAYOUT.items() if array.dimensions == "S"]
    return replace(tables, **{name: getattr(tables, name)[shapes] for name in names})


def timed(search: Callable[[], UniformResult]) -> tuple[float, UniformResult]:
    """Seconds that a search took, and what it found."""
    start = time.perf_counter()
    result = search()
    return time.perf_counter() - start, result


def median_speed(tables: UniformTables) -> tuple[float, UniformResult]:
    """Evaluated candidates per second on one thread, the median of several runs."""
    runs = [timed(lambda: native.search_uniform(tables, top_k=10)) for _ in range(RUNS)]
    result = runs[0][1]
    return result.evaluated / statistics.median(seconds for seconds, _ in runs), result


def main() -> None:
    """Measure and print."""
    roomy = build(capacity_bytes=1e6 * GIB)  # every candidate that no rule excludes fits
    real = build(capacity_bytes=80.0 * GIB)
    speed, result = median_speed(roomy)
    real_speed, real_result = median_speed(real)

    middle = roomy.shapes // 2
    few = subset(roomy, slice(middle, middle + REFERENCE_SHAPES))
    seconds, slow = timed(lambda: reference.search_uniform(few, top_k=10))
    reference_speed = slow.evaluated / seconds

    print(f"core_candidates {result.candidates} candidates")
    print(f"core_evaluated {result.evaluated} candidates")
    print(f"core_speed {speed:.0f} candidates/s")
    print(f"core_evaluated_80gib {real_result.evaluated} candidates")
    print(f"core_speed_80gib {real_speed:.0f} candidates/s")
    print(f"reference_speed {reference_speed:.0f} candidates/s")
    print(f"core_over_reference {speed / reference_speed:.0f} x")


if __name__ == "__main__":
    main()
