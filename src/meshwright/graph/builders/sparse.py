"""Sparse attention: an indexer that scores keys, and keys pooled over a few tokens.

Sources: DeepSeek-V3.2 technical report (arXiv 2512.02556), section 2.1, for the lightning
indexer; DeepSeek-V4 technical report, section 2.3, for pooled keys.
"""

from __future__ import annotations

from dataclasses import dataclass

from meshwright.graph.axis import BATCH, SEQ, Axis, Split
from meshwright.graph.builders.builder import BlockBuilder
from meshwright.graph.op import Mask, Operand, OpKind, Term
from meshwright.graph.tensor import Dtype


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexerSpec:
    """Shape of the indexer.

    Attributes:
        heads, head_dim: of its own small queries; every rank holds all of them.
        top_k: keys kept per query.
    """

    heads: int
    head_dim: int
    top_k: int


def token_indexer(b: BlockBuilder, x: str, latent: str, spec: IndexerSpec, *, keys: Axis) -> str:
    """Choose the keys of every query among all tokens; returns their positions.

    Args:
        b: the block being built.
        x: (batch, seq, hidden), for the indexer's keys and head weights.
        latent: (batch, seq, query rank), for its queries.
        spec: shape.
        keys: axis of the keys.
    """
    dim = b.axis("index_dim", spec.head_dim)
    k = b.matmul("index_key", x, contract=("hidden",), produce=(dim,))
    k = b.norm("index_key_norm", k, over=dim, bias=True)
    return index_scores(b, x, latent, k, spec, keys=keys, mask=Mask())


def index_scores(
    b: BlockBuilder,
    x: str,
    latent: str,
    k: str,
    spec: IndexerSpec,
    *,
    keys: Axis,
    mask: Mask,
    scored: str | None = None,
) -> str:
    """Score ``k`` for every query and keep the best; the scores themselves are not kept.

    ``sum_h w_h relu(q_h . k)``: one product per head and a weighted sum over the heads
    (DeepSeek-V3.2, eq. 1). ``mask`` is relative to the axis ``scored``, by default ``keys``.
    """
    rank = b.dims(latent)[-1]
    head = b.axis("index_head", spec.heads)
    key_axis = b.add_axis(keys)
    over = scored or key_axis
    q = b.matmul("index_query", latent, contract=(rank,), produce=(head, "index_dim"))
    q = b.elementwise("index_query_rotary", (q,), factor=3.0)
    weights = b.matmul("index_weight", x, contract=("hidden",), produce=(head,))
    chosen = b.axis("index_choice", spec.top_k)
    # Positions are 32-bit integers: as wide as fp32.
    out = b.activation("index", (BATCH, SEQ, chosen), Dtype.FP32)
    pairs = (BATCH, SEQ, head, over)
    b.op(
        "index",
        OpKind.ATTENTION,
        (q, Operand(tensor=k, axes=(BATCH, key_axis, "index_dim")), weights),
        (out,),
        terms=(
            Term(factor=2.0, axes=(*pairs, "index_dim"), masked=True),
            Term(factor=2.0, axes=pairs, masked=True),
        ),
        saved=(q, k, weights, out),
        mask=mask,
    )
    return out


def pooled(b: BlockBuilder, x: str, *, name: str, dim: str, width: str, ratio: int) -> str:
    """Keys of ``ratio`` tokens pooled to one by a learned softmax over their gates.

    Args:
        b: the block being built.
        x: (batch, seq, hidden).
        name: of the ops.
        dim: axis of the result's width.
        width: axis of the projections' width: ``dim``, or twice it when neighbouring
            groups overlap.
        ratio: tokens per pooled key.

    Returns:
        (batch, pooled, ``dim``).
    """
    pool = pooled_axis(b, ratio)
    slot = b.axis("pool_slot", ratio)
    values = b.matmul(f"{name}_value", x, contract=("hidden",), produce=(width,))
    gates = b.matmul(f"{name}_gate", x, contract=("hidden",), produce=(width,), fused=True)
    position = b.parameter(f"{name}_position.bias", (slot, width))
    out = b.activation(f"{name}_pooled", (BATCH, pool, dim))
    b.op(
        f"{name}_pooled",
        OpKind.ELEMENTWISE,
        (values, gates, position),
        (out,),
        terms=(Term(factor=8.0, axes=b.dims(values)),),
        saved=(values, gates),
    )
    return b.norm(f"{name}_norm", out, over=dim)


def pooled_axis(b: BlockBuilder, ratio: int) -> str:
    """The axis of keys pooled over ``ratio`` tokens."""
    scale = b.axis_value(SEQ).scale / ratio
    return b.add_axis(Axis(name="pooled", scale=scale, split=Split.CONTEXT))
