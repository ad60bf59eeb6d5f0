"""MosaicML's models: MPT and DBRX."""

from __future__ import annotations

from meshwright.graph.builders import LayerSpec, MoeSpec
from meshwright.graph.sources.huggingface.decoder_only import (
    attention,
    decoder_only,
    hidden_dropout,
    read_sizes,
)
from meshwright.graph.sources.huggingface.mixture import moe_layer
from meshwright.graph.sources.huggingface.reader import ConfigReader
from meshwright.graph.sources.huggingface.registry import Architecture, register


@register("mpt")
def mpt(r: ConfigReader) -> Architecture:
    """MPT: ALiBi, norms without shift, no biases."""
    sizes = read_sizes(r)
    layer = LayerSpec(
        hidden=sizes.hidden,
        attention=attention(r, sizes, rotary=False),
        ffn=r.positive("expansion_ratio", default=4) * sizes.hidden,
        gated=False,
        dropout=hidden_dropout(r),
    )
    tied = r.flag("tie_word_embeddings", default=True)
    return decoder_only("mpt", sizes, (layer,) * sizes.layers, tied=tied)


@register("dbrx")
def dbrx(r: ConfigReader) -> Architecture:
    """DBRX: sixteen experts, four per token; norms without shift."""
    inner = r.sub("attn_config")
    kv_heads = inner.positive("kv_n_heads", default=1) if inner else 1
    sizes = read_sizes(r, kv_heads=kv_heads)
    ffn = r.sub("ffn_config")
    if ffn is None:
        raise r.error(
            "ffn_config is missing",
            "ffn_config",
            allowed="an object with ffn_hidden_size, moe_num_experts and moe_top_k",
            fix="add ffn_config to the configuration",
        )
    experts = ffn.positive("moe_num_experts", default=4)
    moe = MoeSpec(
        experts=experts,
        top_k=ffn.top_k("moe_top_k", experts=experts, default=1),
        width=ffn.positive("ffn_hidden_size", default=3584),
    )
    layer = moe_layer(hidden=sizes.hidden, attention=attention(r, sizes), moe=moe)
    tied = r.flag("tie_word_embeddings")
    return decoder_only("dbrx", sizes, (layer,) * sizes.layers, tied=tied)
