"""Validation: predictions beside measured training runs."""

from __future__ import annotations

from meshwright.validation.metrics import Group
from meshwright.validation.outcomes import Outcome, Predicted, RowPredictor, predict_runs
from meshwright.validation.problem import Problem, problem_of
from meshwright.validation.runs import Run, read_runs
from meshwright.validation.skips import SKIPS, RowSkippedError
from meshwright.validation.validation import GROUPINGS, Validation, published_runs, validate

__all__ = [
    "GROUPINGS",
    "SKIPS",
    "Group",
    "Outcome",
    "Predicted",
    "Problem",
    "RowPredictor",
    "RowSkippedError",
    "Run",
    "Validation",
    "predict_runs",
    "problem_of",
    "published_runs",
    "read_runs",
    "validate",
]
