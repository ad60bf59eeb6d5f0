"""OPT and BLOOM: GPT-3's layer with other ends."""

from __future__ import annotations

from meshwright.graph.builders import LayerSpec, embedding_block, head_block
from meshwright.graph.sources.huggingface.decoder_only import (
    FFN,
    attention,
    decoder_only,
    hidden_dropout,
    read_sizes,
)
from meshwright.graph.sources.huggingface.reader import ConfigReader
from meshwright.graph.sources.huggingface.registry import Architecture, register

#: OPT's position table has two more rows than positions.
_POSITION_OFFSET = 2


@register("opt")
def opt(r: ConfigReader) -> Architecture:
    """OPT: learned positions; the 350m norms after the sums and has a narrow token table."""
    sizes = read_sizes(r)
    before = r.flag("do_layer_norm_before", default=True)
    bias = r.flag("enable_bias", default=True)
    affine = r.flag("layer_norm_elementwise_affine", default=True)
    layer = LayerSpec(
        hidden=sizes.hidden,
        attention=attention(r, sizes, qkv_bias=bias, out_bias=bias, rotary=False),
        ffn=r.positive(*FFN, default=4 * sizes.hidden),
        gated=False,
        mlp_bias=bias,
        norm_bias=affine,
        norm_learned=affine,
        pre_norm=before,
        post_norm=not before,
        dropout=hidden_dropout(r, 0.1),
    )
    width = r.positive("word_embed_proj_dim", default=sizes.hidden)
    tied = r.flag("tie_word_embeddings", default=True)
    embedding = embedding_block(
        vocab=sizes.vocab,
        hidden=sizes.hidden,
        table_width=width,
        positions=r.positive("max_position_embeddings", default=2048) + _POSITION_OFFSET,
    )
    head = head_block(
        vocab=sizes.vocab,
        hidden=sizes.hidden,
        tied=tied,
        norm=before and not r.flag("_remove_final_layer_norm"),
        norm_bias=affine,
        norm_learned=affine,
        table_width=width,
    )
    layers = (layer,) * sizes.layers
    return decoder_only("opt", sizes, layers, tied=tied, embedding=embedding, head=head)


@register("bloom")
def bloom(r: ConfigReader) -> Architecture:
    """BLOOM: ALiBi instead of positions, a norm behind the token table."""
    sizes = read_sizes(r)
    layer = LayerSpec(
        hidden=sizes.hidden,
        attention=attention(r, sizes, qkv_bias=True, out_bias=True, rotary=False),
        ffn=r.positive("n_inner", default=4 * sizes.hidden),
        gated=False,
        mlp_bias=True,
        norm_bias=True,
        dropout=hidden_dropout(r),
    )
    tied = r.flag("tie_word_embeddings", default=True)
    embedding = embedding_block(vocab=sizes.vocab, hidden=sizes.hidden, norm=True)
    head = head_block(vocab=sizes.vocab, hidden=sizes.hidden, tied=tied, norm_bias=True)
    layers = (layer,) * sizes.layers
    return decoder_only("bloom", sizes, layers, tied=tied, embedding=embedding, head=head)
