"""What stands before the first layer and after the last: embeddings, logits, loss."""

from __future__ import annotations

from meshwright.graph.axis import BATCH, SEQ, Axis, Split
from meshwright.graph.block import Block, BlockRole
from meshwright.graph.builders.builder import BlockBuilder
from meshwright.graph.op import OpKind, Term
from meshwright.graph.tensor import Dtype

#: Where a head finds the table that it shares.
TOKEN_TABLE = "embedding.token_embedding.weight"


def token_embedding(
    b: BlockBuilder,
    *,
    vocab: int,
    hidden: int,
    table_width: int | None = None,
    tied_to: str | None = None,
) -> str:
    """Look tokens up in a table of ``vocab`` rows; the result is (batch, seq, hidden).

    A table of another width is followed by a projection without bias (OPT-350m).
    """
    vocab_axis = b.axis("vocab", vocab, Split.TENSOR)
    b.axis("hidden", hidden)
    narrow = table_width is not None and table_width != hidden
    width = b.axis("table_width", table_width) if narrow and table_width else "hidden"
    tokens = b.input("tokens", (BATCH, SEQ), Dtype.INT64)
    table = b.parameter("token_embedding.weight", (vocab_axis, width), tied_to=tied_to)
    out = b.activation("token_embedding", (BATCH, SEQ, width))
    b.op("token_embedding", OpKind.EMBEDDING, (tokens, table), (out,), saved=(tokens,))
    if narrow:
        out = b.matmul("project_in", out, contract=(width,), produce=("hidden",))
    return out


def embedding_block(
    *,
    vocab: int,
    hidden: int,
    table_width: int | None = None,
    positions: int = 0,
    token_types: int = 0,
    norm: bool = False,
    norm_bias: bool = True,
    dropout: bool = False,
) -> Block:
    """Token table, optional learned positions, token types, norm and dropout.

    Args:
        vocab: rows of the token table.
        hidden: width of the residual stream.
        table_width: of the token table when a projection to ``hidden`` follows it.
        positions: rows of the table of learned positions; 0 without one.
        token_types: rows of the table of token types; 0 without one.
        norm: a norm of the sum.
        norm_bias: the norm has a shift.
        dropout: on the result.
    """
    b = BlockBuilder("embedding", BlockRole.EMBEDDING)
    x = token_embedding(b, vocab=vocab, hidden=hidden, table_width=table_width)
    tables: tuple[str, ...] = ()
    if positions:
        tables += (
            b.parameter("position_embedding.weight", (b.axis("position", positions), "hidden")),
        )
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
    """Softmax cross-entropy over the last dimension of ``logits``, computed in fp32."""
    probabilities = b.activation("loss_probabilities", b.dims(logits), Dtype.FP32)
    out = b.activation("loss", b.dims(logits)[:-1], Dtype.FP32)
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
    norm_learned: bool = True,
    bias: bool = False,
    table_width: int | None = None,
    dropout: bool = False,
    seq: Axis | None = None,
) -> Block:
    """Final norm, logits and loss.

    Args:
        vocab: width of the logits.
        hidden: width of the residual stream.
        tied: the logits' weight is the token table.
        norm: a norm before the logits.
        norm_bias: the norm has a shift.
        norm_learned: the norm has a scale at all.
        bias: the logits have a learned bias.
        table_width: of the token table when a projection from ``hidden`` comes before it.
        dropout: behind the norm.
        seq: the sequence axis when it is not the workload's (the half that decodes).
    """
    b = BlockBuilder("head", BlockRole.HEAD, seq=seq)
    vocab_axis = b.axis("vocab", vocab, Split.TENSOR)
    b.axis("hidden", hidden)
    x = b.input("x", (BATCH, SEQ, "hidden"))
    if norm:
        x = b.norm("final_norm", x, over="hidden", bias=norm_bias, learned=norm_learned)
    if dropout:
        x = b.dropout("final_dropout", x)
    width = "hidden"
    if table_width is not None and table_width != hidden:
        width = b.axis("table_width", table_width)
        x = b.matmul("project_out", x, contract=("hidden",), produce=(width,))
    logits = b.matmul(
        "logits",
        x,
        contract=(width,),
        produce=(vocab_axis,),
        bias=bias,
        tied_to=TOKEN_TABLE if tied else None,
    )
    return b.build(output=loss(b, logits))
