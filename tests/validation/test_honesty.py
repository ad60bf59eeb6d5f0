"""The predictor sees no result: whatever the result columns hold, it says the same."""

from __future__ import annotations

import random
from dataclasses import fields, replace

import pytest

from meshwright.validation import published_runs, read_runs
from meshwright.validation.inputs import Architecture, Hardware, Parallel, RunInputs, Software
from meshwright.validation.outcomes import RowPredictor, predict_runs
from meshwright.validation.runs import Measured, Quality

RESULTS = {f.name for f in fields(Measured)}
INPUTS = {
    f.name for part in (Architecture, Hardware, Parallel, RunInputs, Software) for f in fields(part)
}


@pytest.fixture(scope="module")
def some_runs():
    """Every eighth row of the table that comes along: all sources."""
    return read_runs(published_runs())[::8]


def said(runs):
    return [RowPredictor()(run.inputs).prediction for run in runs]


def test_no_result_is_an_input():
    assert not RESULTS & INPUTS
    assert not any("tflops" in name or "mfu" in name or name.endswith("_s") for name in INPUTS)


def test_predictions_depend_on_no_result(some_runs):
    truth = said(some_runs)
    order = list(some_runs)
    random.Random(1).shuffle(order)
    permuted = [
        replace(run, measured=other.measured) for run, other in zip(some_runs, order, strict=True)
    ]
    blank = [replace(run, measured=Measured()) for run in some_runs]
    assert said(permuted) == truth
    assert said(blank) == truth


def test_predictions_depend_on_no_judgement_of_the_row(some_runs):
    unnamed = [replace(run, quality=Quality()) for run in some_runs]
    assert said(unnamed) == said(some_runs)


def test_predictions_depend_on_no_other_row(some_runs):
    together = {o.run.line: o.prediction for o in predict_runs(some_runs)}
    backwards = {o.run.line: o.prediction for o in predict_runs(some_runs[::-1])}
    alone = {run.line: p for run, p in zip(some_runs, said(some_runs), strict=True)}
    assert together == backwards == alone


def test_processes_change_nothing():
    runs = read_runs(published_runs())[:120]
    assert predict_runs(runs, processes=2) == predict_runs(runs)
