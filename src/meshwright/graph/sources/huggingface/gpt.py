"""The GPT line: GPT-2 and -3, Megatron, GPT-BigCode, GPT-J, CodeGen, GPT-Neo, GPT-NeoX."""

from __future__ import annotations

from dataclasses import replace

from meshwright.graph.builders import AttentionSpec, LayerSpec, embedding_block, head_block
from meshwright.graph.op import Mask
from meshwright.graph.sources.huggingface.decoder_only import (
    FFN,
    Sizes,
    attention,
    decoder_only,
    embedding_dropout,
    hidden_dropout,
    read_sizes,
)
from meshwright.graph.sources.huggingface.reader import ConfigReader
from meshwright.graph.sources.huggingface.registry import Architecture, register


def _layer(r: ConfigReader, sizes: Sizes, spec: AttentionSpec, *, dropout: float) -> LayerSpec:
    """Layer norms, a plain MLP of four times the width, biases."""
    return LayerSpec(
        hidden=sizes.hidden,
        attention=spec,
        ffn=r.positive(*FFN, default=4 * sizes.hidden),
        gated=False,
        mlp_bias=True,
        norm_bias=True,
        dropout=hidden_dropout(r, dropout),
    )


def _learned_positions(
    r: ConfigReader,
    family: str,
    sizes: Sizes,
    layers: tuple[LayerSpec, ...],
    *,
    dropout: float = 0.0,
) -> Architecture:
    """With a table of positions, tied by default."""
    if sizes.positions is None:
        raise r.error(
            "n_positions is missing: this family learns its positions",
            "n_positions",
            allowed="a positive integer",
            fix="add n_positions (or max_position_embeddings) to the configuration",
        )
    tied = r.flag("tie_word_embeddings", default=True)
    embedding = embedding_block(
        vocab=sizes.vocab,
        hidden=sizes.hidden,
        positions=sizes.positions,
        dropout=embedding_dropout(r, dropout),
    )
    head = head_block(vocab=sizes.vocab, hidden=sizes.hidden, tied=tied, norm_bias=True)
    return decoder_only(family, sizes, layers, tied=tied, embedding=embedding, head=head)


#: GPT-2 drops a tenth everywhere unless its configuration says otherwise.
_GPT2_DROPOUT = 0.1


def _gpt2_attention(r: ConfigReader, sizes: Sizes) -> AttentionSpec:
    return AttentionSpec(
        heads=sizes.heads,
        kv_heads=sizes.kv_heads,
        head_dim=sizes.head_dim,
        qkv_bias=True,
        out_bias=True,
        rotary=False,
        dropout=r.number("attn_pdrop", default=_GPT2_DROPOUT) > 0,
    )


@register("gpt2")
def gpt2(r: ConfigReader) -> Architecture:
    """GPT-2, GPT-3 and Megatron's GPT: learned positions, biases, dropout."""
    sizes = read_sizes(r)
    layer = _layer(r, sizes, _gpt2_attention(r, sizes), dropout=_GPT2_DROPOUT)
    layers = (layer,) * sizes.layers
    return _learned_positions(r, "gpt2", sizes, layers, dropout=_GPT2_DROPOUT)


@register("gpt_bigcode")
def gpt_bigcode(r: ConfigReader) -> Architecture:
    """SantaCoder and StarCoder: GPT-2 with one key-value head."""
    sizes = read_sizes(r)
    kv_heads = 1 if r.flag("multi_query", default=True) else sizes.heads
    spec = replace(_gpt2_attention(r, sizes), kv_heads=kv_heads)
    layers = (_layer(r, sizes, spec, dropout=_GPT2_DROPOUT),) * sizes.layers
    return _learned_positions(r, "gpt_bigcode", sizes, layers, dropout=_GPT2_DROPOUT)


@register("gpt_neo")
def gpt_neo(r: ConfigReader) -> Architecture:
    """GPT-Neo: no bias on queries, keys and values; windows of 256 in the local layers."""
    sizes = read_sizes(r)
    kinds = r.texts("attention_layers", length=sizes.layers, allowed=("global", "local"))
    if kinds is None:
        kinds = _expanded_types(r, sizes.layers)
    local = Mask(window=r.positive("window_size", default=256))
    layers = tuple(
        _layer(
            r,
            sizes,
            attention(
                r, sizes, out_bias=True, mask=local if kind == "local" else None, rotary=False
            ),
            dropout=0.0,
        )
        for kind in kinds
    )
    return _learned_positions(r, "gpt_neo", sizes, layers)


def _expanded_types(r: ConfigReader, layers: int) -> tuple[str, ...]:
    """``attention_types``: pairs of a pattern and how often it repeats."""
    pairs = r.raw("attention_types")
    if pairs is None:
        return tuple("local" if i % 2 else "global" for i in range(layers))
    kinds: list[str] = []
    try:
        for pattern, count in pairs:  # type: ignore[attr-defined]
            kinds += list(pattern) * min(count, layers)
    except (TypeError, ValueError):
        kinds = []
    if len(kinds) != layers or not set(kinds) <= {"global", "local"}:
        raise r.error(
            f"attention_types does not describe {layers} layers",
            "attention_types",
            allowed='pairs such as [["global", "local"], 12] whose patterns add up to the layers',
            fix="correct attention_types or the number of layers",
        )
    return tuple(kinds)


@register("gptj", "codegen")
def gptj(r: ConfigReader) -> Architecture:
    """GPT-J and CodeGen: side by side behind one norm; biases on the MLP and the logits."""
    sizes = read_sizes(r)
    layer = _layer(r, sizes, attention(r, sizes), dropout=0.0)
    layer = replace(layer, parallel=True, shared_norm=True)
    tied = r.flag("tie_word_embeddings")
    head = head_block(vocab=sizes.vocab, hidden=sizes.hidden, tied=tied, norm_bias=True, bias=True)
    layers = (layer,) * sizes.layers
    embedding = embedding_block(
        vocab=sizes.vocab, hidden=sizes.hidden, dropout=embedding_dropout(r)
    )
    return decoder_only("gptj", sizes, layers, tied=tied, embedding=embedding, head=head)


@register("gpt_neox")
def gpt_neox(r: ConfigReader) -> Architecture:
    """GPT-NeoX and Pythia: side by side behind two norms, biases on attention and MLP."""
    sizes = read_sizes(r)
    bias = r.flag("attention_bias", default=True)
    layer = _layer(r, sizes, attention(r, sizes, qkv_bias=bias, out_bias=bias), dropout=0.0)
    layer = replace(layer, parallel=r.flag("use_parallel_residual", default=True))
    tied = r.flag("tie_word_embeddings")
    head = head_block(vocab=sizes.vocab, hidden=sizes.hidden, tied=tied, norm_bias=True)
    return decoder_only("gpt_neox", sizes, (layer,) * sizes.layers, tied=tied, head=head)
