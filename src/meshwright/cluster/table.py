"""Reading TOML tables strictly: every key known, every value of the right type."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TypeVar

from meshwright.errors import ClusterError, nearest
from meshwright.provenance import Provenance

T = TypeVar("T")


class Table:
    """One TOML table; remembers which keys were read and refuses the others.

    Attributes:
        where: path of the table, for messages (``file.toml:group[0]``).
    """

    def __init__(self, content: object, *, where: str) -> None:
        if not isinstance(content, Mapping):
            raise ClusterError(f"{shown(content)} is not a table", where=where, allowed="a table")
        self.where = where
        self._content = dict(content)
        self._asked: dict[str, None] = {}

    def __contains__(self, key: str) -> bool:
        self._asked[key] = None
        return key in self._content

    def at(self, key: str) -> str:
        """The path of a key."""
        return f"{self.where}.{key}" if not self.where.endswith(":") else f"{self.where}{key}"

    def raw(self, key: str) -> object:
        """The value as parsed.

        Raises:
            ClusterError: there is no such key.
        """
        if key not in self:
            near = nearest(key, (k for k in self._content if k not in self._asked), count=1)
            fix = f"is {near[0]!r} meant to be it?" if near else f"add {key} = ..."
            raise ClusterError(f"{key!r} is missing", where=self.where, fix=fix)
        return self._content[key]

    def text(self, key: str) -> str:
        """A string that is not empty."""
        return self._typed(key, str, "a string in quotes, not empty")

    def count(self, key: str) -> int:
        """A whole number of at least 1 (``true`` is not a number)."""
        value = self._typed(key, int, "a whole number from 1 up")
        if value < 1:
            raise ClusterError(
                f"{shown(value)} cannot be used here",
                where=self.at(key),
                allowed="a whole number from 1 up",
            )
        return value

    def number(self, key: str, *, zero: bool = False) -> float:
        """A finite positive number; 0 too where ``zero``."""
        value = self.raw(key)
        allowed = "a finite number " + ("from 0 up" if zero else "greater than 0")
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise ClusterError(f"{shown(value)} is no number", where=self.at(key), allowed=allowed)
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if not math.isfinite(number) or number < 0.0 or (number == 0.0 and not zero):
            raise ClusterError(
                f"{shown(value)} cannot be used here", where=self.at(key), allowed=allowed
            )
        return number

    def provenance(self, key: str) -> Provenance:
        """A kind of source."""
        kind = self.text(key)
        if kind not in list(Provenance):
            raise ClusterError(
                f"unknown kind {shown(kind)}", where=self.at(key), allowed=", ".join(Provenance)
            )
        return Provenance(kind)

    def table(self, key: str) -> Table:
        """A table within this one."""
        return Table(self.raw(key), where=self.at(key))

    def tables(self, key: str) -> list[Table]:
        """An array of tables with at least one entry."""
        entries = self._typed(key, list, f"one or more [[{key}]] tables")
        return [Table(entry, where=f"{self.at(key)}[{i}]") for i, entry in enumerate(entries)]

    def names(self) -> list[str]:
        """All keys of a table whose keys are free; the caller reads each of them."""
        return [str(key) for key in self._content]

    def finish(self) -> None:
        """Refuse keys that nobody asked for.

        Raises:
            ClusterError: there is one; names the nearest key that is known.
        """
        for key in self._content:
            if key not in self._asked:
                near = nearest(str(key), self._asked, count=1)
                raise ClusterError(
                    f"unknown key {shown(key)}",
                    where=self.where,
                    allowed=", ".join(self._asked),
                    fix=f"did you mean {near[0]!r}?" if near else "",
                )

    def _typed(self, key: str, kind: type[T], allowed: str) -> T:
        value = self.raw(key)
        if not isinstance(value, kind) or isinstance(value, bool) or value in ("", []):
            raise ClusterError(
                f"{shown(value)} cannot be used here", where=self.at(key), allowed=allowed
            )
        return value


def shown(value: object) -> str:
    """A value as the user wrote it, cut to fit a line (huge integers are not printed).

    >>> shown(-3)
    '-3'
    """
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() > 256:
        return f"an integer of {value.bit_length()} bits"
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
