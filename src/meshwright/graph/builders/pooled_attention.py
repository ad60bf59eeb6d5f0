"""Attention of DeepSeek-V4: a window of single keys beside keys pooled over many tokens.

Source: DeepSeek-V4 technical report, section 2.3. One shared key-value head; queries through
a low rank; one softmax over the keys of the window and the pooled keys (all of them, or those
an indexer chose); output projected per group of heads to a low rank first.
"""

from __future__ import annotations

from dataclasses import dataclass

from meshwright.graph.axis import BATCH, SEQ, Axis, Split
from meshwright.graph.builders.attention import attention_core
from meshwright.graph.builders.builder import BlockBuilder
from meshwright.graph.builders.sparse import IndexerSpec, index_scores, pooled
from meshwright.graph.op import Mask, Operand, OpKind, Term
from meshwright.graph.tensor import Dtype

#: Axis of the keys at full length; masks are relative to it.
KEYS = "keys"


@dataclass(frozen=True, slots=True, kw_only=True)
class PooledSpec:
    """Shape of one attention layer.

    Attributes:
        heads, head_dim: of the queries; keys and values are one head of this width.
        query_rank: width of the compressed query.
        groups, group_rank: groups of heads of the output projection, and its rank.
        window: keys back that a query sees one by one.
        ratio: tokens pooled to one further key; 0 without such keys.
        indexer: chooses among the pooled keys; its layers pool overlapping groups.
    """

    heads: int
    head_dim: int
    query_rank: int
    groups: int
    group_rank: int
    window: int
    ratio: int = 0
    indexer: IndexerSpec | None = None


def pooled_attention(b: BlockBuilder, x: str, spec: PooledSpec) -> str:
    """The attention on ``x`` (batch, seq, hidden); heads split over ranks by whole groups."""
    group = b.axis("head_group", spec.groups, Split.TENSOR)
    head = b.axis("group_head", spec.heads // spec.groups)
    dim = b.axis("head_dim", spec.head_dim)
    rank = b.axis("query_rank", spec.query_rank)
    latent = b.matmul("query_down", x, contract=("hidden",), produce=(rank,))
    latent = b.norm("query_latent_norm", latent, over=rank)
    q = b.matmul("query_up", latent, contract=(rank,), produce=(group, head, dim))
    q = b.norm("query_norm", q, over=dim, learned=False)
    q = b.elementwise("query_rotary", (q,), factor=3.0)
    kv = b.matmul("key_value", x, contract=("hidden",), produce=(dim,))
    kv = b.norm("key_value_norm", kv, over=dim)
    kv = b.elementwise("key_value_rotary", (kv,), factor=3.0)
    b.parameter("sinks", (group, head))
    keys = Axis(name=KEYS, scale=b.axis_value(SEQ).scale)
    if spec.ratio:
        context = _window_and_pool(b, x, q, kv, latent, spec, keys=keys)
    else:
        context = attention_core(b, q, kv, kv, mask=Mask(window=spec.window), keys=keys)
    out_rank = b.axis("out_rank", spec.group_rank)
    low = b.matmul(
        "attention_out_down", context, contract=(head, dim), produce=(out_rank,), per=(group,)
    )
    return b.matmul("attention_out", low, contract=(group, out_rank), produce=("hidden",))


def _window_and_pool(
    b: BlockBuilder, x: str, q: str, kv: str, latent: str, spec: PooledSpec, *, keys: Axis
) -> str:
    """One softmax over the window's keys and the pooled ones."""
    dim = b.dims(kv)[-1]
    overlap = 2 if spec.indexer else 1
    width = b.axis("pool_width", overlap * spec.head_dim) if overlap > 1 else dim
    pool = pooled(b, x, name="pool", dim=dim, width=width, ratio=spec.ratio)
    full = b.add_axis(keys)
    pool_keys = Axis(name="pooled_keys", scale=keys.scale / spec.ratio)
    mask = Mask(stride=spec.ratio, top_k=spec.indexer.top_k if spec.indexer else None)
    if spec.indexer is not None:
        index_dim = b.axis("index_dim", spec.indexer.head_dim)
        index_width = b.axis("index_pool_width", overlap * spec.indexer.head_dim)
        index_keys = pooled(
            b, x, name="index_pool", dim=index_dim, width=index_width, ratio=spec.ratio
        )
        index_scores(
            b,
            x,
            latent,
            index_keys,
            spec.indexer,
            keys=pool_keys,
            mask=Mask(stride=spec.ratio),
            scored=full,
        )
    near, far = b.axis("window", spec.window), b.add_axis(pool_keys)
    heads = b.dims(q)[:-1]
    lse = b.activation("lse", heads, Dtype.FP32)
    unfused = (
        b.activation("window_probabilities", (*heads, near)),
        b.activation("pooled_probabilities", (*heads, far)),
    )
    context = b.activation("context", b.dims(q))
    b.op(
        "attention",
        OpKind.ATTENTION,
        (
            q,
            Operand(tensor=kv, axes=(BATCH, full, dim)),
            Operand(tensor=pool, axes=(BATCH, far, dim)),
        ),
        (context,),
        # Scores and weighted sum: each over the window, and over the pooled keys.
        terms=(
            Term(factor=4.0, axes=(*heads, near, dim)),
            Term(factor=4.0, axes=(*heads, full, dim), masked=True),
        ),
        saved=(q, kv, pool, context),
        saved_fused=(lse,),
        saved_unfused=unfused,
        mask=mask,
    )
    return context
