"""Multi-head latent attention: keys and values are expanded from one low-rank vector.

Source: DeepSeek-V2 (arXiv 2405.04434), section 2.1.2. Dense attention is trained with keys and
values expanded per head; sparse attention works on the latent vectors themselves.
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
    seq = b.axis_value(b.dims(x)[1])
    keys = Axis(name="keys", size=seq.size, scale=seq.scale)
    latent, source, rank = _query_source(b, x, spec)
    q_own = b.matmul(
        "query_nope", source, contract=(rank,), produce=(head, b.axis("nope_dim", spec.nope_dim))
    )
    q_rope = b.matmul(
        "query_rope",
        source,
        contract=(rank,),
        produce=(head, b.axis("rope_dim", spec.rope_dim)),
        fused=True,
    )
    kv, k_rope = _compressed(b, x, spec)
    if spec.indexer is None:
        context = _expanded(b, (q_own, q_rope), (kv, k_rope), spec, keys=keys)
    else:
        assert latent is not None, "the indexer reads the compressed query"
        token_indexer(b, x, latent, spec.indexer, keys=keys)
        context = _absorbed(b, (q_own, q_rope), (kv, k_rope), spec, keys=keys)
    return b.matmul(
        "attention_out", context, contract=(head, value), produce=("hidden",), bias=spec.bias
    )


def _query_source(b: BlockBuilder, x: str, spec: MlaSpec) -> tuple[str | None, str, str]:
    """The compressed query if there is one, what queries are projected from, and its axis."""
    if spec.query_rank is None:
        return None, x, "hidden"
    rank = b.axis("query_rank", spec.query_rank)
    down = b.matmul("query_down", x, contract=("hidden",), produce=(rank,), bias=spec.bias)
    latent = b.norm("query_latent_norm", down, over=rank)
    return latent, latent, rank


def _compressed(b: BlockBuilder, x: str, spec: MlaSpec) -> tuple[str, str]:
    """The compressed keys and values, and the rotated part that all heads share."""
    rank = b.axis("kv_rank", spec.kv_rank)
    down = b.matmul("kv_down", x, contract=("hidden",), produce=(rank,), bias=spec.bias)
    shared = b.matmul(
        "key_rope", x, contract=("hidden",), produce=("rope_dim",), bias=spec.bias, fused=True
    )
    return b.norm("kv_latent_norm", down, over=rank), shared


def _expanded(
    b: BlockBuilder, q: tuple[str, str], kv: tuple[str, str], spec: MlaSpec, *, keys: Axis
) -> str:
    """Keys and values of every head: how dense attention is trained."""
    dim = b.axis("qk_dim", spec.nope_dim + spec.rope_dim)
    latent, shared = kv
    k = b.matmul("key_up", latent, contract=("kv_rank",), produce=("head", "nope_dim"))
    v = b.matmul(
        "value_up", latent, contract=("kv_rank",), produce=("head", "value_dim"), fused=True
    )
    query = b.elementwise("query", q, dims=(*b.dims(q[0])[:-1], dim), factor=3.0)
    # Rotates the shared part and writes it behind the own part of every head.
    key = b.elementwise("key", (k, shared), dims=(*b.dims(k)[:-1], dim), factor=3.0)
    return attention_core(b, query, key, v, mask=spec.mask, keys=keys)


def _absorbed(
    b: BlockBuilder, q: tuple[str, str], kv: tuple[str, str], spec: MlaSpec, *, keys: Axis
) -> str:
    """One shared latent head: a chosen key is gathered once for all heads.

    Source: DeepSeek-V3.2 technical report, section 2.1: sparse attention runs on the latent
    vectors, with the expansion of the keys moved to the queries and that of the values to the
    output; the same matrices, as many operations in the projections, more per pair.
    """
    dim = b.axis("latent_dim", spec.kv_rank + spec.rope_dim)
    latent, shared = kv
    own = b.matmul("key_up", q[0], contract=("nope_dim",), produce=("kv_rank",), per=("head",))
    query = b.elementwise("query", (own, q[1]), dims=(*b.dims(own)[:-1], dim), factor=3.0)
    key = b.elementwise("key", (latent, shared), dims=(*b.dims(latent)[:-1], dim), factor=3.0)
    context = attention_core(b, query, key, latent, mask=spec.mask, keys=keys)
    return b.matmul(
        "value_up", context, contract=("kv_rank",), produce=("value_dim",), per=("head",)
    )
