"""Layers of encoder-decoder models, and what stands between their two halves."""

from __future__ import annotations

from dataclasses import dataclass, replace

from meshwright.graph.axis import BATCH, SEQ, seq_axis
from meshwright.graph.block import Block, BlockRole
from meshwright.graph.builders.attention import AttentionSpec, cross_attention, self_attention
from meshwright.graph.builders.builder import BlockBuilder
from meshwright.graph.builders.ends import TOKEN_TABLE, token_embedding
from meshwright.graph.builders.mlp import mlp
from meshwright.graph.op import Mask

#: The axis of the encoder's tokens inside a decoder block.
MEMORY = "memory"


@dataclass(frozen=True, slots=True, kw_only=True)
class HalfSpec:
    """A layer of the encoder or of the decoder: pre-norm, RMS norms.

    Attributes:
        hidden: width of the residual stream.
        attention: of the self-attention; the cross-attention has the same shape.
        ffn: width of the feed-forward layer.
        gated: three matrices instead of two.
        dropout: on the branches and inside the feed-forward layer.
        position_buckets: rows of the table of relative positions that the first layer of
            a half holds for all; 0 in the others.
        vocab: rows of the token table that the first decoder layer reads; 0 elsewhere.
        target_scale: tokens of the decoder per token of the encoder.
    """

    hidden: int
    attention: AttentionSpec
    ffn: int
    gated: bool
    dropout: bool
    position_buckets: int = 0
    vocab: int = 0
    target_scale: float = 1.0


def _position_table(b: BlockBuilder, spec: HalfSpec) -> None:
    if spec.position_buckets:
        buckets = b.axis("position_bucket", spec.position_buckets)
        b.parameter("relative_position.weight", (buckets, "head"))


def _feed_forward(b: BlockBuilder, x: str, spec: HalfSpec) -> str:
    branch = b.norm("mlp_norm", x, over="hidden")
    branch = mlp(b, branch, width=spec.ffn, gated=spec.gated, inner_dropout=spec.dropout)
    return b.residual("mlp_residual", x, branch, dropout=spec.dropout)


def _self_attention(b: BlockBuilder, x: str, spec: HalfSpec) -> str:
    branch = self_attention(b, b.norm("attention_norm", x, over="hidden"), spec.attention)
    _position_table(b, spec)
    return b.residual("attention_residual", x, branch, dropout=spec.dropout)


def encoder_layer(spec: HalfSpec) -> Block:
    """Self-attention over all tokens, then the feed-forward layer."""
    b = BlockBuilder("encoder", BlockRole.LAYER)
    b.axis("hidden", spec.hidden)
    x = b.input("x", (BATCH, SEQ, "hidden"))
    x = _self_attention(b, x, spec)
    return b.build(output=_feed_forward(b, x, spec))


def decoder_layer(spec: HalfSpec) -> Block:
    """Causal self-attention, attention to the encoder's output, feed-forward layer.

    The encoder's output travels along with the decoder's own activation. The first layer
    (``vocab`` given) also ends the encoder with its norm and looks the target tokens up.
    """
    b = BlockBuilder("decoder", BlockRole.LAYER, seq=seq_axis(scale=spec.target_scale))
    b.axis("hidden", spec.hidden)
    memory_axis = b.add_axis(seq_axis(name=MEMORY))
    memory = b.input("encoder_output", (BATCH, memory_axis, "hidden"))
    if spec.vocab:
        memory = b.norm("encoder_norm", memory, over="hidden")
        if spec.dropout:
            memory = b.dropout("encoder_dropout", memory)
        x = token_embedding(b, vocab=spec.vocab, hidden=spec.hidden, tied_to=TOKEN_TABLE)
        if spec.dropout:
            x = b.dropout("embedding_dropout", x)
    else:
        x = b.input("x", (BATCH, SEQ, "hidden"))
    x = _self_attention(b, x, spec)
    across = replace(spec.attention, mask=Mask(causal=False))
    branch = b.norm("cross_norm", x, over="hidden")
    branch = cross_attention(b, branch, memory, across)
    x = b.residual("cross_residual", x, branch, dropout=spec.dropout)
    return b.build(output=_feed_forward(b, x, spec))
