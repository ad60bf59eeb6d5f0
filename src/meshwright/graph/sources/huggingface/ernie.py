"""ERNIE 4.5, dense and with experts."""

from __future__ import annotations

from dataclasses import replace

from meshwright.graph.builders import LayerSpec, MoeSpec
from meshwright.graph.sources.huggingface.decoder_only import (
    FFN,
    Sizes,
    attention,
    decoder_only,
    read_sizes,
)
from meshwright.graph.sources.huggingface.reader import ConfigReader
from meshwright.graph.sources.huggingface.registry import Architecture, register


def _layer(r: ConfigReader, sizes: Sizes) -> LayerSpec:
    bias = r.flag("use_bias")
    return LayerSpec(
        hidden=sizes.hidden,
        attention=attention(r, sizes, qkv_bias=bias, out_bias=bias),
        ffn=r.positive(*FFN),
        mlp_bias=bias,
    )


@register("ernie4_5")
def ernie4_5(r: ConfigReader) -> Architecture:
    """ERNIE 4.5 0.3B: Llama's layer with one flag for all biases."""
    sizes = read_sizes(r)
    layers = (_layer(r, sizes),) * sizes.layers
    tied = r.flag("tie_word_embeddings", default=True)
    return decoder_only("ernie4_5", sizes, layers, tied=tied)


@register("ernie4_5_moe")
def ernie4_5_moe(r: ConfigReader) -> Architecture:
    """ERNIE 4.5 21B-A3B and 300B-A47B: experts in a range of layers.

    The correction of the router's scores (one number per expert) is set by a rule, not
    learned by gradients, and not counted.
    """
    sizes = read_sizes(r)
    dense = _layer(r, sizes)
    experts = r.positive("moe_num_experts", default=64)
    width = r.positive("moe_intermediate_size", default=1536)
    moe = MoeSpec(
        experts=experts,
        top_k=r.top_k("moe_k", experts=experts, default=6),
        width=width,
        expert_bias=False,
        shared_width=width * r.count("moe_num_shared_experts", default=2),
    )
    sparse = replace(dense, ffn=0, moe=moe)
    first = r.count("moe_layer_start_index", default=1)
    every = r.positive("moe_layer_interval", default=1)
    last = r.count("moe_layer_end_index", default=sizes.layers - 1)
    layers = [
        sparse if first <= i <= last and (i + 1) % every == 0 else dense
        for i in range(sizes.layers)
    ]
    tied = r.flag("tie_word_embeddings", default=True)
    return decoder_only("ernie4_5_moe", sizes, layers, tied=tied)
