"""Hunyuan: norms per head on queries and keys; experts beside a shared one."""

from __future__ import annotations

from meshwright.graph.builders import MoeSpec
from meshwright.graph.sources.huggingface.decoder_only import attention, decoder_only, read_sizes
from meshwright.graph.sources.huggingface.llama import llama_layer
from meshwright.graph.sources.huggingface.mixture import moe_layer
from meshwright.graph.sources.huggingface.reader import ConfigReader
from meshwright.graph.sources.huggingface.registry import Architecture, register


@register("hunyuan_v1_dense")
def hunyuan_dense(r: ConfigReader) -> Architecture:
    """Hunyuan 0.5B to 7B."""
    sizes = read_sizes(r)
    bias = r.flag("attention_bias")
    layer = llama_layer(r, sizes, qkv_bias=bias, out_bias=bias, qk_norm="head")
    tied = r.flag("tie_word_embeddings")
    return decoder_only("hunyuan", sizes, (layer,) * sizes.layers, tied=tied)


@register("hunyuan_v1_moe")
def hunyuan_moe(r: ConfigReader) -> Architecture:
    """Hunyuan A13B: the shared expert is as wide as a routed one."""
    sizes = read_sizes(r)
    bias = r.flag("attention_bias")
    width = r.positive("intermediate_size")
    experts = _same_in_all(r, "num_experts", layers=sizes.layers)
    top_k = _same_in_all(r, "moe_topk", layers=sizes.layers)
    if top_k > experts:
        raise r.error(
            f"a token chooses {top_k} of {experts} experts",
            "moe_topk",
            allowed=f"1 to {experts}",
            fix="correct one of the two",
        )
    layer = moe_layer(
        hidden=sizes.hidden,
        attention=attention(r, sizes, qkv_bias=bias, out_bias=bias, qk_norm="head"),
        moe=MoeSpec(experts=experts, top_k=top_k, width=width, shared_width=width),
    )
    tied = r.flag("tie_word_embeddings")
    return decoder_only("hunyuan_moe", sizes, (layer,) * sizes.layers, tied=tied)


def _same_in_all(r: ConfigReader, name: str, *, layers: int) -> int:
    """A number, or a list of the same number once per layer."""
    if not isinstance(r.raw(name), list):
        return r.positive(name, default=1)
    values = set(r.numbers(name, length=layers) or ())
    if len(values) != 1 or 0 in values:
        raise r.error(
            f"{name} differs between layers",
            name,
            allowed="a positive integer, or a list that repeats it",
            fix=f"give {name} as one number",
        )
    return values.pop()
