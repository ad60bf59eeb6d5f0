"""What the readers of decoder-only families share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from meshwright.graph.block import Block
from meshwright.graph.builders import (
    AttentionSpec,
    LayerSpec,
    embedding_block,
    head_block,
    transformer_layers,
)
from meshwright.graph.op import Mask
from meshwright.graph.sources.huggingface.reader import MAX_LAYERS, ConfigReader
from meshwright.graph.sources.huggingface.registry import Architecture

#: Longest sequence that is taken for training when the workload names none: contexts beyond
#: it are trained in a short last phase.
LONGEST_DEFAULT = 8192

HIDDEN = ("hidden_size", "n_embd", "d_model", "dim")
LAYERS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers")
HEADS = ("num_attention_heads", "n_head", "n_heads", "num_heads")
KV_HEADS = ("num_key_value_heads", "n_kv_heads", "num_kv_heads", "n_head_kv", "num_query_groups")
HEAD_DIM = ("head_dim", "kv_channels", "attention_head_dim")
FFN = ("intermediate_size", "ffn_hidden_size", "n_inner", "ffn_dim", "inner_size")
VOCAB = ("vocab_size", "padded_vocab_size", "n_vocab")
POSITIONS = (
    "max_position_embeddings",
    "n_positions",
    "max_sequence_length",
    "max_seq_len",
    "seq_length",
    "model_max_length",
    "n_ctx",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """The dimensions that every decoder-only configuration has."""

    hidden: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    vocab: int
    positions: int | None


def read_sizes(
    r: ConfigReader,
    *,
    heads: int | None = None,
    kv_heads: int | None = None,
    head_dim: int | None = None,
    vocab: int | None = None,
) -> Sizes:
    """The dimensions, under any of their usual names.

    Args:
        r: the configuration.
        heads: when the field is absent; needed by default.
        kv_heads: when the field is absent; by default as many as query heads.
        head_dim: when the field is absent; by default hidden size over heads.
        vocab: when the field is absent; needed by default.
    """
    hidden, heads = r.positive(*HIDDEN), r.positive(*HEADS, default=heads)
    if head_dim is None or r.has(*HEAD_DIM):
        head_dim = r.head_dim(hidden=hidden, heads=heads, names=HEAD_DIM)
    return Sizes(
        hidden=hidden,
        layers=r.layers(*LAYERS),
        heads=heads,
        kv_heads=r.kv_heads(*KV_HEADS, heads=heads, default=kv_heads),
        head_dim=head_dim,
        vocab=r.positive(*VOCAB, default=vocab),
        positions=r.optional(*POSITIONS),
    )


def attention(
    r: ConfigReader,
    sizes: Sizes,
    *,
    qkv_bias: bool = False,
    out_bias: bool = False,
    mask: Mask | None = None,
    qk_norm: str | None = None,
    rotary: bool = True,
) -> AttentionSpec:
    """Grouped attention of these sizes; dropout on the probabilities as configured."""
    return AttentionSpec(
        heads=sizes.heads,
        kv_heads=sizes.kv_heads,
        head_dim=sizes.head_dim,
        mask=mask or Mask(),
        qkv_bias=qkv_bias,
        out_bias=out_bias,
        qk_norm=qk_norm,
        rotary=rotary,
        dropout=attention_dropout(r),
    )


def attention_dropout(r: ConfigReader, default: float = 0.0) -> bool:
    """Whether training drops attention probabilities."""
    names = ("attention_dropout", "attn_pdrop", "attention_probs_dropout_prob")
    return r.number(*names, default=default) > 0


def hidden_dropout(r: ConfigReader, default: float = 0.0) -> bool:
    """Whether training drops the output of the branches."""
    names = (
        "resid_pdrop",
        "hidden_dropout",
        "hidden_dropout_prob",
        "resid_dropout",
        "residual_dropout",
        "dropout",
        "dropout_rate",
    )
    return r.number(*names, default=default) > 0


def embedding_dropout(r: ConfigReader, default: float = 0.0) -> bool:
    """Whether training drops embeddings."""
    names = ("embd_pdrop", "embedding_dropout", "emb_pdrop", "embed_dropout")
    return r.number(*names, default=default) > 0


def window(r: ConfigReader, *, default: int = 0) -> int | None:
    """The sliding window in tokens, or ``None`` without one."""
    return r.count("sliding_window", "sliding_window_size", "window_size", default=default) or None


def local_global(period: int) -> tuple[str, ...]:
    """The pattern of ``period`` layers of which the last sees everything."""
    local = min(period, MAX_LAYERS) - 1
    return ("sliding_attention",) * local + ("full_attention",)


def layer_masks(
    r: ConfigReader, layers: int, *, pattern: Sequence[str], default_window: int = 0
) -> tuple[Mask, ...]:
    """One mask per layer from ``layer_types``, or from ``pattern`` repeated when absent.

    Args:
        r: the configuration.
        layers: their number.
        pattern: of ``"sliding_attention"`` and ``"full_attention"``.
        default_window: the sliding window when the configuration names none.
    """
    allowed = ("full_attention", "sliding_attention")
    types = r.texts("layer_types", length=layers, allowed=allowed)
    if types is None:
        types = tuple(pattern[i % len(pattern)] for i in range(layers))
    if "sliding_attention" not in types:
        return (Mask(),) * layers
    sliding = Mask(window=window(r, default=default_window))
    return tuple(sliding if kind == "sliding_attention" else Mask() for kind in types)


def default_length(positions: int | None) -> int | None:
    """The sequence length of training when the workload names none."""
    return None if positions is None else min(positions, LONGEST_DEFAULT)


def decoder_only(
    family: str,
    sizes: Sizes,
    layers: Iterable[LayerSpec],
    *,
    tied: bool,
    embedding: Block | None = None,
    head: Block | None = None,
) -> Architecture:
    """Token table, layers, final norm and logits.

    Args:
        family: the structure's name.
        sizes: its dimensions.
        layers: one entry per layer.
        tied: the logits' weight is the token table.
        embedding: instead of a plain token table.
        head: instead of an RMS norm and logits without bias.
    """
    first = embedding or embedding_block(vocab=sizes.vocab, hidden=sizes.hidden)
    last = head or head_block(vocab=sizes.vocab, hidden=sizes.hidden, tied=tied)
    return Architecture(
        family=family,
        blocks=(first, *transformer_layers(layers), last),
        max_seq_length=sizes.positions,
        default_seq_length=default_length(sizes.positions),
        vocab_size=sizes.vocab,
    )
