"""gpt-oss: sliding and full attention in turn with learned sinks, experts with biases."""

from __future__ import annotations

from meshwright.graph.builders import AttentionSpec, LayerSpec, MoeSpec, transformer_layers
from meshwright.graph.sources.huggingface.assembly import assemble, tied
from meshwright.graph.sources.huggingface.decoder_only import layer_masks
from meshwright.graph.sources.huggingface.reader import ConfigReader
from meshwright.graph.sources.huggingface.registry import Architecture, register


@register("gpt_oss")
def gpt_oss(r: ConfigReader) -> Architecture:
    """gpt-oss-20b and gpt-oss-120b."""
    hidden, heads = r.positive("hidden_size"), r.positive("num_attention_heads")
    layers = r.layers("num_hidden_layers")
    bias = r.flag("attention_bias", default=True)
    experts = r.positive("num_local_experts", "num_experts")
    moe = MoeSpec(
        experts=experts,
        top_k=r.top_k("num_experts_per_tok", "experts_per_token", experts=experts),
        width=r.positive("intermediate_size"),
        expert_bias=True,
        router_bias=True,
    )
    masks = layer_masks(
        r, layers, pattern=("sliding_attention", "full_attention"), default_window=128
    )
    kv_heads = r.kv_heads("num_key_value_heads", heads=heads)
    head_dim = r.head_dim(hidden=hidden, heads=heads)
    specs = (
        LayerSpec(
            hidden=hidden,
            attention=AttentionSpec(
                heads=heads,
                kv_heads=kv_heads,
                head_dim=head_dim,
                mask=mask,
                qkv_bias=bias,
                out_bias=bias,
                sinks=True,
            ),
            moe=moe,
        )
        for mask in masks
    )
    return assemble(r, family="gpt_oss", layers=transformer_layers(specs), tied=tied(r, r))
