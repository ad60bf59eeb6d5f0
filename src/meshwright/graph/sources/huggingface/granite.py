"""Granite with experts."""

from __future__ import annotations

from meshwright.graph.sources.huggingface.decoder_only import attention, decoder_only, read_sizes
from meshwright.graph.sources.huggingface.mixture import moe_layer, read_moe
from meshwright.graph.sources.huggingface.reader import ConfigReader
from meshwright.graph.sources.huggingface.registry import Architecture, register


@register("granitemoe", "granitemoeshared")
def granite_moe(r: ConfigReader) -> Architecture:
    """Granite 3 with experts, and a shared expert where its width is given."""
    sizes = read_sizes(r)
    bias = r.flag("attention_bias")
    layer = moe_layer(
        hidden=sizes.hidden,
        attention=attention(r, sizes, qkv_bias=bias, out_bias=bias),
        moe=read_moe(
            r,
            width=r.positive("intermediate_size"),
            shared_width=r.count("shared_intermediate_size"),
        ),
    )
    tied = r.flag("tie_word_embeddings")
    return decoder_only("granite_moe", sizes, (layer,) * sizes.layers, tied=tied)
