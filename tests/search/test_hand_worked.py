"""Spaces small enough to work out by hand, in both implementations."""

from __future__ import annotations

from dataclasses import replace

import pytest

from meshwright.search import NO_PIPELINE_LIMIT, UniformTables, native, reference
from meshwright.search._layout import LAYOUT


@pytest.fixture(params=[native.search_uniform, reference.search_uniform], ids=["native", "python"])
def search(request):
    return request.param


def test_one_candidate(search, one_candidate):
    result = search(UniformTables(**one_candidate), top_k=3)
    (best,) = result.best
    assert result.pareto == result.best
    assert (result.candidates, result.evaluated, result.excluded) == (1, 1, (0, 0, 0, 0, 0))
    # m = 8 / 2 = 4; hop = 0.25 + 4 * 0.125 = 0.75, half of it hidden in the steady state.
    # Stage: 2 * (1 + 2) + 2 * 0.75 * 0.5 = 6.75. Busy 4 * 6.75 = 27; fill 6.75 and the
    # hidden half of 2 * (2 - 1) hops, 0.75. All-reduce of 2 blocks, 20 parameters of 4 bytes:
    # 2 * 0.5 + 80 * 0.01 = 1.8. Update 20 * 0.05 = 1. Host 0.125.
    assert best.step_s == pytest.approx(27 + 6.75 + 0.75 + 1.8 + 1 + 0.125, rel=1e-12)
    # 20 parameters of 16 bytes, 2 micro-batches of 2 * 3 bytes, 5 transient, 7 framework.
    assert best.peak_bytes == pytest.approx(320 + 12 + 5 + 7, rel=1e-12)
    assert best.headroom_bytes == pytest.approx(400 - 344, rel=1e-12)


@pytest.fixture
def full_sharding(plain_mode):
    return replace(
        plain_mode,
        parameter_sharded=True,
        gradient_sharded=True,
        optimizer_sharded=True,
        reduce_at_step=False,
        scatter_per_micro_batch=True,
        gather_per_micro_batch=True,
    )


def test_full_sharding(search, one_candidate, full_sharding):
    fields = one_candidate | {
        "modes": (full_sharding,),
        "gather_latency_s": [0.125],
        "gather_s_per_byte": [0.0625],
        "scatter_latency_s": [0.125],
        "scatter_s_per_byte": [0.0625],
    }
    (best,) = search(UniformTables(**fields), top_k=1).best
    # A gather takes 2 * 0.125 + 20 * 2 * 0.0625 = 2.75, a scatter 0.25 + 20 * 4 * 0.0625 = 5.25;
    # none hidden: 2.75 before the forward, 8 in the backward. Stage 6.75 + 10.75 = 17.5.
    # Update of the 10 owned: 0.5.
    assert best.step_s == pytest.approx(4 * 17.5 + 17.5 + 0.75 + 0.5 + 0.125, rel=1e-12)
    # 10 owned of 16 bytes; two gathered blocks of 10 * 2, one gradient of 10 * 4.
    assert best.peak_bytes == pytest.approx(160 + 12 + 5 + 7 + 40 + 40, rel=1e-12)


# 2 shards x 4 replicas: a gather stays among the shards, a scatter also meets the replicas.
HYBRID = {
    "dense_ranks": [8],
    "gather_latency_s": [0.125],
    "gather_s_per_byte": [0.0625],
    "scatter_latency_s": [0.25],
    "scatter_s_per_byte": [0.125],
}


def test_hybrid_sharding(search, one_candidate, full_sharding):
    fields = one_candidate | HYBRID | {"modes": (full_sharding,)}
    (best,) = search(UniformTables(**fields), top_k=1).best
    # A gather takes 2 * 0.125 + 20 * 2 * 0.0625 = 2.75, a scatter 2 * 0.25 + 20 * 4 * 0.125 =
    # 10.5: 2.75 before the forward, 13.25 in the backward. Stage 6.75 + 16 = 22.75.
    assert best.step_s == pytest.approx(5 * 22.75 + 0.75 + 0.5 + 0.125, rel=1e-12)
    # As without replicas: only the 2 shards divide a state.
    assert best.peak_bytes == pytest.approx(160 + 12 + 5 + 7 + 40 + 40, rel=1e-12)


def test_hybrid_sharding_of_the_optimizer(search, one_candidate, plain_mode):
    mode = replace(
        plain_mode,
        optimizer_sharded=True,
        reduce_at_step=False,
        scatter_at_step=True,
        gather_at_step=True,
    )
    (best,) = search(UniformTables(**one_candidate | HYBRID | {"modes": (mode,)}), top_k=1).best
    # Once per step a scatter of 10.5 and a gather of 2.75; the update of the 10 owned.
    assert best.step_s == pytest.approx(5 * 6.75 + 0.75 + 13.25 + 0.5 + 0.125, rel=1e-12)
    assert best.peak_bytes == pytest.approx(20 * 4 + 10 * 12 + 12 + 5 + 7, rel=1e-12)


@pytest.mark.parametrize(("ranks", "scatter_s"), [(1, 0.0), (2, 10.5)])
def test_replicas_of_one_shard_reduce_but_do_not_gather(
    search, one_candidate, full_sharding, ranks, scatter_s
):
    alone = HYBRID | {
        "modes": (full_sharding,),
        "dense_shards": [1],
        "dense_ranks": [ranks],
        "capacity_bytes": [500.0],
    }
    (best,) = search(UniformTables(**one_candidate | alone), top_k=1).best
    # Nothing is divided, so the update is of all 20 and keeps them all.
    assert best.peak_bytes == pytest.approx(320 + 12 + 5 + 7 + 40 + 40, rel=1e-12)
    assert best.step_s == pytest.approx(5 * (6.75 + scatter_s) + 0.75 + 1 + 0.125, rel=1e-12)


@pytest.mark.parametrize(("ranks", "reduce_s"), [(1, 0.0), (2, 1.8)])
def test_all_reduce_is_over_all_ranks(search, one_candidate, ranks, reduce_s):
    alone = {"dense_shards": [1], "dense_ranks": [ranks]}
    (best,) = search(UniformTables(**one_candidate | alone), top_k=1).best
    assert best.step_s == pytest.approx(5 * 6.75 + 0.75 + reduce_s + 1 + 0.125, rel=1e-12)


def test_experts_have_shards_and_ranks_of_their_own(search, one_candidate, full_sharding):
    fields = one_candidate | {
        "modes": (full_sharding,),
        "dense_parameters": [[0.0]],
        "expert_parameters": [[10.0]],
        "dense_ranks": [8],
        "capacity_bytes": [500.0],
        "expert_shards": [2],
        "expert_ranks": [4],
        "expert_link": [1],
        "gather_latency_s": [9.0, 0.125],
        "gather_s_per_byte": [9.0, 0.0625],
        "scatter_latency_s": [9.0, 0.25],
        "scatter_s_per_byte": [9.0, 0.125],
        "reduce_latency_s": [9.0, 9.0],
        "reduce_s_per_byte": [9.0, 9.0],
        "hop_latency_s": [0.25, 9.0],
        "hop_s_per_byte": [0.125, 9.0],
    }
    (best,) = search(UniformTables(**fields), top_k=1).best
    assert best.step_s == pytest.approx(5 * 22.75 + 0.75 + 0.5 + 0.125, rel=1e-12)
    # One expert shard beside four replicas: a scatter of 10.5 and nothing to gather.
    (best,) = search(UniformTables(**fields | {"expert_shards": [1]}), top_k=1).best
    assert best.step_s == pytest.approx(5 * (6.75 + 10.5) + 0.75 + 1 + 0.125, rel=1e-12)


def test_a_pipeline_limit_excludes_one_mode_of_the_deeper_shapes(search, one_candidate, plain_mode):
    """Shapes of 2 and 4 stages, modes limited to 2, to 1 and not at all."""
    shape_names = [name for name, array in LAYOUT.items() if array.dimensions == "S"]
    fields = one_candidate | {
        **{name: one_candidate[name] * 2 for name in shape_names},
        "pipeline": [2, 4],
        "partition_pipeline": [2, 4, 4],
        "partition_virtual": [1, 1, 1],
        "partition_classes": [0, 1, 2, 3],
        "class_blocks": [[2.0], [1.0], [1.0]],
        "class_first": [0, 0, 0],
        "class_multiplicity": [2, 4, 4],
        "class_devices": [1, 1, 1],
        "modes": (plain_mode,) * 3,
        "mode_needs_shards": [0] * 3,
        "mode_max_pipeline": [2, 1, NO_PIPELINE_LIMIT],
        "optimizer_s_per_parameter": [[0.0] * 3],
    }
    result = search(UniformTables(**fields), top_k=9)
    # One of the 3 candidates with 2 stages; two of 3 modes under both cuts into 4.
    assert result.excluded == (0, 0, 0, 1 + 2 * 2, 0)
    assert sorted(c.index for c in result.best) == [
        (0, 0, 0, 0),
        (0, 0, 0, 2),
        (1, 0, 1, 2),
        (1, 0, 2, 2),
    ]


def test_the_slowest_type_of_a_class_counts(search, one_candidate):
    fields = one_candidate | {
        "forward_s": [[[1.0]], [[2.0]]],
        "backward_s": [[[2.0]], [[4.0]]],
        "optimizer_s_per_parameter": [[0.05], [0.01]],
        "capacity_bytes": [400.0, 350.0],
        "framework_bytes": [7.0, 8.0],
        "class_devices": [3],
    }
    (best,) = search(UniformTables(**fields), top_k=1).best
    # Stage on the second type: 2 * 6 + 0.75 = 12.75; the first type is last to update.
    assert best.step_s == pytest.approx(5 * 12.75 + 0.75 + 1.8 + 1 + 0.125, rel=1e-12)
    assert best.peak_bytes == pytest.approx(345, rel=1e-12)
    assert best.headroom_bytes == pytest.approx(350 - 345, rel=1e-12)


@pytest.mark.parametrize(("capacity", "fits"), [(344.0, True), (343.75, False)])
def test_memory_at_its_edge(search, one_candidate, capacity, fits):
    result = search(UniformTables(**one_candidate | {"capacity_bytes": [capacity]}), top_k=1)
    assert bool(result.best) is fits
    assert result.excluded == (0, 0, 0, 0, 0 if fits else 1)
    if fits:
        assert result.nearest_misfit is None
    else:
        assert result.nearest_misfit.headroom_bytes == pytest.approx(-0.25, rel=1e-9)
        assert result.nearest_misfit.step_s == pytest.approx(37.425, rel=1e-12)


@pytest.mark.parametrize(
    ("changes", "excluded"),
    [
        ({"row_rule": [4], "global_batch": 7}, (0, 0, 0, 0, 1)),  # the row's rule comes first
        ({"global_batch": 7}, (1, 0, 0, 0, 0)),
        ({"global_batch": 6, "partition_virtual": [2]}, (0, 1, 0, 0, 0)),  # m = 3, p = 2
        ({"mode_needs_shards": [1], "dense_shards": [1]}, (0, 0, 1, 0, 0)),
        (
            {
                "mode_needs_shards": [1],
                "dense_shards": [1],
                "expert_shards": [2],
                "expert_ranks": [2],
            },
            (0, 0, 0, 0, 0),
        ),
        ({"mode_max_pipeline": [2]}, (0, 0, 0, 0, 0)),  # p = 2
        ({"mode_max_pipeline": [1], "capacity_bytes": [1.0]}, (0, 0, 0, 1, 0)),
        ({"mode_max_pipeline": [1], "partition_virtual": [2], "global_batch": 6}, (0, 1, 0, 0, 0)),
        (
            {"mode_max_pipeline": [1], "mode_needs_shards": [1], "dense_shards": [1]},
            (0, 0, 1, 0, 0),
        ),
        ({"capacity_bytes": [1.0]}, (0, 0, 0, 0, 1)),
    ],
)
def test_rules(search, one_candidate, changes, excluded):
    result = search(UniformTables(**one_candidate | changes), top_k=1)
    assert result.excluded == excluded
    assert result.evaluated == 1 - sum(excluded)


def test_virtual_stages_need_a_pipeline(search, one_candidate):
    fields = one_candidate | {
        "pipeline": [1],
        "partition_pipeline": [1],
        "partition_virtual": [2],
        "class_multiplicity": [1],
    }
    assert search(UniformTables(**fields), top_k=1).excluded == (0, 1, 0, 0, 0)


def test_a_rule_counts_the_whole_subtree(search, one_candidate, plain_mode):
    """A row that is excluded takes 2 partitions x 3 modes with it."""
    fields = one_candidate | {
        "row_rule": [2],
        "partition_pipeline": [2, 2],
        "partition_virtual": [1, 1],
        "partition_classes": [0, 1, 2],
        "class_blocks": [[2.0], [1.0]],
        "class_first": [0, 0],
        "class_multiplicity": [2, 2],
        "class_devices": [1, 1],
        "modes": (plain_mode,) * 3,
        "mode_needs_shards": [0] * 3,
        "mode_max_pipeline": [NO_PIPELINE_LIMIT] * 3,
        "optimizer_s_per_parameter": [[0.0] * 3],
    }
    result = search(UniformTables(**fields), top_k=1)
    assert (result.candidates, result.excluded) == (6, (0, 0, 6, 0, 0))


def test_a_shape_without_partitions_has_no_candidates(search, one_candidate):
    result = search(UniformTables(**one_candidate | {"pipeline": [4]}), top_k=1)
    assert (result.candidates, result.evaluated, result.best) == (0, 0, ())
    assert result.complete


def test_ties_fall_to_the_enumeration(search, one_candidate, plain_mode):
    fields = one_candidate | {
        "modes": (plain_mode,) * 3,
        "mode_needs_shards": [0] * 3,
        "mode_max_pipeline": [NO_PIPELINE_LIMIT] * 3,
        "optimizer_s_per_parameter": [[0.0] * 3],
    }
    result = search(UniformTables(**fields), top_k=2)
    assert [c.mode for c in result.best] == [0, 1]
    assert [c.mode for c in result.pareto] == [0]


def test_of_equal_times_the_smaller_peak_is_better(search, one_candidate, plain_mode):
    modes = tuple(replace(plain_mode, optimizer_bytes=size) for size in (12.0, 8.0, 10.0))
    fields = one_candidate | {
        "modes": modes,
        "mode_needs_shards": [0] * 3,
        "mode_max_pipeline": [NO_PIPELINE_LIMIT] * 3,
        "optimizer_s_per_parameter": [[0.0] * 3],
    }
    result = search(UniformTables(**fields), top_k=1)
    assert [c.mode for c in result.best] == [1]
    assert [c.mode for c in result.pareto] == [1]


def test_of_equal_peaks_only_the_fastest_is_in_the_front(search, one_candidate, plain_mode):
    fields = one_candidate | {
        "modes": (plain_mode,) * 3,
        "mode_needs_shards": [0] * 3,
        "mode_max_pipeline": [NO_PIPELINE_LIMIT] * 3,
        "optimizer_s_per_parameter": [[0.03, 0.01, 0.02]],
    }
    result = search(UniformTables(**fields), top_k=3)
    assert [c.mode for c in result.best] == [1, 2, 0]
    assert [c.mode for c in result.pareto] == [1]


def test_stage_terms(one_candidate):
    tables = UniformTables(**one_candidate | HYBRID)
    (terms,) = reference.stage_terms(tables, shape=0, row=0, partition=0, mode=0, device=0)
    assert (terms.position, terms.multiplicity, terms.blocks) == (0, 2, 2)
    assert (terms.forward.total_s, terms.backward.total_s, terms.hop_s) == (2.0, 4.0, 0.75)
    assert (terms.activation_bytes, terms.transient_bytes) == (6.0, 5.0)
    assert (terms.dense_parameters, terms.largest_block_parameters) == (20.0, 10.0)
    assert (terms.dense_group.shards, terms.dense_group.reduce_latency_s) == (2, 0.5)
    assert (terms.dense_group.ranks, terms.expert_group.ranks) == (8, 1)
    assert (terms.dense_group.gather_latency_s, terms.dense_group.gather_s_per_byte) == (
        0.125,
        0.0625,
    )
    assert (terms.dense_group.scatter_latency_s, terms.dense_group.scatter_s_per_byte) == (
        0.25,
        0.125,
    )
    assert (terms.capacity_bytes, terms.framework_bytes) == (400.0, 7.0)
