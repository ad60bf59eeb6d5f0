"""Heads other than next-token logits: masked tokens, classes."""

from __future__ import annotations

from meshwright.graph.axis import BATCH, SEQ, Axis, Split
from meshwright.graph.block import Block, BlockRole
from meshwright.graph.builders.builder import BlockBuilder
from meshwright.graph.builders.ends import TOKEN_TABLE, loss
from meshwright.graph.op import Operand, OpKind


def masked_lm_head_block(
    *, vocab: int, hidden: int, tied: bool, sentence_classes: int = 0
) -> Block:
    """BERT's head: dense, activation, norm, logits with a bias, loss.

    Args:
        vocab: width of the logits.
        hidden: width of the residual stream.
        tied: the logits' weight is the token table.
        sentence_classes: of the pooled first token, as in pre-training on pairs of
            sentences; 0 without it. Its loss is too small to count.
    """
    b = BlockBuilder("head", BlockRole.HEAD)
    vocab_axis = b.axis("vocab", vocab, Split.TENSOR)
    b.axis("hidden", hidden)
    wide = b.axis("transform", hidden)
    x = b.input("x", (BATCH, SEQ, "hidden"))
    if sentence_classes:
        pooled = first_token(b, x)
        pooled = b.matmul("pooler", pooled, contract=("hidden",), produce=(wide,), bias=True)
        pooled = b.elementwise("pooler_activation", (pooled,), saved=(pooled,), factor=8.0)
        sentence = b.axis("sentence_class", sentence_classes)
        b.matmul("sentence_logits", pooled, contract=(wide,), produce=(sentence,), bias=True)
    y = b.matmul("transform", x, contract=("hidden",), produce=(wide,), bias=True)
    y = b.elementwise("transform_activation", (y,), saved=(y,), factor=8.0)
    y = b.norm("transform_norm", y, over=wide, bias=True)
    table = TOKEN_TABLE if tied else None
    logits = b.matmul(
        "logits", y, contract=(wide,), produce=(vocab_axis,), bias=True, tied_to=table
    )
    return b.build(output=loss(b, logits))


def classifier_head_block(*, classes: int, hidden: int, seq: Axis) -> Block:
    """Final layer norm, classes from the first token, loss.

    Args:
        classes: width of the logits.
        hidden: width of the residual stream.
        seq: the sequence axis of the tokens.
    """
    b = BlockBuilder("head", BlockRole.HEAD, seq=seq)
    b.axis("hidden", hidden)
    class_axis = b.axis("class", classes)
    x = b.norm("final_norm", b.input("x", (BATCH, SEQ, "hidden")), over="hidden", bias=True)
    first = first_token(b, x)
    logits = b.matmul("logits", first, contract=("hidden",), produce=(class_axis,), bias=True)
    return b.build(output=loss(b, logits))


def first_token(b: BlockBuilder, x: str) -> str:
    """The first token of every sequence: (batch, hidden) of (batch, seq, hidden)."""
    one = b.axis("first", 1)
    out = b.activation("first_token", (BATCH, "hidden"))
    b.op(
        "first_token",
        OpKind.ELEMENTWISE,
        (Operand(tensor=x, axes=(BATCH, one, "hidden")),),
        (out,),
    )
    return out
