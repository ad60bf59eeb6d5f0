"""Mamba models and their hybrids: Mamba 1 and 2, Jamba, Bamba, Granite 4, Falcon-H1."""

from __future__ import annotations

import math

from meshwright.graph.block import Block
from meshwright.graph.builders import AttentionSpec, BlockBuilder, MoeSpec
from meshwright.graph.builders.layer import Branch, residual_layer
from meshwright.graph.builders.mamba import Mamba2Spec, mamba2
from meshwright.graph.builders.mamba1 import Mamba1Spec, mamba1
from meshwright.graph.sources.huggingface.assembly import (
    assemble,
    attention_branch,
    dense_branch,
    each,
    moe_branch,
    tied,
)
from meshwright.graph.sources.huggingface.reader import ConfigReader
from meshwright.graph.sources.huggingface.registry import Architecture, register


def _attention(r: ConfigReader, *, rotary: bool = True) -> Branch:
    heads = r.positive("num_attention_heads")
    bias = r.flag("attention_bias")
    spec = AttentionSpec(
        heads=heads,
        kv_heads=r.kv_heads("num_key_value_heads", heads=heads),
        head_dim=r.head_dim(hidden=r.positive("hidden_size"), heads=heads),
        qkv_bias=bias,
        out_bias=bias,
        rotary=rotary,
    )
    return attention_branch(spec)


def _mamba2(r: ConfigReader, *, norm: bool = True, proj_bias: bool | None = None) -> Branch:
    """Mamba 2; the width of a head follows from the inner width where it is "auto"."""
    hidden = r.positive("hidden_size")
    inner = r.optional("mamba_d_ssm") or r.positive("mamba_expand", "expand", default=2) * hidden
    heads = r.positive("mamba_n_heads", "num_heads", default=128)
    groups = r.positive("mamba_n_groups", "n_groups", default=1)
    if inner % heads or heads % groups:
        raise r.error(
            f"{inner} channels do not divide into {heads} heads in {groups} groups",
            "mamba_n_heads",
            allowed="heads that divide the channels, groups that divide the heads",
            fix="correct mamba_n_heads, mamba_n_groups or mamba_expand",
        )
    bias = r.flag("mamba_proj_bias", "use_bias") if proj_bias is None else proj_bias
    spec = Mamba2Spec(
        heads=heads,
        head_dim=inner // heads,
        groups=groups,
        state=r.positive("mamba_d_state", "state_size", default=128),
        kernel=r.positive("mamba_d_conv", "conv_kernel", default=4, limit=1024),
        chunk=r.positive("mamba_chunk_size", "chunk_size", default=256, limit=2**20),
        conv_bias=r.flag("mamba_conv_bias", "use_conv_bias", default=True),
        proj_bias=bias,
        norm=norm,
    )
    return lambda b, x: mamba2(b, x, spec)


def _mamba1(r: ConfigReader, *, norms: bool) -> Branch:
    hidden = r.positive("hidden_size")
    named = ("mamba_dt_rank", "time_step_rank")
    automatic = not r.has(*named) or any(r.raw(name) == "auto" for name in named)
    spec = Mamba1Spec(
        inner=r.positive("mamba_expand", "expand", default=2, limit=1024) * hidden,
        state=r.positive("mamba_d_state", "state_size", default=16),
        rank=math.ceil(hidden / 16) if automatic else r.positive(*named),
        kernel=r.positive("mamba_d_conv", "conv_kernel", default=4, limit=1024),
        conv_bias=r.flag("mamba_conv_bias", "use_conv_bias", default=True),
        proj_bias=r.flag("mamba_proj_bias", "use_bias"),
        norms=norms,
    )
    return lambda b, x: mamba1(b, x, spec)


def _alone(r: ConfigReader, mixer: Branch, *, family: str, share: bool) -> Architecture:
    """Layers of a mixer and nothing else."""
    hidden, layers = r.positive("hidden_size"), r.layers("num_hidden_layers")
    block = residual_layer("mamba", hidden=hidden, mixer=mixer, feed_forward=None)
    return assemble(r, family=family, layers=(block,) * layers, tied=tied(r, r, default=share))


@register("mamba")
def mamba(r: ConfigReader) -> Architecture:
    """Mamba."""
    return _alone(r, _mamba1(r, norms=False), family="mamba", share=True)


@register("mamba2")
def mamba_2(r: ConfigReader) -> Architecture:
    """Mamba 2."""
    return _alone(r, _mamba2(r), family="mamba2", share=False)


@register("jamba")
def jamba(r: ConfigReader) -> Architecture:
    """Jamba: attention and experts every few layers."""
    hidden, layers = r.positive("hidden_size"), r.layers("num_hidden_layers")
    width, experts = r.positive("intermediate_size"), r.positive("num_experts", default=16)
    top_k = r.top_k("num_experts_per_tok", experts=experts, default=min(2, experts))
    moe = MoeSpec(experts=experts, top_k=top_k, width=width)
    full, linear = _attention(r, rotary=False), _mamba1(r, norms=True)

    def every(kind: str, period: int, offset: int) -> tuple[bool, ...]:
        step = r.positive(f"{kind}_layer_period", default=period)
        first = r.count(f"{kind}_layer_offset", default=offset)
        return tuple(i % step == first for i in range(layers))

    def build(kind: tuple[bool, bool]) -> Block:
        is_full, sparse = kind
        sparse = sparse and experts > 1
        return residual_layer(
            ("" if is_full else "mamba_") + ("moe_decoder" if sparse else "decoder"),
            hidden=hidden,
            mixer=full if is_full else linear,
            feed_forward=moe_branch(moe) if sparse else dense_branch(width),
            active_experts=top_k if sparse else 0,
        )

    keys = zip(every("attn", 8, 4), every("expert", 2, 1), strict=True)
    return assemble(r, family="jamba", layers=each(keys, build), tied=tied(r, r))


@register("bamba")
def bamba(r: ConfigReader) -> Architecture:
    """Bamba: Mamba 2 with attention at some layers."""
    hidden, layers = r.positive("hidden_size"), r.layers("num_hidden_layers")
    ffn = dense_branch(r.positive("intermediate_size"), bias=r.flag("mlp_bias"))
    full, linear = _attention(r), _mamba2(r)
    chosen = set(r.numbers("attn_layer_indices") or ())

    def build(is_full: bool) -> Block:
        return residual_layer(
            "decoder" if is_full else "mamba_decoder",
            hidden=hidden,
            mixer=full if is_full else linear,
            feed_forward=ffn,
        )

    kinds = (i in chosen for i in range(layers))
    return assemble(r, family="bamba", layers=each(kinds, build), tied=tied(r, r))


@register("granitemoehybrid")
def granite_hybrid(r: ConfigReader) -> Architecture:
    """Granite 4: Mamba 2 and attention, experts with a shared one (or a dense layer alone)."""
    hidden, layers = r.positive("hidden_size"), r.layers("num_hidden_layers")
    shared = r.positive("shared_intermediate_size")
    experts = r.count("num_local_experts", default=8)
    moe = None
    if experts:
        moe = MoeSpec(
            experts=experts,
            top_k=r.top_k("num_experts_per_tok", experts=experts, default=min(2, experts)),
            width=r.positive("intermediate_size"),
            shared_width=shared,
        )
    rotary = r.text("position_embedding_type") == "rope"
    full, linear = _attention(r, rotary=rotary), _mamba2(r)
    allowed = ("mamba", "attention", "linear_attention", "full_attention")
    kinds = r.texts("layer_types", "layers_block_type", length=layers, allowed=allowed)
    kinds = kinds or ("mamba",) * layers

    def build(is_full: bool) -> Block:
        return residual_layer(
            ("" if is_full else "mamba_") + ("moe_decoder" if moe else "decoder"),
            hidden=hidden,
            mixer=full if is_full else linear,
            feed_forward=moe_branch(moe) if moe else dense_branch(shared),
            active_experts=moe.top_k if moe else 0,
        )

    full_layers = (kind in ("attention", "full_attention") for kind in kinds)
    return assemble(r, family="granitemoehybrid", layers=each(full_layers, build), tied=tied(r, r))


@register("falcon_h1")
def falcon_h1(r: ConfigReader) -> Architecture:
    """Falcon-H1: attention and Mamba 2 read the same input side by side."""
    hidden, layers = r.positive("hidden_size"), r.layers("num_hidden_layers")
    attention = _attention(r)
    recurrence = _mamba2(r, norm=r.flag("mamba_rms_norm"), proj_bias=_falcon_bias(r))

    def both(b: BlockBuilder, x: str) -> str:
        return b.elementwise("mixers", (recurrence(b, x), attention(b, x)))

    block = residual_layer(
        "mamba_decoder",
        hidden=hidden,
        mixer=both,
        feed_forward=dense_branch(r.positive("intermediate_size"), bias=r.flag("mlp_bias")),
    )
    return assemble(r, family="falcon_h1", layers=(block,) * layers, tied=tied(r, r))


def _falcon_bias(r: ConfigReader) -> bool:
    """One flag for the projections into the recurrence, one for the projection out of it."""
    into, out = r.flag("mamba_proj_bias"), r.flag("projectors_bias")
    if into != out:
        raise r.error(
            "mamba_proj_bias and projectors_bias differ",
            "projectors_bias",
            allowed="the same value for both",
            fix="set both alike",
        )
    return into
