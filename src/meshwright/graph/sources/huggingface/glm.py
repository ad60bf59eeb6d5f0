"""GLM: ChatGLM 2 and 3, GLM-4 in both of its forms."""

from __future__ import annotations

from dataclasses import replace

from meshwright.graph.builders import LayerSpec
from meshwright.graph.sources.huggingface.decoder_only import (
    FFN,
    attention,
    decoder_only,
    read_sizes,
)
from meshwright.graph.sources.huggingface.llama import llama_layer
from meshwright.graph.sources.huggingface.reader import ConfigReader
from meshwright.graph.sources.huggingface.registry import Architecture, register


@register("chatglm")
def chatglm(r: ConfigReader) -> Architecture:
    """ChatGLM 2, 3 and GLM-4 in their own code's spelling."""
    groups = r.positive("multi_query_group_num") if r.flag("multi_query_attention") else None
    sizes = read_sizes(r, kv_heads=groups)
    bias = r.flag("add_bias_linear")
    layer = LayerSpec(
        hidden=sizes.hidden,
        attention=attention(r, sizes, qkv_bias=bias or r.flag("add_qkv_bias"), out_bias=bias),
        ffn=r.positive(*FFN),
        mlp_bias=bias,
        norm_bias=not r.flag("rmsnorm", default=True),
    )
    tied = r.flag("tie_word_embeddings")
    return decoder_only("chatglm", sizes, (layer,) * sizes.layers, tied=tied)


@register("glm")
def glm(r: ConfigReader) -> Architecture:
    """GLM-4 9B and GLM-Edge: biases on queries, keys and values only."""
    sizes = read_sizes(r)
    layer = llama_layer(r, sizes, qkv_bias=r.flag("attention_bias", default=True))
    tied = r.flag("tie_word_embeddings")
    return decoder_only("glm", sizes, (layer,) * sizes.layers, tied=tied)


@register("glm4")
def glm4(r: ConfigReader) -> Architecture:
    """GLM-4-0414: four norms per layer."""
    sizes = read_sizes(r)
    layer = llama_layer(r, sizes, qkv_bias=r.flag("attention_bias", default=True))
    layer = replace(layer, sandwich=True)
    tied = r.flag("tie_word_embeddings")
    return decoder_only("glm4", sizes, (layer,) * sizes.layers, tied=tied)
