"""Calibration: fitting a software stack to measured runs."""

from __future__ import annotations

from meshwright.calibration.calibration import (
    Calibration,
    Change,
    calibrate,
    leave_one_source_out,
)
from meshwright.calibration.folds import CrossValidation, FoldResult
from meshwright.calibration.parameters import PARAMETERS, Parameter, Place

__all__ = [
    "PARAMETERS",
    "Calibration",
    "Change",
    "CrossValidation",
    "FoldResult",
    "Parameter",
    "Place",
    "calibrate",
    "leave_one_source_out",
]
