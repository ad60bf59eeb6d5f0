"""Random and hand-made spaces for the search tests."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest

from meshwright.cost.step import OverlapFactors, StateMode
from meshwright.search import NO_PIPELINE_LIMIT, UniformTables
from meshwright.search._layout import LAYOUT


def random_mode(rng):
    values = {}
    for field in fields(StateMode):
        is_flag = field.type == "bool"
        values[field.name] = bool(rng.integers(2)) if is_flag else float(rng.uniform(0, 8))
    return StateMode(**values)


def random_partitions(rng, *, device_types, blocks):
    """Two or three partitions for each of a few pipeline degrees."""
    pipelines, virtual, ends, first, multiplicity = [], [], [0], [], []
    for pipeline in sorted(rng.choice([1, 2, 3, 4, 8], size=3, replace=False)):
        for _ in range(rng.integers(1, 4)):
            cuts = rng.choice(np.arange(1, pipeline), size=min(2, pipeline - 1), replace=False)
            edges = [0, *sorted(cuts), pipeline]
            pipelines.append(pipeline)
            virtual.append(rng.choice([1, 1, 2, 3]))
            first += edges[:-1]
            multiplicity += list(np.diff(edges))
            ends.append(len(first))
    classes = len(first)
    return {
        "partition_pipeline": np.array(pipelines),
        "partition_virtual": np.array(virtual),
        "partition_classes": np.array(ends),
        "class_blocks": rng.integers(0, 5, (classes, blocks)).astype(float),
        "class_first": np.array(first),
        "class_multiplicity": np.array(multiplicity),
        "class_devices": rng.integers(1, 2**device_types, classes),
    }


def random_fields(seed, *, device_types, blocks, tight):
    rng = np.random.default_rng(seed)
    bases, rows_per_base, shapes, links, modes, rules = rng.integers(
        [4, 4, 4, 4, 4, 5], [7, 8, 10, 7, 8, 8]
    )
    t, b, r = device_types, blocks, bases * rows_per_base
    capacity = rng.uniform(20, 120, t) if tight else rng.uniform(1e3, 2e3, t)
    sparse = rng.random((b, bases)) < 0.5
    return {
        "micro_batch": rng.choice([1, 2, 3, 4], r),
        "row_rule": rng.choice([-1, -1, -1, 0, rules - 1], r),
        "forward_s": rng.uniform(0.01, 1, (t, b, r)),
        "backward_s": rng.uniform(0.01, 2, (t, b, r)),
        "activation_bytes": rng.uniform(0, 2, (b, r)),
        "transient_bytes": rng.uniform(0, 5, (b, r)),
        "boundary_bytes": rng.uniform(0, 1, r),
        "dense_parameters": rng.uniform(0.1, 1, (b, bases)),
        "expert_parameters": np.where(sparse, 0.0, rng.uniform(0.1, 1, (b, bases))),
        "base": rng.integers(0, bases, shapes),
        "pipeline": rng.choice([1, 2, 3, 4, 8], shapes),
        "data": rng.choice([1, 2, 4, 5], shapes),
        "dense_link": rng.integers(0, links, shapes),
        "expert_link": rng.integers(0, links, shapes),
        "hop_link": rng.integers(0, links, shapes),
        "dense_shards": (dense_shards := rng.choice([1, 2, 4], shapes)),
        "expert_shards": (expert_shards := rng.choice([1, 2], shapes)),
        "dense_ranks": dense_shards * rng.choice([1, 1, 2, 3], shapes),
        "expert_ranks": expert_shards * rng.choice([1, 2], shapes),
        "gather_latency_s": rng.uniform(0, 0.1, links),
        "gather_s_per_byte": rng.uniform(0, 0.5, links),
        "scatter_latency_s": rng.uniform(0, 0.15, links),
        "scatter_s_per_byte": rng.uniform(0, 0.7, links),
        "reduce_latency_s": rng.uniform(0, 0.2, links),
        "reduce_s_per_byte": rng.uniform(0, 1, links),
        "hop_latency_s": rng.uniform(0, 0.1, links),
        "hop_s_per_byte": rng.uniform(0, 0.5, links),
        **random_partitions(rng, device_types=t, blocks=b),
        "modes": tuple(random_mode(rng) for _ in range(modes)),
        "mode_needs_shards": rng.integers(0, 2, modes),
        "mode_max_pipeline": rng.choice([1, 2, 4, NO_PIPELINE_LIMIT, NO_PIPELINE_LIMIT], modes),
        "optimizer_s_per_parameter": rng.uniform(0, 0.5, (t, modes)),
        "capacity_bytes": capacity,
        "framework_bytes": rng.uniform(0, 3, t),
        "overlap": OverlapFactors(
            **dict(
                zip(
                    ("gather", "scatter", "p2p", "tail"), rng.uniform(0, 1, 4).tolist(), strict=True
                )
            )
        ),
        "fixed_s": float(rng.uniform(0, 1)),
        "global_batch": int(rng.choice([24, 60, 64])),
        "rules": int(rules),
        "rule_batch": 0,
        "rule_interleave": 1,
        "rule_unsharded": 2,
        "rule_zero_pipeline": 3,
        "rule_memory": 4,
    }


@pytest.fixture(scope="session")
def make_tables():
    """A function from a seed, and fields to replace, to a small random space."""

    def make(seed=0, *, device_types=1, blocks=3, tight=False, **replaced):
        drawn = random_fields(seed, device_types=device_types, blocks=blocks, tight=tight)
        return UniformTables(**{**drawn, **replaced})

    return make


@pytest.fixture(scope="session")
def repeat_shapes():
    """A function from a space to the same with its shapes repeated."""

    def repeat(tables, times):
        names = [name for name, array in LAYOUT.items() if array.dimensions == "S"]
        return replace(tables, **{n: np.tile(getattr(tables, n), times) for n in names})

    return repeat


@pytest.fixture(scope="session")
def plain_mode():
    """Everything kept whole on every rank: 2 + 2 + 12 bytes, gradients all-reduced."""
    return StateMode(
        parameter_bytes=2.0,
        gradient_bytes=2.0,
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


@pytest.fixture(scope="session")
def one_candidate(plain_mode):
    """Two stages of two equal blocks, one type, one of everything: fields to change."""
    return {
        "micro_batch": [1],
        "row_rule": [-1],
        "forward_s": [[[1.0]]],
        "backward_s": [[[2.0]]],
        "activation_bytes": [[3.0]],
        "transient_bytes": [[5.0]],
        "boundary_bytes": [4.0],
        "dense_parameters": [[10.0]],
        "expert_parameters": [[0.0]],
        "base": [0],
        "pipeline": [2],
        "data": [2],
        "dense_link": [0],
        "expert_link": [0],
        "hop_link": [0],
        "dense_shards": [2],
        "expert_shards": [1],
        "dense_ranks": [2],
        "expert_ranks": [1],
        "gather_latency_s": [0.0],
        "gather_s_per_byte": [0.0],
        "scatter_latency_s": [0.0],
        "scatter_s_per_byte": [0.0],
        "reduce_latency_s": [0.5],
        "reduce_s_per_byte": [0.01],
        "hop_latency_s": [0.25],
        "hop_s_per_byte": [0.125],
        "partition_pipeline": [2],
        "partition_virtual": [1],
        "partition_classes": [0, 1],
        "class_blocks": [[2.0]],
        "class_first": [0],
        "class_multiplicity": [2],
        "class_devices": [1],
        "modes": (plain_mode,),
        "mode_needs_shards": [0],
        "mode_max_pipeline": [NO_PIPELINE_LIMIT],
        "optimizer_s_per_parameter": [[0.05]],
        "capacity_bytes": [400.0],
        "framework_bytes": [7.0],
        "overlap": OverlapFactors(gather=0.0, scatter=0.0, p2p=0.5, tail=0.0),
        "fixed_s": 0.125,
        "global_batch": 8,
        "rules": 5,
        "rule_batch": 0,
        "rule_interleave": 1,
        "rule_unsharded": 2,
        "rule_zero_pipeline": 3,
        "rule_memory": 4,
    }
