"""BERT and RoBERTa, trained on masked tokens."""

from __future__ import annotations

from meshwright.graph.builders import AttentionSpec, LayerSpec, embedding_block, transformer_layers
from meshwright.graph.builders.heads import masked_lm_head_block
from meshwright.graph.op import Mask
from meshwright.graph.sources.huggingface.decoder_only import (
    attention_dropout,
    default_length,
    hidden_dropout,
    read_sizes,
)
from meshwright.graph.sources.huggingface.reader import ConfigReader
from meshwright.graph.sources.huggingface.registry import Architecture, register

_DROPOUT = 0.1
#: Is the second sentence the next one? Yes or no.
_SENTENCE_CLASSES = 2


@register("bert", "megatron-bert")
def bert(r: ConfigReader) -> Architecture:
    """BERT: norms after the sums; the sentence head when ``architectures`` asks for it."""
    pretraining = any("ForPreTraining" in name for name in r.texts("architectures") or ())
    return _encoder(r, "bert", sentence_classes=_SENTENCE_CLASSES if pretraining else 0)


@register("roberta", "xlm-roberta", "camembert")
def roberta(r: ConfigReader) -> Architecture:
    """RoBERTa: BERT without sentence pairs; two position rows serve the padding."""
    return _encoder(r, "roberta", padding_rows=2)


def _encoder(
    r: ConfigReader, family: str, *, sentence_classes: int = 0, padding_rows: int = 0
) -> Architecture:
    sizes = read_sizes(r)
    dropout = hidden_dropout(r, _DROPOUT)
    layer = LayerSpec(
        hidden=sizes.hidden,
        attention=AttentionSpec(
            heads=sizes.heads,
            kv_heads=sizes.heads,
            head_dim=sizes.head_dim,
            mask=Mask(causal=False),
            qkv_bias=True,
            out_bias=True,
            rotary=False,
            dropout=attention_dropout(r, _DROPOUT),
        ),
        ffn=r.positive("intermediate_size"),
        gated=False,
        mlp_bias=True,
        norm_bias=True,
        pre_norm=False,
        post_norm=True,
        dropout=dropout,
    )
    rows = r.positive("max_position_embeddings", default=512)
    embedding = embedding_block(
        vocab=sizes.vocab,
        hidden=sizes.hidden,
        positions=rows,
        token_types=r.count("type_vocab_size", default=2),
        norm=True,
        dropout=dropout,
    )
    head = masked_lm_head_block(
        vocab=sizes.vocab,
        hidden=sizes.hidden,
        tied=r.flag("tie_word_embeddings", default=True),
        sentence_classes=sentence_classes,
    )
    longest = max(1, rows - padding_rows)
    return Architecture(
        family=family,
        blocks=(embedding, *transformer_layers((layer,) * sizes.layers, name="encoder"), head),
        max_seq_length=longest,
        default_seq_length=default_length(longest),
        vocab_size=sizes.vocab,
    )
