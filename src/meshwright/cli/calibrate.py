"""``meshwright calibrate``: a software stack fitted to measured runs."""

from __future__ import annotations

from pathlib import Path

import click

from meshwright.cli.options import json_option
from meshwright.cli.output import print_json, write_text
from meshwright.cli.progress import counting_bar

_EPILOG = """\b
Examples:
  meshwright calibrate --measurements runs.csv --device H100 --stack megatron-core -o my-cluster
  meshwright plan llama-3.1-70b -c 32x8xH100 -b 1024 -s 8192 --stack my-cluster/stack.toml
  meshwright calibrate --measurements runs.csv --parameters family_efficiency,launch_s --json

\b
The file has the columns that `meshwright validate` reads; see docs/calibrate.md.
"""

FILE_NAME = "stack.toml"


@click.command("calibrate", epilog=_EPILOG)
@click.option(
    "--measurements", required=True, metavar="FILE", help="Table of runs with their times."
)
@click.option(
    "--stack", metavar="NAME", help="Only rows of this software.  [default: there is but one]"
)
@click.option(
    "--device",
    metavar="NAME",
    help="Only rows on this device or family.  [default: there is but one]",
)
@click.option(
    "--parameters",
    metavar="NAME,…",
    help="What to fit; an unknown name lists them all.  [default: what the rows can tell]",
)
@click.option(
    "--from-scratch",
    is_flag=True,
    help="Start from neutral values: for rows that the stack was fitted to.",
)
@click.option("-o", "--output", "folder", metavar="DIR", help="Write stack.toml into this folder.")
@json_option
def command(
    measurements: str,
    stack: str | None,
    device: str | None,
    parameters: str | None,
    from_scratch: bool,
    folder: str | None,
    as_json: bool,
) -> int:
    """Fit a software stack on a device family to measured runs.

    Of each row the fit sees what was chosen for the run, and its time. Prints what changed, the
    error before and after, and the error on rows that a fit has not seen.
    """
    from meshwright.calibration import calibrate
    from meshwright.validation import read_runs

    runs = read_runs(measurements)
    with counting_bar("fitting") as advance:
        found = calibrate(
            runs,
            stack=stack,
            device=device,
            parameters=None if parameters is None else parameters.split(","),
            from_scratch=from_scratch,
            origin=Path(measurements).name,
            on_fit=advance,
        )
    path = None
    if folder is not None:
        path = str(Path(folder) / FILE_NAME)
        write_text(path, found.text, flag="-o", make_folder=True)
    from meshwright.explain.calibration_table import calibration_json, print_calibration

    if as_json:
        print_json(calibration_json(found, path=path))
    else:
        print_calibration(found, path=path)
    return 0
