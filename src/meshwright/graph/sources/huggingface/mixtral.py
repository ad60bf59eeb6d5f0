"""Mixtral: Mistral's attention with a mixture of experts."""

from __future__ import annotations

from meshwright.graph.op import Mask
from meshwright.graph.sources.huggingface.decoder_only import (
    attention,
    decoder_only,
    read_sizes,
    window,
)
from meshwright.graph.sources.huggingface.mixture import moe_layer, read_moe
from meshwright.graph.sources.huggingface.reader import ConfigReader
from meshwright.graph.sources.huggingface.registry import Architecture, register


@register("mixtral")
def mixtral(r: ConfigReader) -> Architecture:
    """Mixtral 8x7B and 8x22B."""
    sizes = read_sizes(r)
    layer = moe_layer(
        hidden=sizes.hidden,
        attention=attention(r, sizes, mask=Mask(window=window(r))),
        moe=read_moe(r, width=r.positive("intermediate_size")),
    )
    tied = r.flag("tie_word_embeddings")
    return decoder_only("mixtral", sizes, (layer,) * sizes.layers, tied=tied)
