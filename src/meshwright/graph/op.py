"""Ops on named axes.

An op is a set of iteration axes and, per operand, which axis each tensor dimension runs
along. From that one description follow its FLOPs, its bytes, which axes are reductions,
what sharding one of them leaves behind, and what must be communicated.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from math import prod


class OpKind(StrEnum):
    """Which law of cost an op follows."""

    MATMUL = "matmul"
    """Dense contraction on the matrix units."""
    GROUPED_MATMUL = "grouped_matmul"
    """One contraction per expert, each over the tokens routed to it."""
    ATTENTION = "attention"
    """Scaled dot-product attention: two contractions and a softmax between them."""
    CONV = "conv"
    """Convolution on the matrix units (patch embedding)."""
    EMBEDDING = "embedding"
    """Table look-up: a contraction over the vocabulary that moves bytes only."""
    NORM = "norm"
    """Normalisation over one axis; memory bound."""
    ELEMENTWISE = "elementwise"
    """Pointwise; memory bound. Activations, residual additions, dropout, rotations."""
    SCAN = "scan"
    """Recurrence over the sequence in chunks (Mamba, gated delta rule)."""
    ROUTER = "router"
    """Top-k choice of experts; memory bound."""
    DISPATCH = "dispatch"
    """Tokens to the ranks that hold their experts (all-to-all when experts are split)."""
    COMBINE = "combine"
    """Expert outputs back to their tokens (all-to-all when experts are split)."""
    LOSS = "loss"
    """Softmax cross-entropy over the vocabulary; memory bound."""


#: Ops that run on the matrix units; all others are bound by memory or latency.
MATRIX_KINDS = frozenset(
    {OpKind.MATMUL, OpKind.GROUPED_MATMUL, OpKind.ATTENTION, OpKind.CONV, OpKind.SCAN}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mask:
    """Which keys a query attends to.

    Attributes:
        causal: only keys at or before the query.
        window: at most this many keys back (sliding window), or ``None``.
        chunk: keys of the query's own chunk of this length only, or ``None``.
        top_k: at most this many keys, chosen by an indexer (sparse attention), or ``None``.
        stride: keys are first pooled by this factor (compressed attention).
    """

    causal: bool = True
    window: int | None = None
    chunk: int | None = None
    top_k: int | None = None
    stride: int = 1

    def density(self, length: int) -> float:
        """Mean share of ``length`` keys that a query of the same sequence attends to.

        Causal without a window: (n + 1) / 2n. With a window of w: the first w queries see
        a triangle, the rest a band. With chunks, each is a sequence of its own.

        >>> Mask(causal=False).density(1024)
        1.0
        >>> Mask().density(1)
        1.0
        >>> Mask(window=1).density(4)
        0.25
        """
        keys = max(1, length // self.stride)
        span = min(self.window or keys, self.top_k or keys)
        chunk = min(self.chunk or keys, keys)
        whole, rest = divmod(keys, chunk)
        pairs = whole * self._pairs(chunk, span) + self._pairs(rest, span)
        return pairs / (keys * keys) / self.stride

    def _pairs(self, length: int, span: int) -> float:
        """Pairs of query and key in ``length`` tokens when each query sees ``span`` keys."""
        span = min(length, span)
        if not self.causal:
            return float(length * span)
        return span * (span + 1) / 2 + (length - span) * span


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """One product of axis lengths in the count of floating-point operations."""

    factor: float
    axes: tuple[str, ...]
    masked: bool = False
    """Multiplied by the op's mask density (the products of attention)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Operand:
    """A tensor as an op reads or writes it: one iteration axis per tensor dimension."""

    tensor: str
    axes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Op:
    """One operation.

    Attributes:
        name: unique within its block.
        kind: the law of cost that it follows.
        inputs, outputs: operands with the axis of every dimension.
        terms: forward FLOPs as a sum of products of axis lengths.
        saved: names of the tensors that its backward needs. A tensor that several ops
            save is stored once.
        saved_fused: saved as well when the kernel is fused (the log-sum-exp of attention).
        saved_unfused: saved as well when it is not (the score matrices of attention).
        mask: for attention, who sees whom.
        fused: runs in the kernel of the op before it (key and value projections beside the
            query's, the up projection beside the gate's): no launch of its own.
    """

    name: str
    kind: OpKind
    inputs: tuple[Operand, ...]
    outputs: tuple[Operand, ...]
    terms: tuple[Term, ...] = ()
    saved: tuple[str, ...] = ()
    saved_fused: tuple[str, ...] = ()
    saved_unfused: tuple[str, ...] = ()
    mask: Mask | None = None
    fused: bool = False

    @property
    def axes(self) -> frozenset[str]:
        """Every axis the op iterates over."""
        operands = (axis for operand in self.inputs + self.outputs for axis in operand.axes)
        return frozenset(operands).union(*(term.axes for term in self.terms))

    @property
    def reductions(self) -> frozenset[str]:
        """Axes summed over: inputs have them, no output does.

        Of an op with contractions only axes of a contraction count: the heads of grouped keys
        run beside those of the queries, nothing is summed along them.
        """
        output_axes = {axis for operand in self.outputs for axis in operand.axes}
        summed = {axis for term in self.terms for axis in term.axes} or self.axes
        return frozenset(summed) - output_axes

    def flops(self, sizes: Mapping[str, float], *, length: int) -> float:
        """Forward floating-point operations (one multiply-add is two).

        Args:
            sizes: length of every axis that the terms name.
            length: tokens of a whole sequence, from which the mask's density follows.
        """
        density = self.mask.density(length) if self.mask else 1.0
        return sum(
            term.factor
            * prod(sizes[axis] for axis in term.axes)
            * (density if term.masked else 1.0)
            for term in self.terms
        )


def backward_factor(op: Op, *, learned: bool) -> float:
    """FLOPs of the backward of ``op`` as a multiple of its forward.

    A contraction repeats once per operand that needs a gradient: twice with a learned
    weight. Attention has four contractions in its backward for two in its forward (a fused
    kernel computes the scores once more, which ``cost`` adds where the kernel is chosen).
    """
    return 2.0 if op.kind is OpKind.ATTENTION or learned else 1.0
