"""Reading a table of training runs.

The file is CSV with a header; ``docs/validate.md`` lists the columns. What was chosen
(``RunInputs``) and what came out (``Measured``) are separate values, so that a predictor that
is given the first cannot see the second.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast, get_type_hints

from meshwright.errors import FileError
from meshwright.files import read_text
from meshwright.units import MIB
from meshwright.validation.inputs import Architecture, Hardware, Parallel, RunInputs, Software

#: The largest public table has two.
LIMIT_BYTES = 64 * MIB

#: Without these a row says nothing; any other column may be missing.
REQUIRED = ("layers", "hidden", "heads", "device_type", "num_devices", "global_batch")

#: ``check`` says whether a row is consistent in itself; these say that it is not.
_REFUSED_CHECKS = ("inconsistent", "not_a_measurement", "author_states")

_Part = TypeVar("_Part")


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What came out of a run.

    Attributes:
        iter_time_s: seconds of one optimizer step.
        tokens_per_s_per_device: used for the time when that is not given.
        mem_gb_per_device, mem_kind: memory, and how it was measured (see ``memory_meaning``).
        oom: true when it ran out of memory, false when it ran, ``None`` when not stated.
    """

    iter_time_s: float | None = None
    tokens_per_s_per_device: float | None = None
    mem_gb_per_device: float | None = None
    mem_kind: str = ""
    oom: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Quality:
    """What whoever made the table thinks of the row.

    Attributes:
        source, locator: where it comes from.
        trust: A, B or C.
        check: whether the row is consistent in itself.
        fit_ready: contains ``time`` and ``memory`` where these are complete; ``None`` when
            the file has no such column.
        device_family: for grouping.
    """

    source: str = ""
    locator: str = ""
    trust: str = ""
    check: str = ""
    fit_ready: str | None = None
    device_family: str = ""

    def usable_for(self, what: str) -> bool:
        """Whether the row may be compared on ``"time"`` or ``"memory"``."""
        if any(word in self.check for word in _REFUSED_CHECKS):
            return False
        return self.fit_ready is None or what in self.fit_ready


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One row."""

    line: int
    inputs: RunInputs
    measured: Measured
    quality: Quality

    @property
    def step_s(self) -> float | None:
        """Measured seconds of one step, when the row may be used for time."""
        if not self.quality.usable_for("time"):
            return None
        m, i = self.measured, self.inputs
        if m.iter_time_s:
            return m.iter_time_s
        if not (m.tokens_per_s_per_device and i.global_batch and i.seq_len):
            return None
        devices = i.hardware.num_devices or 1
        return i.global_batch * i.seq_len / (m.tokens_per_s_per_device * devices)

    @property
    def memory_gb(self) -> float | None:
        """Measured memory as printed, when the row may be used for memory."""
        return self.measured.mem_gb_per_device if self.quality.usable_for("memory") else None

    @property
    def ran_out(self) -> bool | None:
        """Whether it ran out of memory, when the row says so and may be used for memory."""
        if self.measured.oom is None:
            return False if self.memory_gb is not None else None
        usable = self.quality.usable_for("memory" if self.measured.oom else "time")
        return self.measured.oom if usable or self.quality.usable_for("memory") else None


def read_runs(path: str | Path) -> tuple[Run, ...]:
    """Every row of a table of runs.

    Args:
        path: of a CSV file with the columns of ``docs/validate.md``.

    Raises:
        FileError: the file is missing, is no such table, or a cell cannot be read.
    """
    text = read_text(path, limit_bytes=LIMIT_BYTES, kind="table of runs")
    return parse_runs(text, where=str(path))


def parse_runs(text: str, *, where: str) -> tuple[Run, ...]:
    """Every row of the text of a table.

    Raises:
        FileError: it is no such table, or a cell cannot be read.
    """
    lines = text.splitlines(keepends=True)
    reader = csv.DictReader(lines, strict=True)
    try:
        columns = reader.fieldnames or ()
        missing = [name for name in REQUIRED if name not in columns]
        if missing:
            raise FileError(
                f"the table of runs has no column {missing[0]!r}",
                where=f"{where}, line 1",
                allowed=f"a header with at least {', '.join(REQUIRED)}",
                fix="name the columns as docs/validate.md lists them",
            )
        has_fit_ready = "fit_ready" in columns
        return tuple(
            _run(row, line, where=where, has_fit_ready=has_fit_ready)
            for line, row in _rows(reader, where)
        )
    except csv.Error as error:
        raise FileError(
            f"the table of runs is no CSV: {error}",
            where=f"{where}, line {reader.reader.line_num}",
            allowed="comma-separated cells, quoted where they hold a comma",
            fix="write it with a CSV library",
        ) from None


def _rows(reader: csv.DictReader[str], where: str) -> Iterator[tuple[int, dict[str, str]]]:
    width = len(reader.fieldnames or ())
    for row in reader:
        found = [value for value in row.values() if value is not None]
        if None in row or len(found) != width:
            raise FileError(
                "a row has another number of cells than the header",
                where=f"{where}, line {reader.line_num}",
                allowed=f"{width} cells",
                fix="quote cells that hold a comma",
            )
        yield reader.line_num, row


def _run(row: Mapping[str, str], line: int, *, where: str, has_fit_ready: bool) -> Run:
    place = f"{where}, line {line}"
    quality = _part(Quality, row, place)
    if not has_fit_ready:
        quality = replace(quality, fit_ready=None)
    scalars = {f.name for f in fields(RunInputs)} - set(_NESTED)
    hints = _hints(RunInputs)
    nested: dict[str, Any] = {name: _part(kind, row, place) for name, kind in _NESTED.items()}
    chosen: dict[str, Any] = {
        name: _cell(row.get(name, ""), hints[name], name, place) for name in scalars
    }
    return Run(
        line=line,
        inputs=RunInputs(**nested, **chosen),
        measured=_part(Measured, row, place),
        quality=quality,
    )


_NESTED: dict[str, type[Any]] = {
    "architecture": Architecture,
    "hardware": Hardware,
    "parallel": Parallel,
    "software": Software,
}


@cache
def _hints(kind: type) -> Mapping[str, object]:
    return get_type_hints(kind)


def _part(kind: type[_Part], row: Mapping[str, str], place: str) -> _Part:
    """A value whose fields are columns."""
    hints = _hints(cast(type, kind))
    return kind(**{name: _cell(row.get(name, ""), hints[name], name, place) for name in hints})


def _cell(text: str, hint: object, column: str, place: str) -> object:
    """One cell, as the type that its column has."""
    text = text.strip()
    if hint is str or hint == str | None:
        return text
    if not text:
        return None
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if hint == bool | None:
        good, allowed = number in (0.0, 1.0), "0 or 1"
    elif hint == int | None:
        good, allowed = number.is_integer() and 0 <= number <= 10**9, "a whole number from 0 up"
    else:
        good, allowed = math.isfinite(number) and number >= 0.0, "a finite number from 0 up"
    if not good:
        raise FileError(
            f"{column} is {text[:60]!r}",
            where=place,
            allowed=f"{allowed}, or nothing",
            fix="correct the cell, or leave it empty where the value is not known",
        )
    if hint == bool | None:
        return bool(number)
    return int(number) if hint == int | None else number
