"""Mistral: Llama's layer with one sliding window for all layers, or none; Mistral 4."""

from __future__ import annotations

from meshwright.graph.sources.huggingface.decoder_only import (
    decoder_only,
    layer_masks,
    read_sizes,
    window,
)
from meshwright.graph.sources.huggingface.deepseek import mla_model
from meshwright.graph.sources.huggingface.llama import llama_layer
from meshwright.graph.sources.huggingface.reader import ConfigReader
from meshwright.graph.sources.huggingface.registry import Architecture, register


@register("mistral", "ministral", "ministral3")
def mistral(r: ConfigReader) -> Architecture:
    """Mistral: every layer has the same sliding window, or none."""
    sizes = read_sizes(r)
    kind = "sliding_attention" if window(r) else "full_attention"
    masks = layer_masks(r, sizes.layers, pattern=(kind,))
    layers = [llama_layer(r, sizes, mask=mask) for mask in masks]
    return decoder_only("mistral", sizes, layers, tied=r.flag("tie_word_embeddings"))


@register("mistral4")
def mistral4(r: ConfigReader) -> Architecture:
    """Mistral Small 4: latent attention and experts, as in DeepSeek V3."""
    return mla_model(r, family="mistral4")
