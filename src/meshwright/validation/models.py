"""The model of a row: from the catalogue where it is there, else from its dimensions."""

from __future__ import annotations

import re
from functools import cache

from meshwright.errors import ModelError
from meshwright.graph import Block, BlockRole, Mask, ModelGraph, fold
from meshwright.graph.builders import (
    AttentionSpec,
    BlockBuilder,
    LayerSpec,
    MoeSpec,
    embedding_block,
    head_block,
    mlp,
    moe,
    transformer_layer,
)
from meshwright.graph.builders.heads import masked_lm_head_block
from meshwright.graph.builders.layer import residual_layer
from meshwright.graph.builders.mla import MlaSpec, latent_attention
from meshwright.graph.catalog import find
from meshwright.graph.sources import load_model
from meshwright.graph.sources.huggingface.fields import MAX_LAYERS
from meshwright.validation.inputs import Architecture
from meshwright.validation.skips import RowSkippedError

_NO_TRANSFORMER = ("cnn", "resnet", "transgan", "unknown")
_NOT_DESCRIBED = ("mamba", "hybrid", "rwkv")
_REQUIRED = ("layers", "hidden", "heads", "vocab")


@cache
def model_of(architecture: Architecture, *, seq_length: int, dropout: bool) -> ModelGraph:
    """The graph of a row's model.

    Args:
        architecture: the columns that describe it.
        seq_length: of the run; learned positions have as many rows.
        dropout: whether the software trained such models with dropout.

    Raises:
        RowSkippedError: the columns do not describe a transformer completely.
    """
    if any(word in architecture.arch for word in _NO_TRANSFORMER):
        name = architecture.model or architecture.arch
        raise RowSkippedError("not_a_transformer", f"{name} is no transformer")
    known = _from_catalogue(architecture, seq_length)
    if known is not None:
        return known
    if any(word in architecture.arch for word in _NOT_DESCRIBED):
        raise RowSkippedError(
            "layers_not_described", f"{architecture.model} is not in the catalogue"
        )
    missing = [name for name in _REQUIRED if not getattr(architecture, name)]
    if missing:
        raise RowSkippedError("dimensions_missing", f"{missing[0]} is not stated")
    if _known(architecture.layers) > MAX_LAYERS:
        raise RowSkippedError("dimensions_missing", f"{architecture.layers:,} layers are no model")
    try:
        return _from_dimensions(architecture, seq_length, dropout)
    except ModelError as error:
        raise RowSkippedError("dimensions_missing", error.what) from None


def _from_catalogue(a: Architecture, seq_length: int) -> ModelGraph | None:
    """The model of that name, when it has the dimensions of the row."""
    entry = find(a.model)
    if entry is None:
        return None
    graph = load_model(entry.name)
    if graph.max_seq_length is not None and graph.max_seq_length < seq_length:
        return None
    stated = {"hidden": a.hidden, "head": a.heads, "kv_head": a.kv_heads, "ffn": a.ffn_hidden}
    wrong = graph.num_layers != a.layers or (a.vocab and graph.vocab_size != a.vocab)
    for block in graph.blocks:
        if block.role is BlockRole.LAYER:
            found = {axis.name: axis.size for axis in block.axes}
            wrong = wrong or any(
                name in found and size and found[name] != size for name, size in stated.items()
            )
    return None if wrong else graph


def is_classic(a: Architecture) -> bool:
    """GPT-2, GPT-3 and BERT: biases everywhere, learned positions, layer norms with a shift.

    Models that call themselves GPT but untie the logits or group the heads (Nemotron) rotate
    queries and keys and have no biases.
    """
    named = any(word in a.arch for word in ("gpt", "bert", "bloom", "opt"))
    grouped = bool(a.kv_heads and a.kv_heads != a.heads)
    return named and not grouped and not a.moe_experts and a.tied_embeddings is not False


def _known(value: int | None) -> int:
    """A dimension that the caller has looked at."""
    assert value
    return value


def _from_dimensions(a: Architecture, seq_length: int, dropout: bool) -> ModelGraph:
    hidden, vocab = _known(a.hidden), _known(a.vocab)
    classic, bert = is_classic(a), "bert" in a.arch
    dropped = classic and dropout
    positions = seq_length if classic or "mpt" in a.arch else 0
    embedding = embedding_block(
        vocab=vocab,
        hidden=hidden,
        positions=positions,
        token_types=2 if bert else 0,
        norm=bert,
        dropout=dropped,
    )
    tied = a.tied_embeddings is not False
    if bert:
        head = masked_lm_head_block(vocab=vocab, hidden=hidden, tied=tied, sentence_classes=2)
    else:
        head = head_block(vocab=vocab, hidden=hidden, tied=tied, norm_bias=classic)
    blocks = [embedding, *_layers(a, classic=classic, dropout=dropped), head]
    return ModelGraph(name=a.model or a.arch, family=a.arch, runs=fold(blocks), vocab_size=a.vocab)


def _layers(a: Architecture, *, classic: bool, dropout: bool) -> list[Block]:
    """The layers in order: dense ones first, or every other one where they alternate."""
    layers = _known(a.layers)
    dense = _layer(a, classic=classic, dropout=dropout, experts=False)
    if not a.moe_experts:
        return [dense] * layers
    sparse = _layer(a, classic=classic, dropout=dropout, experts=True)
    num_dense = min(a.moe_dense_layers or 0, layers)
    if "interleaved" in a.arch and num_dense:
        step = layers // num_dense
        return [dense if i % step == 0 else sparse for i in range(layers)]
    return [dense] * num_dense + [sparse] * (layers - num_dense)


def _layer(a: Architecture, *, classic: bool, dropout: bool, experts: bool) -> Block:
    hidden, heads = _known(a.hidden), _known(a.heads)
    ffn = a.ffn_hidden or 4 * hidden
    gated = bool(a.gated_mlp)
    mixture = MoeSpec(
        experts=a.moe_experts or 1,
        top_k=a.moe_topk or 1,
        width=a.moe_ffn_hidden or ffn,
        gated=gated,
        shared_width=a.moe_shared_ffn or 0,
    )
    if a.mla:
        return _latent_layer(a, mixture if experts else None, ffn=ffn, gated=gated)
    bert = "bert" in a.arch
    attention = AttentionSpec(
        heads=heads,
        kv_heads=a.kv_heads or heads,
        head_dim=a.head_dim or hidden // heads,
        rotary=not classic and "mpt" not in a.arch,
        qkv_bias=classic,
        out_bias=classic,
        mask=Mask(causal=not bert),
        dropout=dropout,
    )
    spec = LayerSpec(
        hidden=hidden,
        attention=attention,
        ffn=0 if experts else ffn,
        gated=gated,
        mlp_bias=classic,
        moe=mixture if experts else None,
        norm_bias=classic,
        pre_norm=not bert,
        post_norm=bert,
        dropout=dropout,
    )
    return transformer_layer(spec, name="moe_decoder" if experts else "decoder")


def _latent_layer(a: Architecture, mixture: MoeSpec | None, *, ffn: int, gated: bool) -> Block:
    """Latent attention, from ``q_lora=1536;kv_lora=512;qk_nope=128;qk_rope=64;v=128``."""
    ranks = {name: int(value) for name, value in re.findall(r"(\w+)=(\d+)", a.mla)}
    if not {"kv_lora", "qk_nope", "qk_rope", "v"} <= set(ranks):
        raise RowSkippedError("dimensions_missing", f"latent attention is described as {a.mla!r}")
    latent = MlaSpec(
        heads=_known(a.heads),
        query_rank=ranks.get("q_lora") or None,
        kv_rank=ranks["kv_lora"],
        nope_dim=ranks["qk_nope"],
        rope_dim=ranks["qk_rope"],
        value_dim=ranks["v"],
    )

    def mixer(b: BlockBuilder, x: str) -> str:
        return latent_attention(b, x, latent)

    def feed_forward(b: BlockBuilder, x: str) -> str:
        return moe(b, x, mixture) if mixture else mlp(b, x, width=ffn, gated=gated)

    return residual_layer(
        "moe_decoder" if mixture else "decoder",
        hidden=_known(a.hidden),
        mixer=mixer,
        feed_forward=feed_forward,
        active_experts=mixture.top_k if mixture else 0,
    )
