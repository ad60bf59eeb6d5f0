"""Qwen 1 to 3, dense and with experts."""

from __future__ import annotations

from meshwright.graph.builders import AttentionSpec, LayerSpec
from meshwright.graph.op import Mask
from meshwright.graph.sources.huggingface.decoder_only import (
    Sizes,
    attention,
    decoder_only,
    layer_masks,
    read_sizes,
)
from meshwright.graph.sources.huggingface.llama import llama_layer
from meshwright.graph.sources.huggingface.mixture import alternate, moe_layer, read_moe
from meshwright.graph.sources.huggingface.reader import ConfigReader
from meshwright.graph.sources.huggingface.registry import Architecture, register


@register("qwen")
def qwen(r: ConfigReader) -> Architecture:
    """Qwen 1: biases on queries, keys and values; ``intermediate_size`` counts gate and up."""
    sizes = read_sizes(r)
    joined = r.positive("intermediate_size")
    if joined % 2:
        raise r.error(
            f"intermediate_size is {joined}, and Qwen splits it in two",
            "intermediate_size",
            allowed="an even number",
            fix="correct intermediate_size",
        )
    layer = LayerSpec(
        hidden=sizes.hidden,
        attention=attention(r, sizes, qkv_bias=True, out_bias=not r.flag("no_bias", default=True)),
        ffn=joined // 2,
    )
    tied = r.flag("tie_word_embeddings")
    return decoder_only("qwen", sizes, (layer,) * sizes.layers, tied=tied)


def windowed_masks(r: ConfigReader, layers: int) -> tuple[Mask, ...]:
    """Qwen's rule: with ``use_sliding_window``, the layers from ``max_window_layers`` on."""
    if not r.flag("use_sliding_window"):
        return (Mask(),) * layers
    first = min(r.count("max_window_layers", default=28), layers)
    pattern = ("full_attention",) * first + ("sliding_attention",) * (layers - first)
    return layer_masks(r, layers, pattern=pattern, default_window=4096)


@register("qwen2")
def qwen2(r: ConfigReader) -> Architecture:
    """Qwen 2 and 2.5: biases on queries, keys and values."""
    sizes = read_sizes(r)
    layers = [
        llama_layer(r, sizes, qkv_bias=True, mask=mask) for mask in windowed_masks(r, sizes.layers)
    ]
    return decoder_only("qwen2", sizes, layers, tied=r.flag("tie_word_embeddings"))


@register("qwen3")
def qwen3(r: ConfigReader) -> Architecture:
    """Qwen 3: a norm per head on queries and keys; heads of 128 whatever the hidden size."""
    sizes = read_sizes(r, head_dim=128)
    bias = r.flag("attention_bias")
    layers = [
        llama_layer(r, sizes, qkv_bias=bias, out_bias=bias, mask=mask, qk_norm="head")
        for mask in windowed_masks(r, sizes.layers)
    ]
    return decoder_only("qwen3", sizes, layers, tied=r.flag("tie_word_embeddings"))


def _sparse_layers(
    r: ConfigReader, sizes: Sizes, spec: AttentionSpec, *, shared_width: int
) -> tuple[LayerSpec, ...]:
    sparse = moe_layer(
        hidden=sizes.hidden,
        attention=spec,
        moe=read_moe(
            r,
            width=r.positive("moe_intermediate_size"),
            shared_width=shared_width,
            shared_gate=shared_width > 0,
        ),
    )
    return alternate(r, sparse=sparse, dense_names=("intermediate_size",), layers=sizes.layers)


@register("qwen2_moe")
def qwen2_moe(r: ConfigReader) -> Architecture:
    """Qwen 1.5 and 2 with experts and a gated shared expert."""
    sizes = read_sizes(r)
    spec = attention(r, sizes, qkv_bias=r.flag("qkv_bias", default=True))
    shared = r.positive("shared_expert_intermediate_size")
    layers = _sparse_layers(r, sizes, spec, shared_width=shared)
    return decoder_only("qwen2_moe", sizes, layers, tied=r.flag("tie_word_embeddings"))


@register("qwen3_moe")
def qwen3_moe(r: ConfigReader) -> Architecture:
    """Qwen 3 with experts and none shared."""
    sizes = read_sizes(r)
    bias = r.flag("attention_bias")
    spec = attention(r, sizes, qkv_bias=bias, out_bias=bias, qk_norm="head")
    layers = _sparse_layers(r, sizes, spec, shared_width=0)
    return decoder_only("qwen3_moe", sizes, layers, tied=r.flag("tie_word_embeddings"))
