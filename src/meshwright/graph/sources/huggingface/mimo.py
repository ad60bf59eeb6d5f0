"""MiMo: a Qwen2-like dense model with a prediction module, and the MoE MiMo-V2-Flash."""

from __future__ import annotations

from meshwright.graph.block import Block
from meshwright.graph.builders import AttentionSpec
from meshwright.graph.builders.layer import Branch, residual_layer
from meshwright.graph.op import Mask
from meshwright.graph.sources.huggingface.assembly import (
    assemble,
    attention_branch,
    dense_branch,
    each,
    moe_branch,
    mtp_modules,
    tied,
)
from meshwright.graph.sources.huggingface.deepseek import deepseek_moe
from meshwright.graph.sources.huggingface.reader import ConfigReader
from meshwright.graph.sources.huggingface.registry import Architecture, register


@register("mimo")
def mimo(r: ConfigReader) -> Architecture:
    """MiMo-7B."""
    hidden, heads = r.positive("hidden_size"), r.positive("num_attention_heads")
    spec = AttentionSpec(
        heads=heads,
        kv_heads=r.kv_heads("num_key_value_heads", heads=heads),
        head_dim=r.head_dim(hidden=hidden, heads=heads),
        qkv_bias=r.flag("attention_bias", default=True),
    )
    mixer = attention_branch(spec)
    ffn = dense_branch(r.positive("intermediate_size"))
    share = tied(r, r)
    block = residual_layer("decoder", hidden=hidden, mixer=mixer, feed_forward=ffn)
    return assemble(
        r,
        family="mimo",
        layers=(block,) * r.layers("num_hidden_layers"),
        tied=share,
        mtp=mtp_modules(r, "num_nextn_predict_layers", tied=share, mixer=mixer, feed_forward=ffn),
    )


@register("mimo_v2_flash", "mimo_v2")
def mimo_v2(r: ConfigReader) -> Architecture:
    """MiMo-V2-Flash: windows with sinks between full layers, experts without a shared one."""
    hidden, layers = r.positive("hidden_size"), r.layers("num_hidden_layers")
    full, sliding = _attention_v2(r, sliding=False), _attention_v2(r, sliding=True)
    windowed = _windowed(r, layers=layers)
    sparse = _sparse(r, layers=layers)
    moe = deepseek_moe(r)
    ffn = dense_branch(r.positive("intermediate_size"))

    def build(kind: tuple[bool, bool]) -> Block:
        window, experts = kind
        return residual_layer(
            ("sliding_" if window else "") + ("moe_decoder" if experts else "decoder"),
            hidden=hidden,
            mixer=sliding if window else full,
            feed_forward=moe_branch(moe) if experts else ffn,
            active_experts=moe.top_k if experts else 0,
        )

    keys = zip(windowed, sparse, strict=True)
    return assemble(r, family="mimo_v2", layers=each(keys, build), tied=tied(r, r))


def _attention_v2(r: ConfigReader, *, sliding: bool) -> Branch:
    """Windows have twice the key-value heads, and sinks."""
    heads, hidden = r.positive("num_attention_heads"), r.positive("hidden_size")
    kv_heads = r.kv_heads("num_key_value_heads", heads=heads)
    if sliding:
        kv_heads = r.kv_heads("swa_num_key_value_heads", heads=heads, default=2 * kv_heads)
    # The published field counts the tokens before the query.
    before = r.optional("sliding_window_size")
    window = before + 1 if before else r.positive("sliding_window", default=129)
    spec = AttentionSpec(
        heads=heads,
        kv_heads=kv_heads,
        head_dim=r.head_dim(hidden=hidden, heads=heads),
        value_dim=r.optional("v_head_dim"),
        mask=Mask(window=window if sliding else None),
        qkv_bias=r.flag("attention_bias"),
        sinks=sliding,
    )
    return attention_branch(spec)


def _windowed(r: ConfigReader, *, layers: int) -> tuple[bool, ...]:
    allowed = ("sliding_attention", "full_attention")
    kinds = r.texts("layer_types", length=layers, allowed=allowed)
    if kinds is not None:
        return tuple(kind == "sliding_attention" for kind in kinds)
    codes = r.numbers("hybrid_layer_pattern", length=layers)
    if codes is not None:
        return tuple(code == 1 for code in codes)
    return tuple(i != 0 and (i + 1) % 6 != 0 for i in range(layers))


def _sparse(r: ConfigReader, *, layers: int) -> tuple[bool, ...]:
    kinds = r.texts("mlp_layer_types", length=layers, allowed=("dense", "sparse"))
    if kinds is not None:
        return tuple(kind == "sparse" for kind in kinds)
    codes = r.raw("moe_layer_freq")
    if isinstance(codes, list):
        return tuple(bool(code) for code in r.numbers("moe_layer_freq", length=layers) or ())
    return tuple(i > 0 for i in range(layers))
