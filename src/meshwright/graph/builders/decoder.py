"""The standard pre-norm transformer layer that most families are variations of."""

from __future__ import annotations

from dataclasses import dataclass

from meshwright.graph.axis import BATCH, SEQ
from meshwright.graph.block import Block, BlockRole
from meshwright.graph.builders.attention import AttentionSpec, self_attention
from meshwright.graph.builders.builder import BlockBuilder
from meshwright.graph.builders.mlp import MoeSpec, mlp, moe


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerSpec:
    """One transformer layer.

    Attributes:
        hidden: width of the residual stream.
        attention: shape of the attention.
        ffn: width of the dense feed-forward layer; 0 when ``moe`` replaces it.
        gated, mlp_bias: of the dense feed-forward layer.
        moe: a mixture of experts instead.
        norm_bias: layer norms with a shift (RMS norms have none).
        sandwich: norms after the branches as well as before them.
        parallel: attention and feed-forward layer read the same input side by side.
        shared_norm: with ``parallel``, one norm feeds both.
        dropout: on both branches.
    """

    hidden: int
    attention: AttentionSpec
    ffn: int = 0
    gated: bool = True
    mlp_bias: bool = False
    moe: MoeSpec | None = None
    norm_bias: bool = False
    sandwich: bool = False
    parallel: bool = False
    shared_norm: bool = False
    dropout: bool = False


def transformer_layer(spec: LayerSpec, *, name: str = "decoder") -> Block:
    """The layer as a block."""
    b = BlockBuilder(name, BlockRole.LAYER)
    b.axis("hidden", spec.hidden)
    x = b.input("x", (BATCH, SEQ, "hidden"))

    def norm(label: str, y: str) -> str:
        return b.norm(label, y, over="hidden", bias=spec.norm_bias)

    def feed_forward(y: str) -> str:
        if spec.moe is not None:
            return moe(b, y, spec.moe)
        return mlp(b, y, width=spec.ffn, gated=spec.gated, bias=spec.mlp_bias)

    normed = norm("attention_norm", x)
    branch = self_attention(b, normed, spec.attention)
    if spec.parallel:
        ffn_in = normed if spec.shared_norm else norm("mlp_norm", x)
        both = b.elementwise("branches", (branch, feed_forward(ffn_in)))
        out = b.residual("residual", x, both, dropout=spec.dropout)
    else:
        if spec.sandwich:
            branch = norm("attention_post_norm", branch)
        x = b.residual("attention_residual", x, branch, dropout=spec.dropout)
        branch = feed_forward(norm("mlp_norm", x))
        if spec.sandwich:
            branch = norm("mlp_post_norm", branch)
        out = b.residual("mlp_residual", x, branch, dropout=spec.dropout)
    return b.build(output=out, active_experts=spec.moe.top_k if spec.moe else 0)
