"""Attention whose queries, keys and values are normed, and whose keys may come from below.

Source: the model code of Gemma 3n and Gemma 4 in Hugging Face transformers: the last layers
project no keys and values of their own but use those of an earlier layer.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from meshwright.graph.axis import BATCH, SEQ, Axis, Split
from meshwright.graph.builders.attention import attention_core
from meshwright.graph.builders.builder import BlockBuilder
from meshwright.graph.op import Mask


@dataclass(frozen=True, slots=True, kw_only=True)
class NormedAttentionSpec:
    """Shape of one layer.

    Attributes:
        heads, kv_heads, head_dim: as in grouped attention.
        mask: who sees whom.
        bias: of the projections.
        keys_are_values: one projection serves both (they are normed apart).
        reuse: keys and values of an earlier layer; nothing is projected.
    """

    heads: int
    kv_heads: int
    head_dim: int
    mask: Mask = field(default_factory=Mask)
    bias: bool = False
    keys_are_values: bool = False
    reuse: bool = False


def normed_attention(b: BlockBuilder, x: str, spec: NormedAttentionSpec) -> str:
    """The attention on ``x`` (batch, seq, hidden)."""
    head = b.axis("head", spec.heads, Split.TENSOR)
    kv_head = b.axis("kv_head", spec.kv_heads, Split.TENSOR)
    dim = b.axis("head_dim", spec.head_dim)

    def project(name: str, heads: str, *, fused: bool = False) -> str:
        return b.matmul(
            name, x, contract=("hidden",), produce=(heads, dim), bias=spec.bias, fused=fused
        )

    q = b.norm("query_norm", project("query", head), over=dim)
    q = b.elementwise("query_rotary", (q,), factor=3.0)
    if spec.reuse:
        k = b.input("earlier_key", (BATCH, SEQ, kv_head, dim))
        v = b.input("earlier_value", (BATCH, SEQ, kv_head, dim))
    else:
        raw = project("key", kv_head, fused=True)
        k = b.norm("key_norm", raw, over=dim)
        k = b.elementwise("key_rotary", (k,), factor=3.0, fused=True)
        v = raw if spec.keys_are_values else project("value", kv_head, fused=True)
        v = b.norm("value_norm", v, over=dim, learned=False)
    keys = Axis(name="keys", scale=b.axis_value(SEQ).scale)
    context = attention_core(b, q, k, v, mask=spec.mask, keys=keys)
    return b.matmul(
        "attention_out", context, contract=(head, dim), produce=("hidden",), bias=spec.bias
    )
