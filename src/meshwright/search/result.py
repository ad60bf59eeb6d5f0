"""What a search of the uniform space returns."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class UniformCandidate:
    """One candidate: indices into the tables, and what it costs.

    Attributes:
        shape, row, partition, mode: indices into ``UniformTables``.
        step_s: time of one step.
        peak_bytes: the most memory that any device needs.
        headroom_bytes: what the tightest device has left; negative if it does not fit.
    """

    shape: int
    row: int
    partition: int
    mode: int
    step_s: float
    peak_bytes: float
    headroom_bytes: float

    @property
    def index(self) -> tuple[int, int, int, int]:
        """Place in the enumeration, which breaks ties."""
        return (self.shape, self.row, self.partition, self.mode)


@dataclass(frozen=True, slots=True, kw_only=True)
class UniformResult:
    """The outcome; of a complete search ``evaluated + sum(excluded) == candidates``.

    Attributes:
        best: the fastest that fit, by time, then peak memory, then enumeration.
        pareto: those that fit and that no other beats in both time and peak memory, by time.
        excluded: candidates that each rule excluded.
        candidates: size of the space.
        evaluated: candidates whose time and memory were both computed (those that fit).
        nearest_misfit: of those excluded for memory alone, the one that lacks least.
        complete: false if the search was cancelled; then counts and lists cover a part.
    """

    best: tuple[UniformCandidate, ...]
    pareto: tuple[UniformCandidate, ...]
    excluded: tuple[int, ...]
    candidates: int
    evaluated: int
    nearest_misfit: UniformCandidate | None
    complete: bool
