"""Softmax attention with grouped heads."""

from __future__ import annotations

from dataclasses import dataclass, field

from meshwright.graph.axis import BATCH, Axis, Split
from meshwright.graph.builders.builder import BlockBuilder
from meshwright.graph.op import Mask, Operand, OpKind, Term
from meshwright.graph.tensor import Dtype


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionSpec:
    """Shape of one attention layer.

    Attributes:
        heads, kv_heads: query heads; key and value heads (equal without grouping).
        head_dim: of queries and keys; ``value_dim`` of values when it differs.
        mask: who sees whom.
        qkv_bias, out_bias: learned biases of the projections.
        qk_norm: ``"head"`` (one scale of ``head_dim`` shared by all heads), ``"layer"``
            (one scale over all heads' width), or ``None``.
        qk_norm_bias: these norms have a shift too.
        qk_norm_learned: these norms have a scale at all.
        rotary: queries and keys are rotated by position.
        dropout: on the attention probabilities.
        output_gate: queries are projected twice; the second half gates the output.
        shared_key_value: values are the keys (no value projection).
        sinks: one learned sink logit per head.
    """

    heads: int
    kv_heads: int
    head_dim: int
    mask: Mask = field(default_factory=Mask)
    value_dim: int | None = None
    qkv_bias: bool = False
    out_bias: bool = False
    qk_norm: str | None = None
    qk_norm_bias: bool = False
    qk_norm_learned: bool = True
    rotary: bool = True
    dropout: bool = False
    output_gate: bool = False
    shared_key_value: bool = False
    sinks: bool = False


def attention_core(
    b: BlockBuilder,
    q: str,
    k: str,
    v: str,
    *,
    mask: Mask,
    keys: Axis,
    dropout: bool = False,
    prefix: str = "",
) -> str:
    """Scores, softmax and weighted sum; returns the context of dims (batch, seq, head, value).

    Args:
        b: the block being built; its ``head`` axis exists.
        q: (batch, seq, head, d_qk).
        k: (batch, keys, kv heads, d_qk), made along the sequence of the keys.
        v: (batch, keys, kv heads, d_v).
        mask: who sees whom.
        keys: the axis of the keys; kept whole on every rank, so that splitting the sequence
            of the queries shows as a gather of ``k`` and ``v``.
        dropout: on the probabilities.
        prefix: of tensor names, for blocks with two attentions.
    """
    key_axis = b.add_axis(keys)
    d_qk, d_v = b.dims(q)[-1], b.dims(v)[-1]
    query_dims = b.dims(q)[:-1]
    scores = (*query_dims, key_axis)
    lse = b.activation(f"{prefix}lse", query_dims, Dtype.FP32)
    unfused = [b.activation(f"{prefix}probabilities", scores)]
    if dropout:
        unfused.append(b.activation(f"{prefix}probabilities.mask", scores, Dtype.BYTE))
        unfused.append(b.activation(f"{prefix}probabilities.dropped", scores))
    context = b.activation(f"{prefix}context", (*query_dims, d_v))
    b.op(
        f"{prefix}attention",
        OpKind.ATTENTION,
        (
            q,
            Operand(tensor=k, axes=(BATCH, key_axis, *b.dims(k)[2:])),
            Operand(tensor=v, axes=(BATCH, key_axis, *b.dims(v)[2:])),
        ),
        (context,),
        terms=(
            Term(factor=2.0, axes=(*scores, d_qk), masked=True),
            Term(factor=2.0, axes=(*scores, d_v), masked=True),
        ),
        saved=(q, k, v, context),
        saved_fused=(lse,),
        saved_unfused=tuple(unfused),
        mask=mask,
    )
    return context


def self_attention(b: BlockBuilder, x: str, spec: AttentionSpec, *, prefix: str = "") -> str:
    """Projections, optional norms and rotation, core and output projection of ``x``.

    Args:
        b: the block being built; ``x`` has dims (batch, seq, hidden).
        x: input activation.
        spec: shape.
        prefix: of op and axis names, for blocks with two attentions.
    """
    return _attention(b, x, x, spec, prefix)


def cross_attention(
    b: BlockBuilder, x: str, memory: str, spec: AttentionSpec, *, prefix: str = "cross_"
) -> str:
    """Attention of ``x`` to ``memory``, whose keys and values are projected here.

    Args:
        b: the block being built.
        x: (batch, seq, hidden), the source of the queries.
        memory: (batch, another sequence axis, hidden), the source of keys and values.
        spec: shape; its mask is not causal.
        prefix: of op and axis names.
    """
    return _attention(b, x, memory, spec, prefix)


def _attention(b: BlockBuilder, x: str, source: str, spec: AttentionSpec, prefix: str) -> str:
    head = b.axis(f"{prefix}head", spec.heads, Split.TENSOR)
    kv_head = b.axis(f"{prefix}kv_head", spec.kv_heads, Split.TENSOR)
    dim = b.axis(f"{prefix}head_dim", spec.head_dim)
    value_dim = dim
    if spec.value_dim is not None and spec.value_dim != spec.head_dim:
        value_dim = b.axis(f"{prefix}value_dim", spec.value_dim)

    def project(name: str, y: str, produce: tuple[str, ...], *, fused: bool = True) -> str:
        return b.matmul(
            f"{prefix}{name}",
            y,
            contract=("hidden",),
            produce=produce,
            bias=spec.qkv_bias,
            fused=fused,
        )

    q = project("query", x, (head, dim), fused=False)
    gate = project("output_gate", x, (head, value_dim)) if spec.output_gate else None
    k = project("key", source, (kv_head, dim), fused=source == x)
    v = k if spec.shared_key_value else project("value", source, (kv_head, value_dim))
    if spec.qk_norm is not None:
        whole = spec.qk_norm == "layer"
        bias, learned = spec.qk_norm_bias, spec.qk_norm_learned
        over_q, over_k = ((head, dim), (kv_head, dim)) if whole else ((dim,), (dim,))
        q = b.norm(f"{prefix}query_norm", q, over=over_q, bias=bias, learned=learned)
        k = b.norm(f"{prefix}key_norm", k, over=over_k, bias=bias, learned=learned)
    if spec.rotary:
        q = b.elementwise(f"{prefix}query_rotary", (q,), factor=3.0)
        k = b.elementwise(f"{prefix}key_rotary", (k,), factor=3.0, fused=True)
    if spec.sinks:
        b.parameter(f"{prefix}sinks", (head,))
    seen = b.axis_value(b.dims(source)[1])
    keys = Axis(name=f"{prefix}keys", size=seen.size, scale=seen.scale)
    context = attention_core(
        b, q, k, v, mask=spec.mask, keys=keys, dropout=spec.dropout, prefix=prefix
    )
    if gate is not None:
        context = b.elementwise(
            f"{prefix}gated_context", (context, gate), saved=(context, gate), factor=4.0
        )
    return b.matmul(
        f"{prefix}attention_out",
        context,
        contract=(head, value_dim),
        produce=("hidden",),
        bias=spec.out_bias,
    )
