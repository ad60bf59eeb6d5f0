"""MiniMax: Text-01 and M1 (lightning attention between full layers), and M2."""

from __future__ import annotations

from meshwright.graph.block import Block
from meshwright.graph.builders import AttentionSpec, BlockBuilder, MoeSpec
from meshwright.graph.builders.layer import Branch, residual_layer
from meshwright.graph.builders.linear_attention import LightningSpec, lightning_attention
from meshwright.graph.sources.huggingface.assembly import (
    assemble,
    attention_branch,
    each,
    moe_branch,
    mtp_modules,
    tied,
)
from meshwright.graph.sources.huggingface.reader import ConfigReader
from meshwright.graph.sources.huggingface.registry import Architecture, register


def _moe(r: ConfigReader) -> MoeSpec:
    experts = r.positive("num_local_experts", "num_experts")
    return MoeSpec(
        experts=experts,
        top_k=r.top_k("num_experts_per_tok", experts=experts),
        width=r.positive("intermediate_size"),
        shared_width=r.count("shared_intermediate_size"),
    )


def _full(r: ConfigReader, *, qk_norm: str | None) -> Branch:
    heads = r.positive("num_attention_heads")
    spec = AttentionSpec(
        heads=heads,
        kv_heads=r.kv_heads("num_key_value_heads", heads=heads),
        head_dim=r.head_dim(hidden=r.positive("hidden_size"), heads=heads),
        qk_norm=qk_norm,
    )
    return attention_branch(spec)


@register("minimax", "minimax_text_01", "minimax_m1")
def minimax(r: ConfigReader) -> Architecture:
    """MiniMax-Text-01 and MiniMax-M1."""
    hidden, layers = r.positive("hidden_size"), r.layers("num_hidden_layers")
    heads = r.positive("num_attention_heads")
    spec = LightningSpec(
        heads=heads,
        head_dim=r.head_dim(hidden=hidden, heads=heads),
        chunk=r.positive("block_size", default=256, limit=2**20),
    )
    moe, full = _moe(r), _full(r, qk_norm=None)

    def linear(b: BlockBuilder, x: str) -> str:
        return lightning_attention(b, x, spec)

    def build(is_linear: bool) -> Block:
        return residual_layer(
            "linear_moe_decoder" if is_linear else "moe_decoder",
            hidden=hidden,
            mixer=linear if is_linear else full,
            feed_forward=moe_branch(moe),
            active_experts=moe.top_k,
        )

    kinds = _linear_layers(r, layers=layers)
    return assemble(r, family="minimax", layers=each(kinds, build), tied=tied(r, r))


def _linear_layers(r: ConfigReader, *, layers: int) -> tuple[bool, ...]:
    """Per layer, whether its attention is linear."""
    allowed = ("linear_attention", "full_attention")
    kinds = r.texts("layer_types", length=layers, allowed=allowed)
    if kinds is not None:
        return tuple(kind == "linear_attention" for kind in kinds)
    # In the first published form 0 is linear and 1 is full.
    codes = r.numbers("attn_type_list", length=layers)
    if codes is not None:
        return tuple(code == 0 for code in codes)
    return tuple((i + 1) % 2 == 0 for i in range(layers))


@register("minimax_m2")
def minimax_m2(r: ConfigReader) -> Architecture:
    """MiniMax-M2, M2.1 and M2.5."""
    hidden, layers = r.positive("hidden_size"), r.layers("num_hidden_layers")
    per_layer = r.choice("qk_norm_type", allowed=("per_layer", "per_head"), default="per_layer")
    qk_norm = "layer" if per_layer == "per_layer" else "head"
    full = _full(r, qk_norm=qk_norm if r.flag("use_qk_norm", default=True) else None)
    moe, share = _moe(r), tied(r, r)
    block = residual_layer(
        "moe_decoder",
        hidden=hidden,
        mixer=full,
        feed_forward=moe_branch(moe),
        active_experts=moe.top_k,
    )
    mtp: tuple[Block, ...] = ()
    if r.flag("use_mtp"):
        mtp = mtp_modules(
            r,
            "num_mtp_modules",
            tied=share,
            mixer=full,
            feed_forward=moe_branch(moe),
            active_experts=moe.top_k,
        )
    return assemble(r, family="minimax_m2", layers=(block,) * layers, tied=share, mtp=mtp)
