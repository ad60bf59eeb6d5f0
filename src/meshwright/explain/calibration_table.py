"""A calibration in the terminal and as JSON."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.table import Table

from meshwright.calibration import Calibration
from meshwright.explain.console import (
    bare_table,
    opened,
    print_bold,
    print_commands,
    print_section,
    print_text,
)
from meshwright.units import format_percent
from meshwright.validation import SKIPS
from meshwright.validation.metrics import TimeMetrics

_NAME_WIDTH = 44


def calibration_json(calibration: Calibration, *, path: str | None = None) -> dict[str, Any]:
    """What was fitted, and the errors before, in-sample and on rows that were left out.

    Args:
        calibration: what to show.
        path: of the file that was written, if any.
    """
    held_out = calibration.held_out
    return {
        "stack": calibration.base.name,
        "family": calibration.family,
        "rows": calibration.rows,
        "sources": calibration.sources,
        "skipped": calibration.skipped,
        "from_scratch": calibration.from_scratch,
        "prior_fitted": calibration.prior_fitted,
        "changes": [asdict(change) for change in calibration.changes],
        "idle": list(calibration.idle),
        "before": asdict(calibration.before),
        "in_sample": asdict(calibration.after),
        "held_out": held_out
        and {
            "scheme": held_out.scheme,
            "time": asdict(held_out.time),
            "folds": [
                {"name": fold.name, "rows": fold.rows, "time": asdict(fold.time)}
                for fold in held_out.folds
            ],
        },
        "path": path,
    }


def print_calibration(
    calibration: Calibration, *, path: str | None = None, console: Console | None = None
) -> None:
    """Tables of parameters and errors, and what to make of them.

    Args:
        calibration: what to print.
        path: of the file that was written, if any.
        console: where to print; stdout by default.
    """
    with opened(console) as out:
        rows, sources = calibration.rows, calibration.sources
        print_bold(
            out,
            f"{calibration.base.name} on {calibration.family}: fitted to {_count(rows, 'row')} "
            f"of {_count(sources, 'source')}",
        )
        out.print()
        if calibration.changes:
            out.print(_changes_table(calibration))
        else:
            print_text(out, "Nothing was fitted: no row depends on these parameters.")
        out.print()
        print_bold(out, "Error of step time")
        out.print(_error_table(calibration))
        if calibration.held_out is not None:
            out.print()
            print_bold(
                out, f"Left out, each predicted by a fit to the others ({_scheme(calibration)})"
            )
            out.print(_fold_table(calibration))
        print_section(out, "Notes", _notes(calibration))
        if path is not None:
            print_section(out, "Written", [path])
            print_commands(
                out, "Next", [f"meshwright validate RUNS.csv --stack {shlex.quote(path)}"]
            )


def _count(number: int, word: str) -> str:
    return f"{number:,} {word}{'' if number == 1 else 's'}"


def _scheme(calibration: Calibration) -> str:
    assert calibration.held_out is not None
    return calibration.held_out.scheme


def _changes_table(calibration: Calibration) -> Table:
    table = bare_table()
    table.add_column("parameter", overflow="fold", max_width=_NAME_WIDTH)
    for title in ("shipped", "start", "fitted", "change"):
        table.add_column(title, justify="right", no_wrap=True)
    for change in calibration.changes:
        table.add_row(
            change.name,
            *(f"{value:.4g}" for value in (change.shipped, change.before, change.after)),
            f"{change.after / change.before - 1.0:+.1%}".replace("%", " %"),
        )
    return table


def _error_table(calibration: Calibration) -> Table:
    table = bare_table()
    table.add_column("stack", overflow="fold", max_width=_NAME_WIDTH)
    for title in ("median", "mean", "bias"):
        table.add_column(title, justify="right", no_wrap=True)
    table.add_row("before, at the start of the fit", *_errors(calibration.before))
    table.add_row("after, in-sample: the rows it was fitted to", *_errors(calibration.after))
    if calibration.held_out is not None:
        table.add_row(
            f"cross-validated: {_scheme(calibration)}",
            *_errors(calibration.held_out.time),
            style="bold",
        )
    return table


def _fold_table(calibration: Calibration) -> Table:
    assert calibration.held_out is not None
    table = bare_table()
    table.add_column("left out", overflow="fold", max_width=_NAME_WIDTH)
    for title in ("rows", "median", "mean", "bias"):
        table.add_column(title, justify="right", no_wrap=True)
    for fold in calibration.held_out.folds:
        table.add_row(fold.name or "(not stated)", f"{fold.rows:,}", *_errors(fold.time))
    return table


def _errors(time: TimeMetrics) -> list[str]:
    return [
        "–" if value is None else format_percent(value)
        for value in (time.median_ape, time.mape, time.bias)
    ]


def _notes(calibration: Calibration) -> Sequence[str]:
    notes = ["The in-sample error flatters; expect the cross-validated one on other runs."]
    if calibration.held_out is None:
        notes = ["All rows are of one configuration: how well others are predicted is not known."]
    if calibration.prior_fitted:
        notes.append(
            "The start holds values that were fitted to public runs. For rows that were among "
            "them the cross-validated error is too small; --from-scratch starts without."
        )
    if calibration.idle:
        notes.append(f"Not fitted, because no row depends on it: {', '.join(calibration.idle)}.")
    notes += [
        f"{_count(count, 'row')} not used: {SKIPS[key]} ({key})."
        for key, count in calibration.skipped.items()
    ]
    return notes
