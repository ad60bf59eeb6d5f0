"""Multi-head latent attention: keys and values are expanded from one low-rank vector.

Source: DeepSeek-V2 (arXiv 2405.04434), section 2.1.2. This is the form that training runs,
with keys and values expanded per head; serving folds the expansion into the projections.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from meshwright.graph.axis import Axis, Split
from meshwright.graph.builders.attention import attention_core
from meshwright.graph.builders.builder import BlockBuilder
from meshwright.graph.builders.sparse import IndexerSpec, token_indexer
from meshwright.graph.op import Mask


@dataclass(frozen=True, slots=True, kw_only=True)
class MlaSpec:
    """Shape of one layer of latent attention.

    Attributes:
        heads: attention heads.
        query_rank: width of the compressed query; ``None`` projects queries directly.
        kv_rank: width of the compressed keys and values.
        nope_dim: width per head of the part of a key that is not rotated.
        rope_dim: width of the rotated part of a key, shared by all heads.
        value_dim: width per head of a value.
        bias: biases on the two compressions and the output projection.
        mask: who sees whom.
        indexer: chooses the keys of every query (sparse attention).
    """

    heads: int
    query_rank: int | None
    kv_rank: int
    nope_dim: int
    rope_dim: int
    value_dim: int
    bias: bool = False
    mask: Mask = field(default_factory=Mask)
    indexer: IndexerSpec | None = None


def latent_attention(b: BlockBuilder, x: str, spec: MlaSpec) -> str:
    """Latent attention of ``x`` (batch, seq, hidden); the ranks stay whole on every device."""
    head = b.axis("head", spec.heads, Split.TENSOR)
    value = b.axis("value_dim", spec.value_dim)
    latent, q = _query(b, x, spec)
    k, v = _key_value(b, x, spec)
    seq = b.axis_value(b.dims(x)[1])
    keys = Axis(name="keys", size=seq.size, scale=seq.scale)
    if spec.indexer is not None:
        assert latent is not None, "the indexer reads the compressed query"
        token_indexer(b, x, latent, spec.indexer, keys=keys)
    context = attention_core(b, q, k, v, mask=spec.mask, keys=keys)
    return b.matmul(
        "attention_out",
        context,
        contract=(head, value),
        produce=("hidden",),
        bias=spec.bias,
    )


def _query(b: BlockBuilder, x: str, spec: MlaSpec) -> tuple[str | None, str]:
    """The compressed query, if there is one, and the query per head."""
    dim = b.axis("qk_dim", spec.nope_dim + spec.rope_dim)
    latent = None
    if spec.query_rank is None:
        q = b.matmul("query", x, contract=("hidden",), produce=("head", dim))
    else:
        rank = b.axis("query_rank", spec.query_rank)
        down = b.matmul("query_down", x, contract=("hidden",), produce=(rank,), bias=spec.bias)
        latent = b.norm("query_latent_norm", down, over=rank)
        q = b.matmul("query_up", latent, contract=(rank,), produce=("head", dim))
    return latent, b.elementwise("query_rotary", (q,), factor=3.0)


def _key_value(b: BlockBuilder, x: str, spec: MlaSpec) -> tuple[str, str]:
    """Keys (batch, seq, head, nope + rope) and values (batch, seq, head, value)."""
    rank, rope = b.axis("kv_rank", spec.kv_rank), b.axis("rope_dim", spec.rope_dim)
    nope = b.axis("nope_dim", spec.nope_dim)
    down = b.matmul("kv_down", x, contract=("hidden",), produce=(rank,), bias=spec.bias)
    shared = b.matmul(
        "key_rope", x, contract=("hidden",), produce=(rope,), bias=spec.bias, fused=True
    )
    latent = b.norm("kv_latent_norm", down, over=rank)
    k = b.matmul("key_up", latent, contract=(rank,), produce=("head", nope))
    v = b.matmul("value_up", latent, contract=(rank,), produce=("head", "value_dim"), fused=True)
    # Rotates the shared part and writes it behind the own part of every head.
    k = b.elementwise("key", (k, shared), dims=(*b.dims(k)[:-1], "qk_dim"), factor=3.0)
    return k, v
