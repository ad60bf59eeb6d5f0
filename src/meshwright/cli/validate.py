"""``meshwright validate``: predictions beside measured runs."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from meshwright.cli.options import json_option
from meshwright.cli.output import print_json, write_text
from meshwright.cli.progress import counting_bar
from meshwright.cli.values import word
from meshwright.errors import UsageError

if TYPE_CHECKING:
    from meshwright.validation import Validation
    from meshwright.validation.runs import Run

_EPILOG = """\b
Examples:
  meshwright validate
  meshwright validate runs.csv --by source --plot scatter.html
  meshwright validate --filter device_type=H100 --rows rows.csv

\b
The columns of RUNS.csv are those of the table that comes with Meshwright; see docs/validate.md.
"""

#: Words of ``meshwright.validation.GROUPINGS``; a test holds the two together.
GROUPINGS = ("source", "device", "framework")
#: More processes do not pay: each one has to import and to build the models anew.
MAX_PROCESSES = 4


@click.command("validate", epilog=_EPILOG)
@click.argument("runs", metavar="[RUNS.csv]", required=False)
@click.option(
    "--by",
    callback=word(GROUPINGS),
    metavar="WORD",
    help=f"One line per {', '.join(GROUPINGS)}.  [default: all runs together]",
)
@click.option(
    "--filter",
    "filters",
    multiple=True,
    metavar="COLUMN=TEXT",
    help="Only rows whose cell is that number or holds that text; may be given again.",
)
@click.option("--rows", "rows_path", metavar="FILE", help="Write every row with its prediction.")
@click.option("--plot", "plot_path", metavar="FILE", help="Write a scatter plot, one HTML file.")
@click.option(
    "--stack",
    metavar="NAME",
    help="Predict every run with this software stack, or with the one in a .toml file.  "
    "[default: what each run's framework stands for]",
)
@json_option
def command(
    runs: str | None,
    by: str | None,
    filters: tuple[str, ...],
    rows_path: str | None,
    plot_path: str | None,
    stack: str | None,
    as_json: bool,
) -> int:
    """Predict every run of a table, and compare with what was measured.

    Without RUNS.csv: the table of published runs that comes with Meshwright. The predictor sees
    what was chosen for a run, never what came out.
    """
    from meshwright.cost.stacks import find_stack
    from meshwright.validation import RowPredictor, published_runs, read_runs, validate
    from meshwright.validation.filters import keep

    software = find_stack(stack) if stack is not None else None
    table = read_runs(runs if runs is not None else published_runs())
    chosen = keep(table, filters)
    if not chosen:
        raise UsageError(
            "no row is left to compare" if table else "the table has no rows",
            where="--filter" if filters else str(runs),
            allowed="conditions that at least one row meets" if filters else "at least one row",
            fix="drop a condition" if filters else "check the file",
        )
    processes = min(os.cpu_count() or 1, MAX_PROCESSES)
    with counting_bar("predicting") as advance:
        found = validate(
            chosen,
            by=by,
            predictor=RowPredictor(software),
            processes=processes,
            on_rows=lambda done: advance(done, len(chosen)),
        )
    written = _write_files(found, by or "source", rows_path=rows_path, plot_path=plot_path)
    from meshwright.explain.validation_table import print_validation, validation_json

    if as_json:
        print_json(validation_json(found))
    else:
        print_validation(found, written=written)
    return 0


def _write_files(
    found: Validation, by: str, *, rows_path: str | None, plot_path: str | None
) -> list[str]:
    """Write what was asked for; the sentences on it."""
    written = []
    if rows_path is not None:
        from meshwright.validation.report import rows_csv

        write_text(rows_path, rows_csv(found.outcomes), flag="--rows")
        written.append(f"Every row with its prediction: {rows_path}")
    if plot_path is not None:
        from meshwright.validation import GROUPINGS as GROUP_OF
        from meshwright.validation.plot import scatter_html

        group: Callable[[Run], str] = GROUP_OF[by]
        write_text(plot_path, scatter_html(found.outcomes, group=group), flag="--plot")
        written.append(f"Scatter plot: {plot_path}")
    return written
