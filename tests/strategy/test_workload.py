"""Workloads: bytes per parameter, and bad input at its edges."""

from __future__ import annotations

import math

import pytest

from meshwright.errors import WorkloadError
from meshwright.strategy import OPTIMIZERS, PRECISIONS, AttentionKernel, Workload
from meshwright.strategy.workload import MAX_GLOBAL_BATCH_SIZE, MAX_SEQ_LENGTH


def work(**changes):
    return Workload(**{"global_batch_size": 8, "seq_length": 128, **changes})


def test_tokens_and_bytes_by_hand():
    found = work()
    assert found.tokens_per_step == 1024
    assert found.optimizer_bytes == 4 + 8  # fp32 master copy, two moments
    assert work(precision="fp32").optimizer_bytes == 8
    assert work(optimizer="sgd").optimizer_bytes == 4


@pytest.mark.parametrize(
    ("field", "largest"),
    [("global_batch_size", MAX_GLOBAL_BATCH_SIZE), ("seq_length", MAX_SEQ_LENGTH)],
)
def test_counts_at_their_edges(field, largest):
    for value in (1, largest):
        assert getattr(work(**{field: value}), field) == value
    for value in (0, -1, largest + 1, 1.5, math.nan, math.inf, True, "8", None):
        with pytest.raises(WorkloadError) as caught:
            work(**{field: value})
        assert caught.value.where == f"workload.{field}"
        assert f"{largest:,}" in caught.value.allowed
        assert repr(value) in caught.value.what


def test_a_whole_number_with_a_point_is_stored_as_one():
    found = work(global_batch_size=16.0, seq_length=1e3)
    assert (found.global_batch_size, found.seq_length) == (16, 1000)
    assert isinstance(found.global_batch_size, int)
    assert isinstance(found.seq_length, int)


@pytest.mark.parametrize(
    ("field", "names"),
    [
        ("precision", list(PRECISIONS)),
        ("optimizer", list(OPTIMIZERS)),
        ("attention", [kernel.value for kernel in AttentionKernel]),
    ],
)
def test_choices(field, names):
    for name in names:
        assert getattr(work(**{field: name}), field) == name
    for bad in ("", "adamm", "BF16", 3, None):
        with pytest.raises(WorkloadError) as caught:
            work(**{field: bad})
        assert caught.value.where == f"workload.{field}"
        assert all(name in caught.value.allowed for name in names)


def test_a_near_miss_is_offered():
    with pytest.raises(WorkloadError) as caught:
        work(optimizer="adamm")
    assert "'adam'" in caught.value.fix
