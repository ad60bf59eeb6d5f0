"""Named axes: the one vocabulary in which ops, tensors and layouts are described."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from meshwright.errors import ModelError


class Split(StrEnum):
    """The mesh axis along which the standard layout splits an iteration axis.

    The *standard layout* is the one every training framework implements for transformers:
    batch over data ranks, sequence over context ranks, heads, feed-forward width and
    vocabulary over tensor ranks, experts over expert ranks, the width of one expert over
    expert-tensor ranks.
    """

    DATA = "data"
    CONTEXT = "context"
    TENSOR = "tensor"
    EXPERT = "expert"
    EXPERT_TENSOR = "expert_tensor"


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """One named iteration axis.

    Attributes:
        name: unique within a block, e.g. ``"hidden"``.
        size: its length, or ``None`` when the workload binds it (batch, sequence).
        split: the mesh axis that splits it in the standard layout, or ``None`` when it
            stays whole on every rank.
        scale: the length as a multiple of the workload's sequence length, for axes whose
            ``size`` is ``None`` (an encoder that sees a quarter of the tokens has 0.25).
    """

    name: str
    size: int | None = None
    split: Split | None = None
    scale: float = 1.0

    def __post_init__(self) -> None:
        if self.size is not None and self.size <= 0:
            raise ModelError(
                f"axis {self.name!r} has size {self.size}",
                where=self.name,
                allowed="a positive integer",
                fix="check the model's dimensions",
            )


#: Names of the two axes that every workload binds.
BATCH = "batch"
SEQ = "seq"

#: The axis over the experts chosen by one token: an op that has it works on routed tokens.
CHOICE = "choice"


def batch_axis() -> Axis:
    """Sequences in one micro-batch of one data-parallel replica."""
    return Axis(name=BATCH, split=Split.DATA)


def seq_axis(*, name: str = SEQ, scale: float = 1.0) -> Axis:
    """Tokens of a sequence, split over the context-parallel group."""
    return Axis(name=name, split=Split.CONTEXT, scale=scale)
