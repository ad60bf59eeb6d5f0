"""Rows whose times our own predictor made, with coefficients that the tests choose."""

from __future__ import annotations

from dataclasses import replace

import pytest

from meshwright.calibration.parameters import PARAMETERS, slots_of, with_values
from meshwright.cost.stacks import find_stack
from meshwright.validation import RowPredictor
from meshwright.validation.runs import parse_runs

COLUMNS = (
    *("source", "model", "arch", "layers", "hidden", "heads", "vocab", "seq_len", "device_type"),
    *("num_devices", "tp", "pp", "micro_batch", "global_batch", "precision", "framework"),
    *("iter_time_s", "fit_ready"),
)
ROW = {
    "source": "one",
    "model": "small",
    "arch": "gpt-dense",
    "layers": 8,
    "hidden": 1024,
    "heads": 16,
    "vocab": 51200,
    "seq_len": 1024,
    "device_type": "A100",
    "num_devices": 8,
    "tp": 1,
    "pp": 1,
    "micro_batch": 4,
    "global_batch": 64,
    "precision": "fp16",
    "framework": "Megatron-LM",
    "iter_time_s": 1.0,
    "fit_ready": "time",
}


def table(changes):
    rows = [{**ROW, **change} for change in changes]
    lines = [",".join(str(row[name]) for name in COLUMNS) for row in rows]
    return "\n".join((",".join(COLUMNS), *lines)) + "\n"


def runs_of(changes):
    return parse_runs(table(changes), where="runs.csv")


def sweep(count, *, sources=1, models=4):
    """Configurations from launch-bound to compute-bound."""
    return [
        {
            "source": f"source {index % sources}",
            "model": f"model {index % models}",
            "hidden": 2048 << (index % 3),
            "tp": 1 << (index // 3 % 3),
            "micro_batch": 1 << (index % 4),
            "global_batch": 64 << (index % 2),
        }
        for index in range(count)
    ]


def timed(changes, *, stack="megatron-2021", factors=None, **values):
    """The same rows, with the times that changed coefficients predict.

    ``family_efficiency=0.8`` is the value for the A100; ``factors`` multiplies times by row.
    """
    base = find_stack(stack)
    slots = slots_of(PARAMETERS, base.coefficients, family="A100", precisions=("fp16",))
    chosen = {s: values[s.parameter.name] for s in slots if s.parameter.name in values}
    predictor = RowPredictor(replace(base, coefficients=with_values(base.coefficients, chosen)))
    found = []
    for index, (change, run) in enumerate(zip(changes, runs_of(changes), strict=True)):
        seconds = predictor(run.inputs).prediction.step_time_s
        seconds *= factors[index % len(factors)] if factors else 1.0
        found.append({**change, "iter_time_s": repr(seconds)})
    return found


@pytest.fixture(scope="session")
def rows():
    """`rows.sweep`, `rows.timed`, `rows.runs_of`, `rows.table`."""

    class Rows:
        pass

    made = Rows()
    made.sweep, made.timed, made.runs_of, made.table = sweep, timed, runs_of, table
    return made
