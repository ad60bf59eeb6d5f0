"""OLMo 1 to 3 and OLMoE."""

from __future__ import annotations

from dataclasses import replace

from meshwright.graph.builders import LayerSpec, head_block
from meshwright.graph.op import Mask
from meshwright.graph.sources.huggingface.decoder_only import (
    Sizes,
    attention,
    decoder_only,
    layer_masks,
    local_global,
    read_sizes,
)
from meshwright.graph.sources.huggingface.llama import llama_layer
from meshwright.graph.sources.huggingface.mixture import moe_layer, read_moe
from meshwright.graph.sources.huggingface.reader import ConfigReader
from meshwright.graph.sources.huggingface.registry import Architecture, register


@register("olmo")
def olmo(r: ConfigReader) -> Architecture:
    """OLMo: layer norms without scale or shift."""
    sizes = read_sizes(r)
    bias, tied = r.flag("attention_bias"), r.flag("tie_word_embeddings")
    layer = replace(llama_layer(r, sizes, qkv_bias=bias, out_bias=bias), norm_learned=False)
    head = head_block(vocab=sizes.vocab, hidden=sizes.hidden, tied=tied, norm_learned=False)
    return decoder_only("olmo", sizes, (layer,) * sizes.layers, tied=tied, head=head)


def _olmo2_layer(r: ConfigReader, sizes: Sizes, mask: Mask) -> LayerSpec:
    bias = r.flag("attention_bias")
    layer = llama_layer(r, sizes, qkv_bias=bias, out_bias=bias, mask=mask, qk_norm="layer")
    return replace(layer, pre_norm=False, sandwich=True)


@register("olmo2")
def olmo2(r: ConfigReader) -> Architecture:
    """OLMo 2: norms after the branches, and over all heads of queries and keys."""
    sizes = read_sizes(r)
    layers = (_olmo2_layer(r, sizes, Mask()),) * sizes.layers
    return decoder_only("olmo2", sizes, layers, tied=r.flag("tie_word_embeddings"))


@register("olmo3")
def olmo3(r: ConfigReader) -> Architecture:
    """OLMo 3: OLMo 2 with a sliding window in three of four layers."""
    sizes = read_sizes(r)
    masks = layer_masks(r, sizes.layers, pattern=local_global(4), default_window=4096)
    layers = [_olmo2_layer(r, sizes, mask) for mask in masks]
    return decoder_only("olmo3", sizes, layers, tied=r.flag("tie_word_embeddings"))


@register("olmoe")
def olmoe(r: ConfigReader) -> Architecture:
    """OLMoE: norms over all heads of queries and keys, 64 small experts."""
    sizes = read_sizes(r)
    bias = r.flag("attention_bias")
    layer = moe_layer(
        hidden=sizes.hidden,
        attention=attention(r, sizes, qkv_bias=bias, out_bias=bias, qk_norm="layer"),
        moe=read_moe(r, width=r.positive("intermediate_size")),
    )
    tied = r.flag("tie_word_embeddings")
    return decoder_only("olmoe", sizes, (layer,) * sizes.layers, tied=tied)
