"""Apertus: a plain MLP with a learned activation, norms per head on queries and keys."""

from __future__ import annotations

from dataclasses import replace

from meshwright.graph.sources.huggingface.decoder_only import decoder_only, read_sizes
from meshwright.graph.sources.huggingface.llama import llama_layer
from meshwright.graph.sources.huggingface.reader import ConfigReader
from meshwright.graph.sources.huggingface.registry import Architecture, register

#: xIELU learns two numbers per layer (arXiv:2411.13010).
_ACTIVATION_PARAMETERS = 2


@register("apertus")
def apertus(r: ConfigReader) -> Architecture:
    """Apertus 8B and 70B."""
    sizes = read_sizes(r)
    bias = r.flag("attention_bias")
    layer = llama_layer(r, sizes, qkv_bias=bias, out_bias=bias, qk_norm="head", gated=False)
    if r.text("hidden_act", default="xielu") == "xielu":
        layer = replace(layer, activation_parameters=_ACTIVATION_PARAMETERS)
    tied = r.flag("tie_word_embeddings")
    return decoder_only("apertus", sizes, (layer,) * sizes.layers, tied=tied)
