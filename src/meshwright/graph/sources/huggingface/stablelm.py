"""Layer norms around otherwise known layers: StableLM, StarCoder 2, Persimmon, Nemotron-4."""

from __future__ import annotations

from dataclasses import replace

from meshwright.graph.builders import LayerSpec, embedding_block, head_block
from meshwright.graph.op import Mask
from meshwright.graph.sources.huggingface.decoder_only import (
    FFN,
    Sizes,
    attention,
    decoder_only,
    embedding_dropout,
    hidden_dropout,
    read_sizes,
    window,
)
from meshwright.graph.sources.huggingface.reader import ConfigReader
from meshwright.graph.sources.huggingface.registry import Architecture, register


def _layer_norm_decoder(
    r: ConfigReader, family: str, sizes: Sizes, layer: LayerSpec, *, tied: bool
) -> Architecture:
    embedding = embedding_block(
        vocab=sizes.vocab, hidden=sizes.hidden, dropout=embedding_dropout(r)
    )
    head = head_block(vocab=sizes.vocab, hidden=sizes.hidden, tied=tied, norm_bias=True)
    layers = (layer,) * sizes.layers
    return decoder_only(family, sizes, layers, tied=tied, embedding=embedding, head=head)


@register("stablelm", "stablelm_epoch")
def stablelm(r: ConfigReader) -> Architecture:
    """StableLM 2 and 3B: gated MLP; the 12B is side by side with norms per head."""
    sizes = read_sizes(r)
    parallel = r.flag("use_parallel_residual")
    layer = LayerSpec(
        hidden=sizes.hidden,
        attention=attention(
            r,
            sizes,
            qkv_bias=r.flag("use_qkv_bias"),
            qk_norm="layer" if r.flag("qk_layernorm") else None,
        ),
        ffn=r.positive(*FFN),
        norm_bias=True,
        parallel=parallel,
        shared_norm=parallel,
        dropout=hidden_dropout(r),
    )
    tied = r.flag("tie_word_embeddings")
    return _layer_norm_decoder(r, "stablelm", sizes, layer, tied=tied)


@register("starcoder2")
def starcoder2(r: ConfigReader) -> Architecture:
    """StarCoder 2: plain MLP, biases everywhere, a sliding window."""
    sizes = read_sizes(r)
    bias = r.flag("use_bias", default=True)
    layer = LayerSpec(
        hidden=sizes.hidden,
        attention=attention(r, sizes, qkv_bias=bias, out_bias=bias, mask=Mask(window=window(r))),
        ffn=r.positive(*FFN),
        gated=False,
        mlp_bias=bias,
        norm_bias=True,
        dropout=hidden_dropout(r),
    )
    tied = r.flag("tie_word_embeddings", default=True)
    return _layer_norm_decoder(r, "starcoder2", sizes, layer, tied=tied)


@register("persimmon")
def persimmon(r: ConfigReader) -> Architecture:
    """Persimmon: plain MLP, biases everywhere, norms with shift on queries and keys."""
    sizes = read_sizes(r)
    spec = attention(r, sizes, qkv_bias=True, out_bias=True)
    if r.flag("qk_layernorm", default=True):
        spec = replace(spec, qk_norm="head", qk_norm_bias=True)
    layer = LayerSpec(
        hidden=sizes.hidden,
        attention=spec,
        ffn=r.positive(*FFN),
        gated=False,
        mlp_bias=True,
        norm_bias=True,
        dropout=hidden_dropout(r),
    )
    tied = r.flag("tie_word_embeddings")
    return _layer_norm_decoder(r, "persimmon", sizes, layer, tied=tied)


@register("nemotron")
def nemotron(r: ConfigReader) -> Architecture:
    """Nemotron-4 and Minitron: plain MLP (squared ReLU), no biases but in the norms."""
    sizes = read_sizes(r)
    bias = r.flag("attention_bias")
    layer = LayerSpec(
        hidden=sizes.hidden,
        attention=attention(r, sizes, qkv_bias=bias, out_bias=bias),
        ffn=r.positive(*FFN),
        gated=False,
        mlp_bias=r.flag("mlp_bias"),
        norm_bias=True,
    )
    tied = r.flag("tie_word_embeddings")
    return _layer_norm_decoder(r, "nemotron", sizes, layer, tied=tied)
