"""Llama 1 to 3 and the families with its layer: RMS norms, rotary attention, gated MLP."""

from __future__ import annotations

from meshwright.graph.builders import LayerSpec
from meshwright.graph.op import Mask
from meshwright.graph.sources.huggingface.decoder_only import (
    FFN,
    Sizes,
    attention,
    decoder_only,
    read_sizes,
)
from meshwright.graph.sources.huggingface.reader import ConfigReader
from meshwright.graph.sources.huggingface.registry import Architecture, register


def llama_layer(
    r: ConfigReader,
    sizes: Sizes,
    *,
    qkv_bias: bool = False,
    out_bias: bool = False,
    mask: Mask | None = None,
    qk_norm: str | None = None,
    gated: bool = True,
) -> LayerSpec:
    """The layer of Llama with the small liberties that its descendants take."""
    return LayerSpec(
        hidden=sizes.hidden,
        attention=attention(
            r, sizes, qkv_bias=qkv_bias, out_bias=out_bias, mask=mask, qk_norm=qk_norm
        ),
        ffn=r.positive(*FFN),
        gated=gated,
        mlp_bias=r.flag("mlp_bias"),
    )


@register("llama", "code_llama", "yi", "aquila", "granite", "helium")
def llama(r: ConfigReader) -> Architecture:
    """Llama, Code Llama, Yi, Granite: one bias flag for all four projections."""
    sizes = read_sizes(r)
    bias = r.flag("attention_bias")
    layer = llama_layer(r, sizes, qkv_bias=bias, out_bias=bias)
    tied = r.flag("tie_word_embeddings")
    return decoder_only("llama", sizes, (layer,) * sizes.layers, tied=tied)


@register("smollm3")
def smollm3(r: ConfigReader) -> Architecture:
    """SmolLM 3: Llama with its tables tied, no rotation in every fourth layer."""
    sizes = read_sizes(r)
    bias = r.flag("attention_bias")
    layer = llama_layer(r, sizes, qkv_bias=bias, out_bias=bias)
    tied = r.flag("tie_word_embeddings", default=True)
    return decoder_only("smollm3", sizes, (layer,) * sizes.layers, tied=tied)


@register("arcee")
def arcee(r: ConfigReader) -> Architecture:
    """Arcee: Llama's layer with a plain MLP (squared ReLU)."""
    sizes = read_sizes(r)
    bias = r.flag("attention_bias")
    layer = llama_layer(r, sizes, qkv_bias=bias, out_bias=bias, gated=False)
    tied = r.flag("tie_word_embeddings")
    return decoder_only("arcee", sizes, (layer,) * sizes.layers, tied=tied)


@register("internlm", "internlm2", "baichuan", "internlm3")
def internlm(r: ConfigReader) -> Architecture:
    """InternLM and Baichuan: Llama's layer, with a bias on attention where ``bias`` says so."""
    sizes = read_sizes(r)
    bias = r.flag("bias", "qkv_bias", "attention_bias")
    layer = llama_layer(r, sizes, qkv_bias=bias, out_bias=bias)
    tied = r.flag("tie_word_embeddings")
    return decoder_only("internlm", sizes, (layer,) * sizes.layers, tied=tied)


@register("seed_oss")
def seed_oss(r: ConfigReader) -> Architecture:
    """Seed-OSS: biases on queries, keys and values; dropout on the residual branches."""
    sizes = read_sizes(r)
    layer = llama_layer(
        r,
        sizes,
        qkv_bias=r.flag("attention_bias", default=True),
        out_bias=r.flag("attention_out_bias"),
    )
    tied = r.flag("tie_word_embeddings")
    return decoder_only("seed_oss", sizes, (layer,) * sizes.layers, tied=tied)
