"""T5: an encoder and a decoder that attends to it."""

from __future__ import annotations

from dataclasses import replace

from meshwright.graph.axis import seq_axis
from meshwright.graph.builders import AttentionSpec, embedding_block, head_block
from meshwright.graph.builders.encoder_decoder import HalfSpec, decoder_layer, encoder_layer
from meshwright.graph.op import Mask
from meshwright.graph.sources.huggingface.reader import ConfigReader
from meshwright.graph.sources.huggingface.registry import Architecture, register

#: Tokens to predict per token of input: Megatron-LM's T5 recipe trains on 512 and 128.
_TARGET_SCALE = 0.25
#: Raffel et al. 2020, section 3.1.1: pre-training on sequences of 512.
_DEFAULT_LENGTH = 512


@register("t5", "mt5")
def t5(r: ConfigReader) -> Architecture:
    """T5, T5 1.1, mT5, Flan-T5: relative positions, gated from version 1.1 on."""
    hidden, vocab = r.positive("d_model"), r.positive("vocab_size")
    layers = r.layers("num_layers")
    activation = r.text("feed_forward_proj", default="relu")
    dropout = r.number("dropout_rate", default=0.1) > 0
    heads = r.positive("num_heads")
    encoder = HalfSpec(
        hidden=hidden,
        attention=AttentionSpec(
            heads=heads,
            kv_heads=heads,
            head_dim=r.positive("d_kv", default=64),
            mask=Mask(causal=False),
            rotary=False,
            dropout=dropout,
        ),
        ffn=r.positive("d_ff"),
        gated=activation.startswith("gated"),
        dropout=dropout,
        target_scale=_TARGET_SCALE,
    )
    decoder = replace(encoder, attention=replace(encoder.attention, mask=Mask()))
    buckets = r.positive("relative_attention_num_buckets", default=32)
    r.assume(
        f"The decoder sees {_TARGET_SCALE:g} times as many tokens as the encoder "
        "(512 and 128 in Megatron-LM's T5 recipe)."
    )
    return Architecture(
        family="t5",
        blocks=(
            embedding_block(vocab=vocab, hidden=hidden, dropout=dropout),
            encoder_layer(replace(encoder, position_buckets=buckets)),
            *((encoder_layer(encoder),) * (layers - 1)),
            decoder_layer(replace(decoder, position_buckets=buckets, vocab=vocab)),
            *((decoder_layer(decoder),) * (r.layers("num_decoder_layers", default=layers) - 1)),
            head_block(
                vocab=vocab,
                hidden=hidden,
                tied=r.flag("tie_word_embeddings", default=True),
                dropout=dropout,
                seq=seq_axis(scale=_TARGET_SCALE),
            ),
        ),
        default_seq_length=_DEFAULT_LENGTH,
        vocab_size=vocab,
    )
