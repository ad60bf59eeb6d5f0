"""Command R: attention and MLP side by side behind one norm without shift."""

from __future__ import annotations

from dataclasses import replace

from meshwright.graph.builders import LayerSpec
from meshwright.graph.op import Mask
from meshwright.graph.sources.huggingface.decoder_only import (
    decoder_only,
    layer_masks,
    local_global,
    read_sizes,
)
from meshwright.graph.sources.huggingface.llama import llama_layer
from meshwright.graph.sources.huggingface.reader import ConfigReader
from meshwright.graph.sources.huggingface.registry import Architecture, register


@register("cohere")
def cohere(r: ConfigReader) -> Architecture:
    """Command R and R+: optional norms of queries and keys, one scale per head and channel."""
    return _cohere(r, pattern=("full_attention",))


@register("cohere2")
def cohere2(r: ConfigReader) -> Architecture:
    """Command R7B and Command A: a sliding window in three of four layers."""
    period = r.positive("sliding_window_pattern", "_sliding_window_pattern", default=4)
    return _cohere(r, pattern=local_global(period))


def _cohere(r: ConfigReader, *, pattern: tuple[str, ...]) -> Architecture:
    sizes = read_sizes(r)
    bias = r.flag("attention_bias")
    qk_norm = "layer" if r.flag("use_qk_norm") else None

    def layer_with(mask: Mask) -> LayerSpec:
        layer = llama_layer(r, sizes, qkv_bias=bias, out_bias=bias, mask=mask, qk_norm=qk_norm)
        return replace(layer, parallel=True, shared_norm=True)

    masks = layer_masks(r, sizes.layers, pattern=pattern, default_window=4096)
    layers = [layer_with(mask) for mask in masks]
    tied = r.flag("tie_word_embeddings", default=True)
    return decoder_only("cohere", sizes, layers, tied=tied)
