"""The model graph: blocks in order, equal ones folded."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby

from meshwright.errors import ModelError
from meshwright.graph.block import Block, BlockRole


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """``count`` equal blocks in a row."""

    block: Block
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelGraph:
    """A model: runs of blocks in execution order.

    Attributes:
        name: as the user called it.
        family: the structure it was read as, e.g. ``"llama"``.
        runs: embedding blocks, then layers, then head blocks.
        max_seq_length: longest sequence that the positions allow, or ``None`` if unbounded.
        default_seq_length: the sequence used when the workload names none, or ``None``.
        vocab_size: tokens of the vocabulary; ``None`` for models without one.
        assumptions: what the reader had to assume, each a full sentence.
        source: where the description comes from.
    """

    name: str
    family: str
    runs: tuple[Run, ...]
    max_seq_length: int | None = None
    default_seq_length: int | None = None
    vocab_size: int | None = None
    assumptions: tuple[str, ...] = ()
    source: str = ""

    def __post_init__(self) -> None:
        order = [BlockRole.EMBEDDING, BlockRole.LAYER, BlockRole.HEAD]
        ranks = [order.index(run.block.role) for run in self.runs]
        if ranks != sorted(ranks):
            raise ModelError(
                "blocks are out of order", where=self.name, allowed="embedding, layers, head"
            )
        if not any(run.block.role is BlockRole.LAYER for run in self.runs):
            raise ModelError(f"model {self.name!r} has no layers", where=self.name)

    @property
    def blocks(self) -> tuple[Block, ...]:
        """Distinct blocks, in order of first use."""
        # Hashing a block walks through all of it: do so once per object, not once per run.
        objects = {id(run.block): run.block for run in self.runs}
        return tuple(dict.fromkeys(objects.values()))

    def sequence(self, role: BlockRole) -> tuple[int, ...]:
        """Index into ``blocks`` of every block of that role, unfolded, in order."""
        by_value = {block: i for i, block in enumerate(self.blocks)}
        objects = {id(run.block): run.block for run in self.runs}
        index = {key: by_value[block] for key, block in objects.items()}
        return tuple(
            index[id(run.block)]
            for run in self.runs
            if run.block.role is role
            for _ in range(run.count)
        )

    @property
    def num_layers(self) -> int:
        """Units that the pipeline may cut between."""
        return sum(run.count for run in self.runs if run.block.role is BlockRole.LAYER)

    def parameter_count(self, *, include_auxiliary: bool = False) -> int:
        """All learned scalars, tied ones once; auxiliary blocks only when asked for."""
        return sum(
            run.count * run.block.parameter_count() for run in self._counted(include_auxiliary)
        )

    def active_parameter_count(self, *, include_auxiliary: bool = False) -> int:
        """Learned scalars that one token meets (equal to all of them without experts)."""
        return sum(
            run.count * run.block.active_parameter_count()
            for run in self._counted(include_auxiliary)
        )

    def _counted(self, include_auxiliary: bool) -> tuple[Run, ...]:
        return tuple(run for run in self.runs if include_auxiliary or not run.block.auxiliary)


def fold(blocks: Iterable[Block]) -> tuple[Run, ...]:
    """Equal neighbours become one run; nothing is lost.

    Equality is by value, so two layers of the same structure fold whatever made them.
    """
    return tuple(Run(block=block, count=sum(1 for _ in same)) for block, same in groupby(blocks))
