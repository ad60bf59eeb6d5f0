"""Laws that hold whatever the numbers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from meshwright.search import NO_PIPELINE_LIMIT, native
from meshwright.search._layout import LAYOUT

# Not the passes: what hides behind a shorter pass may come into view.
COSTS = (
    "boundary_bytes",
    "gather_latency_s",
    "gather_s_per_byte",
    "scatter_latency_s",
    "scatter_s_per_byte",
    "reduce_latency_s",
    "reduce_s_per_byte",
    "hop_latency_s",
    "hop_s_per_byte",
)
seeds = st.integers(0, 2**32 - 1)


def everything(tables):
    """Every fitting candidate, by index."""
    found = native.search_uniform(tables, top_k=max(1, tables.candidates))
    return {candidate.index: candidate for candidate in found.best}


@settings(max_examples=60, deadline=None)
@given(seed=seeds, name=st.sampled_from(COSTS), factor=st.floats(0.0, 1.0))
def test_cheaper_communication_is_never_slower(make_tables, seed, name, factor):
    tables = make_tables(seed, device_types=2)
    before = everything(tables)
    after = everything(replace(tables, **{name: getattr(tables, name) * factor}))
    assert before.keys() == after.keys()
    for index, candidate in after.items():
        assert candidate.step_s <= before[index].step_s * (1 + 1e-12)


@settings(max_examples=40, deadline=None)
@given(seed=seeds, factor=st.floats(1.0, 4.0))
def test_more_memory_excludes_nothing(make_tables, seed, factor):
    tables = make_tables(seed, device_types=2, tight=True)
    before = everything(tables)
    after = everything(replace(tables, capacity_bytes=tables.capacity_bytes * factor))
    assert before.keys() <= after.keys()
    for index, candidate in before.items():
        assert after[index].step_s == candidate.step_s
        assert after[index].peak_bytes == candidate.peak_bytes


@settings(max_examples=40, deadline=None)
@given(seed=seeds, replicas=st.integers(1, 4))
def test_replicas_leave_memory_alone_and_cost_time(make_tables, seed, replicas):
    tables = make_tables(seed, device_types=2)
    before = everything(tables)
    after = everything(
        replace(
            tables,
            dense_ranks=tables.dense_ranks * replicas,
            expert_ranks=tables.expert_ranks * replicas,
        )
    )
    assert before.keys() == after.keys()
    for index, candidate in before.items():
        assert after[index].step_s >= candidate.step_s
        assert after[index].peak_bytes == candidate.peak_bytes


@settings(max_examples=40, deadline=None)
@given(seed=seeds)
def test_a_pipeline_limit_takes_away_and_changes_nothing(make_tables, seed):
    tables = make_tables(seed, device_types=2)
    limit = np.full_like(tables.mode_max_pipeline, NO_PIPELINE_LIMIT)
    unlimited = everything(replace(tables, mode_max_pipeline=limit))
    limited = everything(tables)
    assert limited == {
        index: candidate
        for index, candidate in unlimited.items()
        if tables.pipeline[index[0]] <= tables.mode_max_pipeline[index[3]]
    }


@settings(max_examples=40, deadline=None)
@given(seed=seeds)
def test_a_step_is_no_shorter_than_the_work_of_any_stage(make_tables, seed):
    tables = make_tables(seed)
    for (shape, row, partition, _), candidate in everything(tables).items():
        micro_batches = tables.global_batch / (tables.data[shape] * tables.micro_batch[row])
        block_s = tables.forward_s[0, :, row] + tables.backward_s[0, :, row]
        for c in tables.classes_of(partition):
            work_s = micro_batches * float(tables.class_blocks[c] @ block_s)
            assert candidate.step_s >= work_s * (1 - 1e-12)


@settings(max_examples=40, deadline=None)
@given(seed=seeds)
def test_the_order_of_blocks_and_device_types_changes_nothing(make_tables, seed):
    tables = make_tables(seed, device_types=2, blocks=4)
    swapped = {
        name: np.flip(
            getattr(tables, name),
            [i for i, letter in enumerate(array.dimensions) if letter in "BT"],
        )
        for name, array in LAYOUT.items()
        if set(array.dimensions) & set("BT")
    }
    swapped["class_devices"] = np.array([0, 2, 1, 3])[tables.class_devices]
    before, after = everything(tables), everything(replace(tables, **swapped))
    assert before.keys() == after.keys()
    for index, candidate in before.items():
        assert after[index].step_s == pytest.approx(candidate.step_s, rel=1e-12)
        assert after[index].peak_bytes == pytest.approx(candidate.peak_bytes, rel=1e-12)


@settings(max_examples=40, deadline=None)
@given(seed=seeds)
def test_equal_stages_may_be_merged_or_not(make_tables, seed):
    tables = make_tables(seed, device_types=2)
    times = tables.class_multiplicity
    ends = np.concatenate([[0], np.cumsum(times)])
    places = np.arange(ends[-1]) - np.repeat(ends[:-1], times)
    split = replace(
        tables,
        partition_classes=ends[tables.partition_classes],
        class_blocks=np.repeat(tables.class_blocks, times, axis=0),
        class_devices=np.repeat(tables.class_devices, times),
        class_first=np.repeat(tables.class_first, times) + places,
        class_multiplicity=np.ones(ends[-1], np.int32),
    )
    before, after = everything(tables), everything(split)
    assert before.keys() == after.keys()
    for index, candidate in before.items():
        assert after[index].step_s == pytest.approx(candidate.step_s, rel=1e-12)
        assert after[index].peak_bytes == candidate.peak_bytes
