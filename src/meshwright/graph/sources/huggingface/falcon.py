"""Falcon: the 7B, the 40B and 180B, and the RefinedWeb models."""

from __future__ import annotations

from dataclasses import replace

from meshwright.graph.builders import LayerSpec, head_block
from meshwright.graph.sources.huggingface.decoder_only import (
    FFN,
    attention,
    decoder_only,
    hidden_dropout,
    read_sizes,
)
from meshwright.graph.sources.huggingface.reader import ConfigReader
from meshwright.graph.sources.huggingface.registry import Architecture, register


@register("falcon", "RefinedWeb", "RefinedWebModel")
def falcon(r: ConfigReader) -> Architecture:
    """Falcon: layer norms, side by side unless ``parallel_attn`` is off, plain MLP."""
    sizes = read_sizes(r)
    grouped = r.flag("new_decoder_architecture")
    if not grouped:
        # The key-value heads count in the new architecture only.
        kv_heads = 1 if r.flag("multi_query", default=True) else sizes.heads
        sizes = replace(sizes, kv_heads=kv_heads)
    bias = r.flag("bias")
    norms = r.positive("num_ln_in_parallel_attn", default=2 if grouped else 1)
    layer = LayerSpec(
        hidden=sizes.hidden,
        attention=attention(r, sizes, qkv_bias=bias, out_bias=bias, rotary=not r.flag("alibi")),
        ffn=r.positive(*FFN, default=4 * sizes.hidden),
        gated=False,
        mlp_bias=bias,
        norm_bias=True,
        parallel=grouped or r.flag("parallel_attn", default=True),
        shared_norm=norms == 1,
        dropout=hidden_dropout(r),
    )
    tied = r.flag("tie_word_embeddings", default=True)
    head = head_block(vocab=sizes.vocab, hidden=sizes.hidden, tied=tied, norm_bias=True)
    return decoder_only("falcon", sizes, (layer,) * sizes.layers, tied=tied, head=head)
