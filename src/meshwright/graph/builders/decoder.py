"""The transformer layer that most families are variations of."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from meshwright.graph.axis import BATCH, SEQ, Axis
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
        activation_parameters: learned numbers of its activation.
        moe: a mixture of experts instead.
        norm_bias: layer norms with a shift (RMS norms have none).
        norm_learned: norms have a scale at all.
        pre_norm: norms before the branches.
        sandwich: norms after the branches, before they are added.
        post_norm: norms of the sum, after each addition (BERT).
        parallel: attention and feed-forward layer read the same input side by side.
        shared_norm: with ``parallel``, one norm feeds both.
        dropout: on both branches.
        seq: the sequence axis when the workload does not bind it (images).
    """

    hidden: int
    attention: AttentionSpec
    ffn: int = 0
    gated: bool = True
    mlp_bias: bool = False
    activation_parameters: int = 0
    moe: MoeSpec | None = None
    norm_bias: bool = False
    norm_learned: bool = True
    pre_norm: bool = True
    sandwich: bool = False
    post_norm: bool = False
    parallel: bool = False
    shared_norm: bool = False
    dropout: bool = False
    seq: Axis | None = None


def transformer_layer(spec: LayerSpec, *, name: str = "decoder") -> Block:
    """The layer as a block."""
    b = BlockBuilder(name, BlockRole.LAYER, seq=spec.seq)
    b.axis("hidden", spec.hidden)
    x = b.input("x", (BATCH, SEQ, "hidden"))

    def norm(label: str, y: str, wanted: bool = True) -> str:
        if not wanted:
            return y
        return b.norm(label, y, over="hidden", bias=spec.norm_bias, learned=spec.norm_learned)

    def feed_forward(y: str) -> str:
        if spec.moe is not None:
            return moe(b, y, spec.moe)
        return mlp(
            b,
            y,
            width=spec.ffn,
            gated=spec.gated,
            bias=spec.mlp_bias,
            activation_parameters=spec.activation_parameters,
        )

    normed = norm("attention_norm", x, spec.pre_norm)
    branch = self_attention(b, normed, spec.attention)
    if spec.parallel:
        ffn_in = normed if spec.shared_norm else norm("mlp_norm", x, spec.pre_norm)
        both = b.elementwise("branches", (branch, feed_forward(ffn_in)))
        out = b.residual("residual", x, both, dropout=spec.dropout)
    else:
        branch = norm("attention_post_norm", branch, spec.sandwich)
        x = b.residual("attention_residual", x, branch, dropout=spec.dropout)
        x = norm("attention_sum_norm", x, spec.post_norm)
        branch = feed_forward(norm("mlp_norm", x, spec.pre_norm))
        branch = norm("mlp_post_norm", branch, spec.sandwich)
        out = b.residual("mlp_residual", x, branch, dropout=spec.dropout)
        out = norm("mlp_sum_norm", out, spec.post_norm)
    return b.build(output=out, active_experts=spec.moe.top_k if spec.moe else 0)


def transformer_layers(specs: Iterable[LayerSpec], *, name: str = "decoder") -> tuple[Block, ...]:
    """One block per layer; equal layers share one block, so long models stay cheap.

    Layers with experts are named ``moe_`` and ``name``, those with a window ``local_``.
    """
    built: dict[LayerSpec, Block] = {}
    blocks = []
    for spec in specs:
        if spec not in built:
            local = "local_" if spec.attention.mask.window else ""
            experts = "moe_" if spec.moe else ""
            built[spec] = transformer_layer(spec, name=f"{local}{experts}{name}")
        blocks.append(built[spec])
    return tuple(blocks)
