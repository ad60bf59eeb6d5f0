"""Kimi Linear: Kimi delta attention with a latent attention layer every few layers."""

from __future__ import annotations

from meshwright.graph.block import Block
from meshwright.graph.builders.layer import Branch, residual_layer
from meshwright.graph.builders.linear_attention import DeltaNetSpec, kimi_delta_attention
from meshwright.graph.sources.huggingface.assembly import (
    assemble,
    dense_branch,
    each,
    moe_branch,
    tied,
)
from meshwright.graph.sources.huggingface.deepseek import (
    deepseek_moe,
    mla_branch,
    mla_spec,
    sparse_layers,
)
from meshwright.graph.sources.huggingface.reader import ConfigReader
from meshwright.graph.sources.huggingface.registry import Architecture, register


@register("kimi_linear")
def kimi_linear(r: ConfigReader) -> Architecture:
    """Kimi-Linear-48B-A3B."""
    hidden, layers = r.positive("hidden_size"), r.layers("num_hidden_layers")
    full = mla_branch(mla_spec(r))
    linear = _delta(r)
    sparse = sparse_layers(r, layers=layers, dense=1)
    moe = deepseek_moe(r) if any(sparse) else None
    ffn = 0 if all(sparse) else r.positive("intermediate_size")

    def build(kind: tuple[bool, bool]) -> Block:
        is_linear, has_experts = kind
        experts = moe if has_experts else None
        name = ("linear_" if is_linear else "") + ("moe_decoder" if experts else "decoder")
        return residual_layer(
            name,
            hidden=hidden,
            mixer=linear if is_linear else full,
            feed_forward=moe_branch(experts) if experts else dense_branch(ffn),
            active_experts=experts.top_k if experts else 0,
        )

    keys = zip(_linear(r, layers=layers), sparse, strict=True)
    return assemble(r, family="kimi_linear", layers=each(keys, build), tied=tied(r, r))


def _delta(r: ConfigReader) -> Branch:
    nested = r.sub("linear_attn_config") or r
    heads = nested.positive("num_heads", "linear_num_heads", default=32)
    dim = nested.positive("head_dim", "linear_head_dim", default=128) if nested is not r else 0
    dim = dim or r.positive("linear_head_dim", default=128)
    spec = DeltaNetSpec(
        key_heads=heads,
        key_dim=dim,
        value_heads=heads,
        value_dim=dim,
        kernel=nested.positive(
            "short_conv_kernel_size", "linear_conv_kernel_dim", default=4, limit=1024
        ),
    )
    return lambda b, x: kimi_delta_attention(b, x, spec)


def _linear(r: ConfigReader, *, layers: int) -> tuple[bool, ...]:
    """Per layer, whether it is linear; the nested lists count layers from one."""
    allowed = ("linear_attention", "full_attention")
    kinds = r.texts("layer_types", length=layers, allowed=allowed)
    if kinds is not None:
        return tuple(kind == "linear_attention" for kind in kinds)
    nested = r.sub("linear_attn_config")
    full = nested.numbers("full_attn_layers") if nested else None
    if full is not None:
        return tuple(i + 1 not in set(full) for i in range(layers))
    return tuple(i == 0 or i % 4 != 0 for i in range(layers))
