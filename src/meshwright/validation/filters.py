"""Choosing rows by what their cells hold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields

from meshwright.errors import UsageError
from meshwright.validation.inputs import Architecture, Hardware, Parallel, RunInputs, Software
from meshwright.validation.runs import Quality, Run

_PARTS: tuple[tuple[type, Callable[[Run], object]], ...] = (
    (Architecture, lambda run: run.inputs.architecture),
    (Hardware, lambda run: run.inputs.hardware),
    (Parallel, lambda run: run.inputs.parallel),
    (Software, lambda run: run.inputs.software),
    (RunInputs, lambda run: run.inputs),
    (Quality, lambda run: run.quality),
)
_WHERE: dict[str, Callable[[Run], object]] = {
    f.name: part
    for kind, part in _PARTS
    for f in fields(kind)
    if f.name not in ("architecture", "hardware", "parallel", "software")
}


def keep(runs: Sequence[Run], conditions: Sequence[str]) -> tuple[Run, ...]:
    """Rows that meet every condition.

    Args:
        runs: rows.
        conditions: ``COLUMN=TEXT``: the cell is that number, or holds that text (case does
            not matter). Result columns cannot be named: choosing rows by their results would
            flatter the prediction.

    Raises:
        UsageError: a condition has another form, or names no input column.
    """
    kept = tuple(runs)
    for condition in conditions:
        column, equals, wanted = condition.partition("=")
        column = column.strip()
        if not equals or column not in _WHERE:
            raise UsageError(
                f"{condition[:60]!r} is no condition on an input column",
                where="--filter",
                allowed=f"COLUMN=TEXT with one of {', '.join(sorted(_WHERE))}",
                fix="for example --filter device_type=H100",
            )
        kept = tuple(run for run in kept if _meets(run, column, wanted.strip()))
    return kept


def _meets(run: Run, column: str, wanted: str) -> bool:
    value = getattr(_WHERE[column](run), column)
    if isinstance(value, str):
        return wanted.casefold() in value.casefold()
    if value is None:
        return wanted == ""
    try:
        return float(value) == float(wanted)
    except ValueError:
        return False
