"""EXAONE 3 and 4."""

from __future__ import annotations

from dataclasses import replace

from meshwright.graph.sources.huggingface.decoder_only import (
    decoder_only,
    layer_masks,
    read_sizes,
    window,
)
from meshwright.graph.sources.huggingface.llama import llama_layer
from meshwright.graph.sources.huggingface.reader import ConfigReader
from meshwright.graph.sources.huggingface.registry import Architecture, register


@register("exaone")
def exaone(r: ConfigReader) -> Architecture:
    """EXAONE 3 and 3.5: Llama's layer."""
    sizes = read_sizes(r)
    layer = llama_layer(r, sizes)
    tied = r.flag("tie_word_embeddings")
    return decoder_only("exaone", sizes, (layer,) * sizes.layers, tied=tied)


#: One global layer after three local ones.
_PATTERN = "LLLG"


@register("exaone4")
def exaone4(r: ConfigReader) -> Architecture:
    """EXAONE 4: norms after the branches, and per head on queries and keys.

    A model without a sliding window sees everything in every layer.
    """
    sizes = read_sizes(r)
    local = window(r) is not None
    pattern = tuple(
        "sliding_attention" if letter == "L" and local else "full_attention" for letter in _PATTERN
    )
    masks = layer_masks(r, sizes.layers, pattern=pattern)
    layers = [
        replace(llama_layer(r, sizes, mask=mask, qk_norm="head"), pre_norm=False, sandwich=True)
        for mask in masks
    ]
    return decoder_only("exaone4", sizes, layers, tied=r.flag("tie_word_embeddings"))
