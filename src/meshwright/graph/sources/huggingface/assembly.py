"""What the readers of today's families share: blocks put in order, experts, prediction heads."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import TypeVar

from meshwright.graph.block import Block
from meshwright.graph.builders import (
    AttentionSpec,
    BlockBuilder,
    MoeSpec,
    embedding_block,
    head_block,
    mlp,
    moe,
    self_attention,
)
from meshwright.graph.builders.layer import Branch
from meshwright.graph.builders.mtp import mtp_block
from meshwright.graph.sources.huggingface.decoder_only import default_length
from meshwright.graph.sources.huggingface.reader import ConfigReader
from meshwright.graph.sources.huggingface.registry import Architecture

Key = TypeVar("Key", bound=Hashable)

#: More prediction modules than any model has; bounds the work.
MAX_MTP = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Tower:
    """A tower for images or audio: its embedding, and its layers with the projector."""

    embedding: Block
    layers: tuple[Block, ...]


def each(keys: Iterable[Key], build: Callable[[Key], Block]) -> tuple[Block, ...]:
    """One block per key; equal keys share one block."""
    built: dict[Key, Block] = {}
    return tuple(built[key] if key in built else built.setdefault(key, build(key)) for key in keys)


def assemble(
    r: ConfigReader,
    *,
    family: str,
    layers: tuple[Block, ...],
    tied: bool,
    mtp: tuple[Block, ...] = (),
    towers: tuple[Tower | None, ...] = (),
    embedding: Block | None = None,
    head: Block | None = None,
) -> Architecture:
    """Embeddings, layers and heads in order.

    Args:
        r: reader of the language model's fields.
        family: the structure it was read as.
        layers: of the language model.
        tied: the logits share the token table.
        mtp: prediction modules, after the head.
        towers: before the language model; those that are ``None`` are passed over.
        embedding, head: when they are not the usual ones.
    """
    hidden, vocab = r.positive("hidden_size"), r.positive("vocab_size")
    embedding = embedding or embedding_block(vocab=vocab, hidden=hidden)
    head = head or head_block(vocab=vocab, hidden=hidden, tied=tied)
    if mtp:
        r.assume(
            f"The {len(mtp)} module(s) that predict further tokens are trained too; "
            "the count of parameters leaves them out, as published counts do."
        )
    present = [tower for tower in towers if tower is not None]
    positions = r.optional("max_position_embeddings", "seq_length")
    return Architecture(
        family=family,
        blocks=(
            *(tower.embedding for tower in present),
            embedding,
            *(block for tower in present for block in tower.layers),
            *layers,
            head,
            *mtp,
        ),
        max_seq_length=positions,
        default_seq_length=default_length(positions),
        vocab_size=vocab,
    )


def tied(outer: ConfigReader, text: ConfigReader, *, default: bool = False) -> bool:
    """Whether the logits share the token table; the outer field wins over the nested one."""
    return outer.flag(
        "tie_word_embeddings", default=text.flag("tie_word_embeddings", default=default)
    )


def attention_branch(spec: AttentionSpec) -> Branch:
    """Grouped attention as a branch."""
    return lambda b, x: self_attention(b, x, spec)


def dense_branch(width: int, *, gated: bool = True, bias: bool = False) -> Branch:
    """A dense feed-forward branch."""

    def branch(b: BlockBuilder, x: str) -> str:
        return mlp(b, x, width=width, gated=gated, bias=bias)

    return branch


def moe_branch(spec: MoeSpec) -> Branch:
    """A mixture of experts as a branch."""

    def branch(b: BlockBuilder, x: str) -> str:
        return moe(b, x, spec)

    return branch


def mtp_modules(
    r: ConfigReader,
    *names: str,
    tied: bool,
    mixer: Branch,
    feed_forward: Branch,
    active_experts: int = 0,
) -> tuple[Block, ...]:
    """As many prediction modules as the field says, each with a layer of these branches."""
    count = r.count(*names, limit=MAX_MTP)
    if not count:
        return ()
    block = mtp_block(
        vocab=r.positive("vocab_size"),
        hidden=r.positive("hidden_size"),
        mixer=mixer,
        feed_forward=feed_forward,
        tied=tied,
        active_experts=active_experts,
    )
    return (block,) * count
