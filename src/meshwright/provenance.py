"""Where a number comes from."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Provenance(StrEnum):
    """How good the ground under a number is, best first."""

    MEASURED = "measured"
    FITTED = "fitted"
    DATASHEET = "datasheet"
    ANALYTIC = "analytic"


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """The origin of one or more numbers.

    Attributes:
        kind: measured, fitted to measurements, printed by the vendor, or reasoned.
        text: the document, table or argument, in words.
    """

    kind: Provenance
    text: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.text}"

    def inherited(self, name: str) -> Source:
        """The same number used for another thing than it was found on."""
        return Source(kind=Provenance.ANALYTIC, text=f"as {name} ({self})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A number with its origin, in the unit that its holder's name says."""

    value: float
    source: Source


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A predicted number with the interval that it is trusted to.

    Attributes:
        value: the prediction.
        low, high: bounds of the interval.
        source: how good the ground under it is.
    """

    value: float
    low: float
    high: float
    source: Source
