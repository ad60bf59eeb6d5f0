"""Qwen3-Next and Qwen3.5: gated delta nets with a gated attention layer every few layers."""

from __future__ import annotations

from meshwright.graph.block import Block
from meshwright.graph.builders import AttentionSpec, MoeSpec
from meshwright.graph.builders.layer import Branch, residual_layer
from meshwright.graph.builders.linear_attention import DeltaNetSpec, gated_delta_net
from meshwright.graph.sources.huggingface.assembly import (
    assemble,
    attention_branch,
    dense_branch,
    each,
    moe_branch,
    mtp_modules,
    tied,
)
from meshwright.graph.sources.huggingface.qwen_vl import qwen3_tower
from meshwright.graph.sources.huggingface.reader import ConfigReader
from meshwright.graph.sources.huggingface.registry import Architecture, register


@register("qwen3_next", "qwen3_5_text", "qwen3_5_moe_text")
def qwen3_next(r: ConfigReader) -> Architecture:
    """The language model alone."""
    return _hybrid(r, r)


@register("qwen3_5", "qwen3_5_moe")
def qwen3_5(r: ConfigReader) -> Architecture:
    """The language model behind its vision tower."""
    return _hybrid(r, r.text_model())


def _hybrid(outer: ConfigReader, r: ConfigReader) -> Architecture:
    hidden, layers = r.positive("hidden_size"), r.layers("num_hidden_layers")
    full, linear = _gated_attention(r), _delta_net(r)
    moe = _experts(r)
    ffn = dense_branch(r.positive("intermediate_size")) if _has_dense(r, moe) else None
    kinds = _mixers(r, layers=layers)
    step = r.positive("decoder_sparse_step", default=1)
    dense_only = set(r.numbers("mlp_only_layers") or ())
    sparse = [
        moe is not None and i not in dense_only and (i + 1) % step == 0 for i in range(layers)
    ]

    def build(kind: tuple[bool, bool]) -> Block:
        is_linear, has_experts = kind
        experts = moe if has_experts else None
        name = ("linear_" if is_linear else "") + ("moe_decoder" if experts else "decoder")
        return residual_layer(
            name,
            hidden=hidden,
            mixer=linear if is_linear else full,
            feed_forward=moe_branch(experts) if experts else ffn,
            active_experts=experts.top_k if experts else 0,
        )

    share = tied(outer, r)
    last = moe_branch(moe) if moe else ffn
    assert last is not None
    mtp = mtp_modules(
        r,
        "mtp_num_hidden_layers",
        "num_nextn_predict_layers",
        tied=share,
        mixer=full,
        feed_forward=last,
        active_experts=moe.top_k if moe else 0,
    )
    vision = outer.sub("vision_config") if outer is not r else None
    return assemble(
        r,
        family="qwen3_next",
        layers=each(zip(kinds, sparse, strict=True), build),
        tied=share,
        mtp=mtp,
        towers=(qwen3_tower(vision),) if vision else (),
    )


def _mixers(r: ConfigReader, *, layers: int) -> tuple[bool, ...]:
    """Per layer, whether it is linear."""
    allowed = ("linear_attention", "full_attention")
    kinds = r.texts("layer_types", length=layers, allowed=allowed)
    if kinds is not None:
        return tuple(kind == "linear_attention" for kind in kinds)
    every = r.positive("full_attention_interval", default=4)
    return tuple((i + 1) % every != 0 for i in range(layers))


def _gated_attention(r: ConfigReader) -> Branch:
    hidden, heads = r.positive("hidden_size"), r.positive("num_attention_heads")
    bias = r.flag("attention_bias")
    spec = AttentionSpec(
        heads=heads,
        kv_heads=r.kv_heads("num_key_value_heads", heads=heads),
        head_dim=r.head_dim(hidden=hidden, heads=heads),
        qkv_bias=bias,
        out_bias=bias,
        qk_norm="head",
        output_gate=r.flag("attn_output_gate", default=True),
    )
    return attention_branch(spec)


def _delta_net(r: ConfigReader) -> Branch:
    key_heads = r.positive("linear_num_key_heads", default=16)
    value_heads = r.positive("linear_num_value_heads", default=32)
    if value_heads % key_heads:
        raise r.error(
            f"{value_heads} value heads are not a multiple of {key_heads} key heads",
            "linear_num_value_heads",
            allowed=f"a multiple of {key_heads}",
            fix="correct one of the two",
        )
    spec = DeltaNetSpec(
        key_heads=key_heads,
        key_dim=r.positive("linear_key_head_dim", default=128),
        value_heads=value_heads,
        value_dim=r.positive("linear_value_head_dim", default=128),
        kernel=r.positive("linear_conv_kernel_dim", default=4, limit=1024),
    )
    return lambda b, x: gated_delta_net(b, x, spec)


def _experts(r: ConfigReader) -> MoeSpec | None:
    experts = r.count("num_experts")
    if not experts:
        return None
    return MoeSpec(
        experts=experts,
        top_k=r.top_k("num_experts_per_tok", experts=experts),
        width=r.positive("moe_intermediate_size"),
        shared_width=r.count("shared_expert_intermediate_size"),
        shared_gate=r.has("shared_expert_intermediate_size"),
    )


def _has_dense(r: ConfigReader, moe: MoeSpec | None) -> bool:
    return moe is None or r.has("intermediate_size")
