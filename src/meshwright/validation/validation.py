"""Comparing predictions with a table of runs, group by group."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from meshwright.validation.metrics import Group, group_of
from meshwright.validation.outcomes import Outcome, Predictor, predict_runs
from meshwright.validation.runs import Run

#: What rows can be grouped by, and the value that a row has.
GROUPINGS: dict[str, Callable[[Run], str]] = {
    "source": lambda run: run.quality.source,
    "device": lambda run: run.quality.device_family or run.inputs.hardware.device_type,
    "framework": lambda run: run.inputs.software.framework,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Validation:
    """The comparison.

    Attributes:
        outcomes: every row, in the order of the file.
        groups: ``all`` first, then the others by name.
    """

    outcomes: tuple[Outcome, ...]
    groups: tuple[Group, ...]


def validate(
    runs: Sequence[Run],
    *,
    by: str | None = None,
    predictor: Predictor | None = None,
    processes: int = 1,
    on_rows: Callable[[int], object] | None = None,
) -> Validation:
    """Predict every row, and compare.

    Args:
        runs: as ``read_runs`` gives them.
        by: a key of ``GROUPINGS``; one group of all rows when not given.
        predictor, processes, on_rows: see ``predict_runs``.
    """
    outcomes = predict_runs(runs, predictor=predictor, processes=processes, on_rows=on_rows)
    groups = [group_of("all", outcomes)]
    if by is not None:
        value = GROUPINGS[by]
        names = sorted({value(run) for run in runs}, key=str.casefold)
        groups += [
            group_of(name or "(not stated)", [o for o in outcomes if value(o.run) == name])
            for name in names
        ]
    return Validation(outcomes=outcomes, groups=tuple(groups))


def published_runs() -> Path:
    """The table of published runs that comes with Meshwright."""
    return Path(__file__).parent / "data" / "published_runs.csv"
