"""A residual layer around any mixer and any feed-forward branch."""

from __future__ import annotations

from collections.abc import Callable

from meshwright.graph.axis import BATCH, SEQ, Axis
from meshwright.graph.block import Block, BlockRole
from meshwright.graph.builders.builder import BlockBuilder

#: Adds the ops of one branch: takes the builder and its input, returns its output. Both
#: have dims (batch, seq, hidden).
Branch = Callable[[BlockBuilder, str], str]


def residual_branch(
    b: BlockBuilder,
    x: str,
    branch: Branch,
    *,
    label: str,
    norm_bias: bool = False,
    post_norm: bool = False,
) -> str:
    """``x + branch(norm(x))``; with ``post_norm`` the branch is normalised once more."""
    y = branch(b, b.norm(f"{label}_norm", x, over="hidden", bias=norm_bias))
    if post_norm:
        y = b.norm(f"{label}_post_norm", y, over="hidden", bias=norm_bias)
    return b.residual(f"{label}_residual", x, y)


def residual_layer(
    name: str,
    *,
    hidden: int,
    mixer: Branch | None,
    feed_forward: Branch | None,
    norm_bias: bool = False,
    post_norm: bool = False,
    active_experts: int = 0,
    seq: Axis | None = None,
) -> Block:
    """A layer of one or two residual branches, each behind its own norm.

    Args:
        name: of the block.
        hidden: width of the residual stream.
        mixer: mixes tokens (attention, recurrence); ``None`` for a layer without one.
        feed_forward: mixes channels; ``None`` for a layer without one.
        norm_bias: layer norms with a shift.
        post_norm: a norm after each branch as well.
        active_experts: experts a token uses, when ``feed_forward`` has experts.
        seq: the sequence axis, for towers that do not run over the text.
    """
    b = BlockBuilder(name, BlockRole.LAYER, seq=seq)
    b.axis("hidden", hidden)
    x = b.input("x", (BATCH, SEQ, "hidden"))
    for label, branch in (("mixer", mixer), ("mlp", feed_forward)):
        if branch is not None:
            x = residual_branch(b, x, branch, label=label, norm_bias=norm_bias, post_norm=post_norm)
    return b.build(output=x, active_experts=active_experts)
