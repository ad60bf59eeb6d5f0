"""Cutting layers: balanced, weighted, interleaved; and who runs which stage."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from meshwright.cluster import load_cluster
from meshwright.graph import BlockRole
from meshwright.graph.sources import load_model
from meshwright.search.partitions import (
    BlockCatalog,
    Partition,
    enumerate_partitions,
    stage_classes,
    stage_devices,
    stage_speeds,
)
from meshwright.strategy import (
    Space,
    Workload,
    balanced_chunks,
    stage_ranges,
    weighted_chunks,
)

from ..strategies import gpt2_config, llama_config  # noqa: TID252 - importlib mode

WORK = Workload(global_batch_size=8, seq_length=256)


@pytest.mark.parametrize(
    ("layers", "chunks", "expected"),
    [
        (8, 4, (2, 2, 2, 2)),
        (10, 4, (2, 3, 3, 2)),
        (11, 4, (3, 3, 3, 2)),
        (9, 4, (2, 3, 2, 2)),
        (3, 1, (3,)),
        (4, 4, (1, 1, 1, 1)),
    ],
)
def test_balanced_by_hand(layers, chunks, expected):
    assert balanced_chunks(layers, chunks) == expected


@given(st.integers(1, 200), st.integers(1, 40))
def test_balanced_chunks_differ_by_one_layer_and_the_ends_are_small(layers, chunks):
    if chunks > layers:
        return
    found = balanced_chunks(layers, chunks)
    assert sum(found) == layers
    assert max(found) - min(found) <= 1
    assert found[-1] == min(found)


def cuts(layers, chunks):
    """Every way to cut, as layers per chunk."""
    for inner in combinations(range(1, layers), chunks - 1):
        edges = (0, *inner, layers)
        yield tuple(b - a for a, b in pairwise(edges))


@given(st.integers(1, 10), st.lists(st.floats(0.1, 10), min_size=1, max_size=4))
def test_weighted_chunks_have_the_least_bottleneck(layers, weights):
    if len(weights) > layers:
        return

    def bottleneck(cut):
        return max(Fraction(n) / Fraction(w) for n, w in zip(cut, weights, strict=True))

    found = weighted_chunks(layers, weights)
    assert sum(found) == layers
    assert min(found) >= 1
    assert bottleneck(found) == min(map(bottleneck, cuts(layers, len(weights))))


@given(st.integers(1, 60), st.integers(1, 8))
def test_equal_weights_are_balanced(layers, chunks):
    if chunks > layers:
        return
    assert sorted(weighted_chunks(layers, [2.5] * chunks)) == sorted(
        balanced_chunks(layers, chunks)
    )


@given(st.lists(st.integers(1, 5), min_size=1, max_size=12), st.data())
def test_stage_ranges_hold_every_layer_once(chunks, data):
    pipeline = data.draw(st.sampled_from([p for p in (1, 2, 3, 4) if len(chunks) % p == 0]))
    stages = stage_ranges(chunks, pipeline=pipeline)
    assert len(stages) == pipeline
    ordered = [stage[j] for j in range(len(chunks) // pipeline) for stage in stages]
    assert [stop - start for start, stop in ordered] == chunks
    layers = [layer for start, stop in ordered for layer in range(start, stop)]
    assert layers == list(range(sum(chunks)))


# ---------------------------------------------------------------- devices of stages
@pytest.mark.parametrize(
    ("cluster", "pipeline", "expected"),
    [
        ("2x8xH100", 4, [1, 1, 1, 1]),
        ("1x8xH100+1x8xA100-80GB", 4, [1, 1, 2, 2]),
        ("1x8xH100+1x8xA100-80GB", 1, [3]),
        ("1x8xH100+2x8xA100-80GB", 2, [3, 2]),
        ("1x8xH100+2x8xA100-80GB", 3, [1, 2, 2]),
        ("1x4xH100+1x4xA100-80GB+1x4xV100-32GB", 2, [3, 6]),
    ],
)
def test_stage_devices_by_hand(cluster, pipeline, expected):
    assert stage_devices(load_cluster(cluster), pipeline=pipeline) == expected


def test_a_stage_is_as_fast_as_its_slowest_device():
    cluster = load_cluster("1x8xH100+1x8xA100-80GB")
    fast, slow = (g.device.peak("bf16") * g.device.gemm_curve("bf16").limit for g in cluster.groups)
    assert stage_speeds(cluster, pipeline=4, precision="bf16") == [fast, fast, slow, slow]
    assert stage_speeds(cluster, pipeline=1, precision="bf16") == [slow]


# ---------------------------------------------------------------- partitions and classes
def test_partitions_of_equal_devices():
    space = Space(virtual_stages=(1, 2, 3))
    found = enumerate_partitions(
        space, layers=8, pipelines=[4, 1, 2], cluster=load_cluster("1x8xH100"), workload=WORK
    )
    assert [(p.pipeline, p.virtual_stages) for p in found] == [
        (1, 1),
        (2, 1),
        (2, 2),
        (2, 3),
        (4, 1),
        (4, 2),
    ]
    assert all(sum(p.chunk_layers) == 8 for p in found)


def test_only_even_cuts_where_the_space_asks_for_them():
    space = Space(virtual_stages=(1, 2, 3), uneven_layers=False)
    found = enumerate_partitions(
        space, layers=6, pipelines=[1, 2, 4], cluster=load_cluster("1x8xH100"), workload=WORK
    )
    assert [(p.pipeline, p.virtual_stages) for p in found] == [(1, 1), (2, 1), (2, 3)]


def test_mixed_devices_are_also_cut_by_speed():
    cluster = load_cluster("1x8xH100+1x8xA100-80GB")
    found = enumerate_partitions(
        Space(virtual_stages=(1,)), layers=16, pipelines=[2], cluster=cluster, workload=WORK
    )
    even, weighted = (p.chunk_layers for p in found)
    assert even == (8, 8)
    assert weighted[0] > weighted[1]
    assert sum(weighted) == 16


def test_classes_merge_equal_neighbours():
    model = load_model(llama_config(num_hidden_layers=10))
    catalog, cluster = BlockCatalog(model), load_cluster("1x8xH100")
    classes = stage_classes(
        Partition(pipeline=4, virtual_stages=1, chunk_layers=(2, 3, 3, 2)), catalog, cluster
    )
    assert [(c.first, c.multiplicity) for c in classes] == [(0, 1), (1, 2), (3, 1)]
    assert [sum(c.blocks) for c in classes] == [3, 3, 3]  # the ends embed, and end in a head
    assert sum(c.multiplicity for c in classes) == 4


def test_a_tied_table_is_held_once_on_one_stage_and_twice_on_two():
    model = load_model(gpt2_config())
    catalog = BlockCatalog(model)

    def copies(pipeline):
        return [
            catalog.variants[i].copies_tied
            for stage in range(pipeline)
            for i in catalog.end_variants(stage, pipeline=pipeline)
            if model.blocks[catalog.variants[i].block].role is BlockRole.HEAD
        ]

    assert copies(1) == [False]
    assert copies(2) == [True]
