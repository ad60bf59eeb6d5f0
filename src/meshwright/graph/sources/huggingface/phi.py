"""Phi 1 to 4, and Phi-3.5-MoE."""

from __future__ import annotations

from dataclasses import replace

from meshwright.graph.builders import LayerSpec, embedding_block, head_block
from meshwright.graph.op import Mask
from meshwright.graph.sources.huggingface.decoder_only import (
    FFN,
    attention,
    decoder_only,
    embedding_dropout,
    hidden_dropout,
    read_sizes,
    window,
)
from meshwright.graph.sources.huggingface.llama import llama_layer
from meshwright.graph.sources.huggingface.mixture import moe_layer, read_moe
from meshwright.graph.sources.huggingface.reader import ConfigReader
from meshwright.graph.sources.huggingface.registry import Architecture, register


@register("phi")
def phi(r: ConfigReader) -> Architecture:
    """Phi-1, 1.5 and 2: attention and MLP side by side behind one norm; biases everywhere."""
    sizes = read_sizes(r)
    spec = attention(r, sizes, qkv_bias=True, out_bias=True)
    if r.flag("qk_layernorm"):
        spec = replace(spec, qk_norm="head", qk_norm_bias=True)
    layer = LayerSpec(
        hidden=sizes.hidden,
        attention=spec,
        ffn=r.positive(*FFN, default=4 * sizes.hidden),
        gated=False,
        mlp_bias=True,
        norm_bias=True,
        parallel=True,
        shared_norm=True,
        dropout=hidden_dropout(r),
    )
    tied = r.flag("tie_word_embeddings")
    return decoder_only(
        "phi",
        sizes,
        (layer,) * sizes.layers,
        tied=tied,
        embedding=embedding_block(
            vocab=sizes.vocab, hidden=sizes.hidden, dropout=embedding_dropout(r)
        ),
        head=head_block(
            vocab=sizes.vocab, hidden=sizes.hidden, tied=tied, norm_bias=True, bias=True
        ),
    )


@register("phi3")
def phi3(r: ConfigReader) -> Architecture:
    """Phi-3 and Phi-4: Llama's layer with joined projections and a sliding window."""
    sizes = read_sizes(r)
    layer = llama_layer(r, sizes, mask=Mask(window=window(r)))
    tied = r.flag("tie_word_embeddings")
    return decoder_only("phi3", sizes, (layer,) * sizes.layers, tied=tied)


@register("phimoe")
def phimoe(r: ConfigReader) -> Architecture:
    """Phi-3.5-MoE: layer norms, sixteen experts, two per token."""
    sizes = read_sizes(r)
    bias = r.flag("attention_bias")
    layer = moe_layer(
        hidden=sizes.hidden,
        attention=attention(r, sizes, qkv_bias=bias, out_bias=bias, mask=Mask(window=window(r))),
        moe=read_moe(r, width=r.positive("intermediate_size")),
    )
    tied = r.flag("tie_word_embeddings")
    head = head_block(
        vocab=sizes.vocab,
        hidden=sizes.hidden,
        tied=tied,
        norm_bias=True,
        bias=r.flag("lm_head_bias"),
    )
    layers = (replace(layer, norm_bias=True),) * sizes.layers
    return decoder_only("phimoe", sizes, layers, tied=tied, head=head)
