"""Multi-token prediction: modules that predict the tokens after the next one.

Source: DeepSeek-V3 technical report (arXiv 2412.19437), section 2.2: each module norms the
hidden state and the embedding of the next token, projects the two to one, runs one layer of
the model, and shares the embedding and the logits of the model.
"""

from __future__ import annotations

from meshwright.graph.axis import BATCH, SEQ, Split
from meshwright.graph.block import Block, BlockRole
from meshwright.graph.builders.builder import BlockBuilder
from meshwright.graph.builders.ends import TOKEN_TABLE, loss, token_embedding
from meshwright.graph.builders.layer import Branch, residual_branch

#: Where a module finds the logits' matrix of a model that does not tie it.
LOGITS_TABLE = "head.logits.weight"


def mtp_block(
    *,
    vocab: int,
    hidden: int,
    mixer: Branch,
    feed_forward: Branch,
    tied: bool = False,
    active_experts: int = 0,
) -> Block:
    """One module, on the last stage; its own parameters are auxiliary.

    Args:
        vocab, hidden: of the model.
        mixer, feed_forward: the two branches of its layer.
        tied: the model's logits share the token table.
        active_experts: experts a token uses, when ``feed_forward`` has experts.
    """
    b = BlockBuilder("mtp", BlockRole.HEAD)
    b.axis("hidden", hidden)
    x = b.input("x", (BATCH, SEQ, "hidden"))
    token = token_embedding(b, vocab=vocab, hidden=hidden, tied_to=TOKEN_TABLE)
    x = join(b, x, token, hidden=hidden)
    x = residual_branch(b, x, mixer, label="attention")
    x = residual_branch(b, x, feed_forward, label="mlp")
    return finish(b, x, vocab=vocab, tied=tied, active_experts=active_experts)


def join(b: BlockBuilder, x: str, token: str, *, hidden: int) -> str:
    """Norm the hidden state and the next token's embedding, and project both to one."""
    both = b.axis("hidden_and_token", 2 * hidden)
    x = b.norm("hidden_norm", x, over="hidden")
    token = b.norm("token_norm", token, over="hidden")
    x = b.elementwise("hidden_and_token", (x, token), dims=(BATCH, SEQ, both), factor=0.0)
    return b.matmul("join", x, contract=(both,), produce=("hidden",))


def finish(b: BlockBuilder, x: str, *, vocab: int, tied: bool, active_experts: int) -> Block:
    """Final norm, the model's logits and the loss of the further token."""
    x = b.norm("final_norm", x, over="hidden")
    logits = b.matmul(
        "logits",
        x,
        contract=("hidden",),
        produce=(b.axis("vocab", vocab, Split.TENSOR),),
        tied_to=TOKEN_TABLE if tied else LOGITS_TABLE,
    )
    return b.build(output=loss(b, logits), active_experts=active_experts, auxiliary=True)
