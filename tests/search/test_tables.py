"""What UniformTables accepts, refuses and answers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from meshwright.cost.step import OverlapFactors
from meshwright.search import UniformTables
from meshwright.search._layout import LAYOUT


def test_arrays_are_converted_and_read_only(one_candidate):
    given_array = np.array([2], dtype=np.int64)
    tables = UniformTables(**one_candidate | {"data": given_array})
    assert tables.data.dtype == np.int32
    assert not tables.data.flags.writeable
    assert given_array.flags.writeable


def test_transposed_input_is_made_contiguous(make_tables):
    tables = make_tables(3)
    swapped = np.asfortranarray(tables.forward_s)
    again = make_tables(3, forward_s=swapped)
    assert again.forward_s.flags.c_contiguous
    assert (again.forward_s == tables.forward_s).all()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("forward_s", [[[np.nan]]]),
        ("forward_s", [[[np.inf]]]),
        ("forward_s", [[[-1.0]]]),
        ("forward_s", [[1.0]]),
        ("forward_s", [[[]]]),
        ("forward_s", [[["1"]]]),
        ("forward_s", [[[1.0, 2.0]]]),
        ("micro_batch", [0]),
        ("micro_batch", [1.5]),
        ("micro_batch", [2**31]),
        ("row_rule", [-2]),
        ("row_rule", [5]),
        ("base", [1]),
        ("hop_link", [1]),
        ("dense_link", [-1]),
        ("dense_shards", [0]),
        ("dense_ranks", [1]),  # below its 2 shards
        ("expert_ranks", [0]),
        ("scatter_s_per_byte", [-1.0]),
        ("scatter_latency_s", [0.0, 0.0]),
        ("partition_classes", [0, 2]),
        ("partition_classes", [1, 1]),
        ("class_multiplicity", [1]),
        ("class_first", [1]),
        ("class_blocks", [[1.5]]),
        ("class_devices", [0]),
        ("class_devices", [2]),
        ("modes", ()),
        ("mode_needs_shards", [0, 0]),
        ("mode_max_pipeline", [0]),
        ("mode_max_pipeline", [2**31]),
        ("optimizer_s_per_parameter", [[0.0], [0.0]]),
        ("overlap", OverlapFactors(gather=0.0, scatter=0.0, p2p=1.5, tail=0.0)),
        ("fixed_s", -1.0),
        ("fixed_s", float("nan")),
        ("global_batch", 0),
        ("global_batch", 2**31),
        ("rule_memory", 5),
        ("rule_zero_pipeline", 5),
        ("rule_zero_pipeline", -1),
        ("rule_batch", -1),
    ],
)
def test_refuses(one_candidate, name, value):
    with pytest.raises(ValueError, match=r"^UniformTables\."):
        UniformTables(**one_candidate | {name: value})


def test_partitions_must_ascend(make_tables):
    tables = make_tables(1)
    with pytest.raises(ValueError, match="partition_pipeline must ascend"):
        make_tables(1, partition_pipeline=tables.partition_pipeline[::-1])


@given(seed=st.integers(0, 2**32 - 1))
def test_candidates_add_up(make_tables, seed):
    tables = make_tables(seed)
    total = sum(
        len(tables.rows_of(s)) * len(tables.partitions_of(s)) * len(tables.modes)
        for s in range(tables.shapes)
    )
    assert tables.candidates == total


def test_every_array_field_has_a_layout(one_candidate):
    tables = UniformTables(**one_candidate)
    arrays = {name for name in UniformTables.__slots__ if hasattr(getattr(tables, name), "dtype")}
    assert arrays == set(LAYOUT)
