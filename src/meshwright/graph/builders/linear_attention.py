"""Linear attention: the gated delta rule and lightning attention, computed in chunks.

Legend: T tokens, C chunk length, H heads with keys of width K and values of width V.

Gated delta rule (Yang et al., arXiv 2412.06464, section 3.3; chunk form of
arXiv 2406.06484, section 3.2), per head and sequence::

    K K^T, Q K^T               4 T C K
    inverse of (I + tril)      T C^2 / 3      triangular, C^3 / 3 per chunk
    W = A K, U = A V           2 T C (K + V)
    U - W S, Q S, S + K^T U    6 T K V
    (Q K^T) U                  2 T C V

Lightning attention (Qin et al., arXiv 2405.17381, section 3)::

    Q K^T, (Q K^T) V           2 T C (K + V)
    Q S, S + K^T V             4 T K V
"""

from __future__ import annotations

from dataclasses import dataclass

from meshwright.graph.axis import BATCH, SEQ, Split
from meshwright.graph.builders.builder import BlockBuilder
from meshwright.graph.builders.mamba import causal_conv, chunk_axis
from meshwright.graph.op import OpKind, Term
from meshwright.graph.tensor import Dtype

#: Tokens per chunk of the public kernels for the gated delta rule.
DELTA_CHUNK = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class DeltaNetSpec:
    """Shape of one gated delta net mixer.

    Attributes:
        key_heads, key_dim: of queries and keys, repeated to the value heads.
        value_heads, value_dim: of values, of the gate and of the state.
        kernel: taps of the causal convolution.
        chunk: tokens per chunk.
    """

    key_heads: int
    key_dim: int
    value_heads: int
    value_dim: int
    kernel: int
    chunk: int = DELTA_CHUNK


def gated_delta_net(b: BlockBuilder, x: str, spec: DeltaNetSpec) -> str:
    """The mixer on ``x`` (batch, seq, hidden)."""
    key_head = b.axis("delta_key_head", spec.key_heads, Split.TENSOR)
    head = b.axis("delta_head", spec.value_heads, Split.TENSOR)
    key_dim = b.axis("delta_key_dim", spec.key_dim)
    value_dim = b.axis("delta_value_dim", spec.value_dim)

    def project(name: str, produce: tuple[str, ...], *, fused: bool = True) -> str:
        return b.matmul(name, x, contract=("hidden",), produce=produce, fused=fused)

    parts = (
        project("delta_query", (key_head, key_dim), fused=False),
        project("delta_key", (key_head, key_dim)),
        project("delta_value", (head, value_dim)),
    )
    gate = project("delta_gate", (head, value_dim))
    write = project("delta_write", (head,))
    decay = project("delta_decay", (head,))
    q, k, v = (
        causal_conv(b, part, kernel=spec.kernel, bias=False, name=f"{part}_conv", fused=i > 0)
        for i, part in enumerate(parts)
    )
    y = _delta_scan(b, (q, k, v, write, decay), chunk=spec.chunk)
    # The scale of the norm is shared by the heads.
    y = b.norm("delta_norm", y, over=value_dim)
    y = b.elementwise("delta_gated", (y, gate), saved=(y, gate), factor=5.0)
    return b.matmul("delta_out", y, contract=(head, value_dim), produce=("hidden",))


def kimi_delta_attention(b: BlockBuilder, x: str, spec: DeltaNetSpec) -> str:
    """Kimi delta attention: the same rule with a decay per channel (arXiv 2510.26692).

    Decay and output gate are projected through a rank of one head's width; key and value
    heads are as many and as wide.
    """
    head = b.axis("delta_head", spec.value_heads, Split.TENSOR)
    key_dim = b.axis("delta_key_dim", spec.key_dim)
    value_dim = b.axis("delta_value_dim", spec.value_dim)
    rank = b.axis("delta_rank", spec.value_dim)

    def project(name: str, produce: tuple[str, ...], *, fused: bool = True) -> str:
        return b.matmul(name, x, contract=("hidden",), produce=produce, fused=fused)

    parts = (
        project("delta_query", (head, key_dim), fused=False),
        project("delta_key", (head, key_dim)),
        project("delta_value", (head, value_dim)),
    )
    write = project("delta_write", (head,))
    low_decay, low_gate = project("delta_decay_down", (rank,)), project("delta_gate_down", (rank,))
    decay = b.matmul("delta_decay", low_decay, contract=(rank,), produce=(head, key_dim))
    gate = b.matmul("delta_gate", low_gate, contract=(rank,), produce=(head, value_dim))
    q, k, v = (
        causal_conv(b, part, kernel=spec.kernel, bias=False, name=f"{part}_conv", fused=i > 0)
        for i, part in enumerate(parts)
    )
    y = _delta_scan(b, (q, k, v, write, decay), chunk=spec.chunk)
    y = b.norm("delta_norm", y, over=value_dim)
    y = b.elementwise("delta_gated", (y, gate), saved=(y, gate), factor=5.0)
    return b.matmul("delta_out", y, contract=(head, value_dim), produce=("hidden",))


def _delta_scan(b: BlockBuilder, inputs: tuple[str, str, str, str, str], *, chunk: int) -> str:
    """The recurrence. Fused kernels keep its inputs and the triangular inverse.

    The step bias has the shape of the decay: one per head, or one per channel.
    """
    q, _, v, _, decay = inputs
    key_dim = b.dims(q)[-1]
    head, value_dim = b.dims(v)[2:]
    chunks, inside = chunk_axis(b, chunk), b.axis("chunk_token", chunk)
    learned = (
        b.parameter("delta_scan.a_log", (head,)),
        b.parameter("delta_scan.step_bias", b.dims(decay)[2:]),
    )
    inverse = b.activation("delta_inverse", (BATCH, SEQ, head, inside))
    states = b.activation("delta_states", (BATCH, chunks, head, key_dim, value_dim), Dtype.FP32)
    out = b.activation("delta_scan", b.dims(v))
    tokens = (BATCH, SEQ, head)
    b.op(
        "delta_scan",
        OpKind.SCAN,
        (*inputs, *learned),
        (out, inverse, states),
        terms=(
            Term(factor=6.0, axes=(*tokens, inside, key_dim)),
            Term(factor=4.0, axes=(*tokens, inside, value_dim)),
            Term(factor=6.0, axes=(*tokens, key_dim, value_dim)),
            Term(factor=1 / 3, axes=(*tokens, inside, inside)),
        ),
        saved=(*inputs, inverse),
        saved_unfused=(states,),
    )
    return out


@dataclass(frozen=True, slots=True, kw_only=True)
class LightningSpec:
    """Shape of one lightning attention mixer; ``chunk`` is the kernel's block size."""

    heads: int
    head_dim: int
    chunk: int


def lightning_attention(b: BlockBuilder, x: str, spec: LightningSpec) -> str:
    """The mixer on ``x`` (batch, seq, hidden)."""
    head = b.axis("linear_head", spec.heads, Split.TENSOR)
    dim = b.axis("linear_dim", spec.head_dim)
    parts = []
    for i, name in enumerate(("linear_query", "linear_key", "linear_value")):
        part = b.matmul(name, x, contract=("hidden",), produce=(head, dim), fused=i > 0)
        parts.append(b.elementwise(f"{name}_activation", (part,), saved=(part,), factor=4.0))
    y = _lightning_scan(b, parts, chunk=spec.chunk)
    y = b.norm("linear_norm", y, over=(head, dim))
    gate = b.matmul("linear_gate", x, contract=("hidden",), produce=(head, dim))
    y = b.elementwise("linear_gated", (y, gate), saved=(y, gate), factor=4.0)
    return b.matmul("linear_out", y, contract=(head, dim), produce=("hidden",))


def _lightning_scan(b: BlockBuilder, parts: list[str], *, chunk: int) -> str:
    q, k, v = parts
    head, dim = b.dims(q)[2:]
    chunks, inside = chunk_axis(b, chunk), b.axis("chunk_token", chunk)
    # Keys and values have the same width; the state needs a name for each.
    value = b.axis("linear_value_dim", b.axis_value(dim).size or 1)
    states = b.activation("linear_states", (BATCH, chunks, head, dim, value), Dtype.FP32)
    out = b.activation("linear_scan", b.dims(q))
    tokens = (BATCH, SEQ, head)
    b.op(
        "linear_scan",
        OpKind.SCAN,
        (q, k, v),
        (out, states),
        terms=(
            Term(factor=4.0, axes=(*tokens, inside, dim)),
            Term(factor=4.0, axes=(*tokens, dim, value)),
        ),
        saved=(q, k, v),
        saved_unfused=(states,),
    )
    return out
