"""What stands before the first layer and after the last: embeddings, logits, loss."""

from __future__ import annotations

from meshwright.graph.axis import BATCH, SEQ, Split
from meshwright.graph.block import Block, BlockRole
from meshwright.graph.builders.builder import BlockBuilder
from meshwright.graph.op import OpKind, Term
from meshwright.graph.tensor import Dtype


def token_embedding(b: BlockBuilder, *, vocab: int, hidden: int) -> str:
    """Look tokens up in a table of ``vocab`` rows; the result is (batch, seq, hidden)."""
    vocab_axis = b.axis("vocab", vocab, Split.TENSOR)
    b.axis("hidden", hidden)
    tokens = b.input("tokens", (BATCH, SEQ), Dtype.INT64)
    table = b.parameter("token_embedding.weight", (vocab_axis, "hidden"))
    out = b.activation("token_embedding", (BATCH, SEQ, "hidden"))
    b.op("token_embedding", OpKind.EMBEDDING, (tokens, table), (out,), saved=(tokens,))
    return out


def embedding_block(
    *,
    vocab: int,
    hidden: int,
    positions: int = 0,
    token_types: int = 0,
    norm: bool = False,
    norm_bias: bool = True,
    dropout: bool = False,
) -> Block:
    """Token table, optional learned positions, token types, norm and dropout."""
    b = BlockBuilder("embedding", BlockRole.EMBEDDING)
    x = token_embedding(b, vocab=vocab, hidden=hidden)
    tables: tuple[str, ...] = ()
    if positions:
        tables += (b.parameter("position_embedding.weight", (b.axis("position", positions), "hidden")),)
    if token_types:
        kind = b.axis("token_type", token_types)
        tables += (b.parameter("token_type_embedding.weight", (kind, "hidden")),)
    if tables:
        x = b.elementwise("embedding_sum", (x, *tables))
    if norm:
        x = b.norm("embedding_norm", x, over="hidden", bias=norm_bias)
    if dropout:
        x = b.dropout("embedding_dropout", x)
    return b.build(output=x)


def loss(b: BlockBuilder, logits: str) -> str:
    """Softmax cross-entropy of (batch, seq, vocab) logits, computed in fp32."""
    seq = b.dims(logits)[1]
    probabilities = b.activation("probabilities", b.dims(logits), Dtype.FP32)
    out = b.activation("loss", (BATCH, seq), Dtype.FP32)
    b.op(
        "loss",
        OpKind.LOSS,
        (logits,),
        (out,),
        terms=(Term(factor=5.0, axes=b.dims(logits)),),
        saved=(logits, probabilities),
    )
    return out


def head_block(
    *,
    vocab: int,
    hidden: int,
    tied: bool,
    norm: bool = True,
    norm_bias: bool = False,
    bias: bool = False,
) -> Block:
    """Final norm, logits and loss; ``tied`` shares the token table."""
    b = BlockBuilder("head", BlockRole.HEAD)
    vocab_axis = b.axis("vocab", vocab, Split.TENSOR)
    b.axis("hidden", hidden)
    x = b.input("x", (BATCH, SEQ, "hidden"))
    if norm:
        x = b.norm("final_norm", x, over="hidden", bias=norm_bias)
    logits = b.matmul(
        "logits",
        x,
        contract=("hidden",),
        produce=(vocab_axis,),
        bias=bias,
        tied_to="embedding.token_embedding.weight" if tied else None,
    )
    return b.build(output=loss(b, logits))
