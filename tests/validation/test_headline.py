"""The published runs are predicted no worse than when the figures were written down."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from meshwright.validation import published_runs, read_runs, validate

FROZEN = json.loads((Path(__file__).parent / "headline.json").read_text(encoding="utf-8"))

#: How much worse an error may get, relative to itself.
TOLERANCE = 0.10


@pytest.fixture(scope="module")
def everything():
    (group,) = validate(read_runs(published_runs())).groups
    return group


def test_every_published_run_is_predicted(everything):
    assert everything.rows == FROZEN["rows"] == len(read_runs(published_runs()))
    assert everything.skipped == {}


@pytest.mark.parametrize("name", ["time.median_ape", "time.mape", "memory.mape"])
def test_no_error_grew_by_more_than_a_tenth(everything, name):
    part, figure = name.split(".")
    found = getattr(getattr(everything, part), figure)
    assert found <= FROZEN[name] * (1.0 + TOLERANCE), (
        f"{name} is {found:.4f}, it was {FROZEN[name]:.4f}; find out why, or, when it is meant, "
        "write the figures down anew with scripts/freeze_headline.py"
    )


def test_there_is_a_sweep_of_eight_and_every_kind_of_result(everything):
    assert everything.ranking.spearman_min is not None
    assert everything.memory.oom.oom_fits + everything.memory.oom.oom_oom > 0
