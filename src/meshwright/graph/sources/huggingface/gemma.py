"""Gemma 1 to 3: tied tables, wide heads, norms around the branches from the second on."""

from __future__ import annotations

from dataclasses import replace

from meshwright.graph.builders import LayerSpec
from meshwright.graph.op import Mask
from meshwright.graph.sources.huggingface.decoder_only import (
    HEADS,
    Sizes,
    decoder_only,
    layer_masks,
    local_global,
    read_sizes,
)
from meshwright.graph.sources.huggingface.llama import llama_layer
from meshwright.graph.sources.huggingface.reader import ConfigReader
from meshwright.graph.sources.huggingface.registry import Architecture, register
from meshwright.graph.sources.huggingface.siglip import behind, siglip_tower


def _layer(r: ConfigReader, sizes: Sizes, mask: Mask, qk_norm: str | None = None) -> LayerSpec:
    bias = r.flag("attention_bias")
    return llama_layer(r, sizes, qkv_bias=bias, out_bias=bias, mask=mask, qk_norm=qk_norm)


@register("gemma")
def gemma(r: ConfigReader) -> Architecture:
    """Gemma 1: Llama's layer with heads of 256."""
    sizes = read_sizes(r, head_dim=256)
    layers = (_layer(r, sizes, Mask()),) * sizes.layers
    return decoder_only("gemma", sizes, layers, tied=r.flag("tie_word_embeddings", default=True))


@register("gemma2")
def gemma2(r: ConfigReader) -> Architecture:
    """Gemma 2: a window of 4,096 in every other layer, four norms per layer."""
    sizes = read_sizes(r, head_dim=256)
    pattern = ("sliding_attention", "full_attention")
    masks = layer_masks(r, sizes.layers, pattern=pattern, default_window=4096)
    layers = [replace(_layer(r, sizes, mask), sandwich=True) for mask in masks]
    return decoder_only("gemma2", sizes, layers, tied=r.flag("tie_word_embeddings", default=True))


@register("gemma3_text")
def gemma3_text(r: ConfigReader) -> Architecture:
    """Gemma 3: five local layers for one global, norms per head on queries and keys.

    The configurations of the models with vision leave out what equals the defaults.
    """
    heads = 8
    kv_heads = None if r.has(*HEADS) else 4
    sizes = read_sizes(r, heads=heads, kv_heads=kv_heads, head_dim=256, vocab=262_208)
    period = r.positive("sliding_window_pattern", "_sliding_window_pattern", default=6)
    masks = layer_masks(r, sizes.layers, pattern=local_global(period), default_window=4096)
    layers = [replace(_layer(r, sizes, mask, "head"), sandwich=True) for mask in masks]
    return decoder_only("gemma3", sizes, layers, tied=r.flag("tie_word_embeddings", default=True))


@register("gemma3")
def gemma3(r: ConfigReader) -> Architecture:
    """Gemma 3 from 4B on: a SigLIP tower whose patches are averaged before the projection."""
    architecture = gemma3_text(r.text_model())
    vision = r.sub("vision_config")
    if vision is None:
        return architecture
    hidden = architecture.blocks[0].axis("hidden").size
    assert hidden is not None
    tower = siglip_tower(vision, tokens=r.positive("mm_tokens_per_image", default=256), out=hidden)
    return behind(tower, architecture)
