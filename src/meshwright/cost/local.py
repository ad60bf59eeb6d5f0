"""Local configurations: how one rank's share of a block looks, many at a time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from meshwright.graph import BATCH, CHOICE, Axis, Block, Op, Split, Tensor, axis_length

IntArray: TypeAlias = NDArray[np.int64]
FloatArray: TypeAlias = NDArray[np.float64]
BoolArray: TypeAlias = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalConfigs:
    """Local configurations as columns of equal length R.

    Attributes:
        micro_batch: sequences per micro-batch.
        tensor, sequence_parallel, context, expert, expert_tensor: degrees
            (``sequence_parallel`` is 0 or 1).
        context_algorithm: index into ``list(ContextAlgorithm)``.
    """

    micro_batch: IntArray
    tensor: IntArray
    sequence_parallel: IntArray
    context: IntArray
    context_algorithm: IntArray
    expert: IntArray
    expert_tensor: IntArray

    def __len__(self) -> int:
        return len(self.micro_batch)

    def columns(self) -> tuple[IntArray, ...]:
        """All columns, in field order."""
        return tuple(getattr(self, f.name) for f in fields(self))

    def take(self, index: IntArray) -> LocalConfigs:
        """The rows at ``index``."""
        return LocalConfigs(**{f.name: getattr(self, f.name)[index] for f in fields(self)})


def distinct(columns: Sequence[IntArray]) -> tuple[IntArray, IntArray]:
    """Index of one row of each distinct combination, and for each row its combination.

    Rows are packed into one integer each, which sorts an order of magnitude faster than a
    table of columns does.
    """
    key = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        values, codes = np.unique(column, return_inverse=True)
        key = key * len(values) + codes
    _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
    return first.astype(np.int64), inverse.astype(np.int64)


class Region(StrEnum):
    """Which part of the sequence a rank holds of a tensor, or works on in an op."""

    PLAIN = "plain"
    """Norms, residuals, routers: whole on tensor ranks, or split by sequence parallelism."""
    TENSOR = "tensor"
    """Between a column- and a row-parallel contraction: all tokens, a share of the width."""
    EXPERT = "expert"
    """On routed tokens: a share of the tokens, a share of the experts."""


def region_of(block: Block, axes: Sequence[str] | frozenset[str]) -> Region:
    """The region of an op or tensor that runs along ``axes``."""
    splits = {block.axis(name).split for name in axes}
    if CHOICE in axes or splits & {Split.EXPERT, Split.EXPERT_TENSOR}:
        return Region.EXPERT
    return Region.TENSOR if Split.TENSOR in splits else Region.PLAIN


class LocalShapes:
    """Lengths on one rank of the axes of one block, for every configuration.

    Args:
        block: whose axes.
        configs: R local configurations.
        seq_length: tokens of a whole sequence.
    """

    def __init__(self, block: Block, configs: LocalConfigs, *, seq_length: int) -> None:
        self.block = block
        self.configs = configs
        self.seq_length = seq_length
        self._axes = {axis.name: axis for axis in block.axes}
        self._tensors = {tensor.name: tensor for tensor in block.tensors}
        self._lengths: dict[tuple[str, Region], FloatArray | float] = {}
        self._elements: dict[str, FloatArray] = {}
        self._regions: dict[frozenset[str], Region] = {}

    def tensor(self, name: str) -> Tensor:
        """The tensor of that name."""
        return self._tensors[name]

    def region(self, axes: Iterable[str]) -> Region:
        """``region_of`` the axes in this block."""
        key = frozenset(axes)
        if key not in self._regions:
            self._regions[key] = region_of(self.block, key)
        return self._regions[key]

    def length(self, name: str, region: Region) -> FloatArray | float:
        """Length of an axis in a region: shape (R,), or a scalar when it never varies."""
        key = (name, region)
        if key not in self._lengths:
            self._lengths[key] = self._length(self._axes[name], region)
        return self._lengths[key]

    def _length(self, axis: Axis, region: Region) -> FloatArray | float:
        c = self.configs
        if axis.name == BATCH:
            return c.micro_batch.astype(np.float64)
        whole = axis_length(axis, batch=1.0, seq_length=float(self.seq_length))
        if axis.split is Split.CONTEXT:
            return whole / c.context / self.token_split(region)
        if axis.split is Split.TENSOR:
            return np.maximum(1.0, np.ceil(whole / c.tensor))
        if axis.split is Split.EXPERT:
            return whole / c.expert
        if axis.split is Split.EXPERT_TENSOR:
            return np.ceil(whole / c.expert_tensor)
        return whole

    def token_split(self, region: Region) -> FloatArray:
        """Ranks of the tensor group that share the tokens of a region."""
        c = self.configs
        if region is Region.TENSOR:
            return np.ones(len(c))
        if region is Region.EXPERT:
            return np.where(c.sequence_parallel > 0, c.tensor / c.expert_tensor, 1.0)
        return np.where(c.sequence_parallel > 0, c.tensor, 1).astype(np.float64)

    def product(self, axes: Sequence[str], region: Region) -> FloatArray:
        """Product of the lengths of ``axes``: shape (R,)."""
        result: FloatArray = np.ones(len(self.configs))
        for name in axes:
            result = result * self.length(name, region)
        return result

    def elements(self, tensor: str) -> FloatArray:
        """Elements of a tensor on one rank: shape (R,)."""
        if tensor not in self._elements:
            dims = self._tensors[tensor].dims
            self._elements[tensor] = self.product(dims, self.region(dims))
        return self._elements[tensor]

    def flops(self, op: Op) -> FloatArray:
        """Forward FLOPs of an op on one rank: shape (R,)."""
        region = self.region(op.axes)
        density = op.mask.density(self._mask_length(op)) if op.mask else 1.0
        total: FloatArray = np.zeros(len(self.configs))
        for term in op.terms:
            factor = term.factor * (density if term.masked else 1.0)
            total = total + factor * self.product(term.axes, region)
        return total

    def _mask_length(self, op: Op) -> int:
        """Keys of a whole sequence, split or not: the axis along which the second operand runs."""
        keys = self._axes[op.inputs[1].axes[1]]
        return max(1, round(axis_length(keys, batch=1.0, seq_length=float(self.seq_length))))
