"""Coefficients that made the rows are found again; priors hold where rows say little."""

from __future__ import annotations

import sys
from dataclasses import replace

import pytest

from meshwright.calibration import PARAMETERS, Place, calibrate, leave_one_source_out
from meshwright.calibration import folds as folds_module
from meshwright.calibration.fit import MAX_ROWS_PER_SOURCE, thinned
from meshwright.calibration.parameters import FEW_ROWS, default_parameters
from meshwright.cost.stacks import find_stack, stack_names
from meshwright.errors import MissingExtraError, UsageError, WorkloadError


def after(found, name):
    return next(c.after for c in found.changes if c.name.partition("[")[0] == name)


def test_changed_coefficients_are_found_again_from_twenty_rows(rows):
    made = rows.timed(rows.sweep(20), family_efficiency=0.75, launch_s=110e-6)
    found = calibrate(rows.runs_of(made), held_out=False)
    assert [c.name for c in found.changes] == ["family_efficiency[A100]", "launch_s"]
    assert after(found, "family_efficiency") == pytest.approx(0.75, rel=0.04)
    assert after(found, "launch_s") == pytest.approx(110e-6, rel=0.05)
    assert found.before.mape > 0.15
    assert found.after.mape < 0.02


def test_one_row_that_is_far_off_does_not_decide(rows):
    factors = [1.0] * 9 + [4.0]
    made = rows.timed(rows.sweep(20), family_efficiency=0.75, launch_s=110e-6, factors=factors)
    found = calibrate(rows.runs_of(made), held_out=False)
    assert after(found, "family_efficiency") == pytest.approx(0.75, rel=0.08)


def test_rows_that_fit_change_nothing(rows):
    found = calibrate(rows.runs_of(rows.timed(rows.sweep(12))), held_out=False)
    for change in found.changes:
        assert change.after == pytest.approx(change.before, rel=1e-3)
    assert found.after.mape < 1e-3


def test_three_rows_that_disagree_leave_the_prior(rows):
    large = [{"hidden": 4096, "global_batch": 32 * (1 + i)} for i in range(3)]
    found = calibrate(rows.runs_of(rows.timed(large, factors=[1.5, 1 / 1.5, 1.0])), held_out=False)
    for change in found.changes:
        assert change.after == pytest.approx(change.before, rel=0.05)


def test_fewer_rows_stay_nearer_the_prior(rows):
    def moved(count):
        made = rows.timed(
            [{"hidden": 4096, "global_batch": 32 * (1 + i)} for i in range(count)], factors=[1.4]
        )
        found = calibrate(rows.runs_of(made), held_out=False)
        return 1.0 - after(found, "family_efficiency")

    assert 0.0 < moved(1) < moved(3) < moved(10) < 1.0 - 1 / 1.6


def test_the_same_rows_give_the_same_fit(rows):
    runs = rows.runs_of(rows.timed(rows.sweep(4), family_efficiency=0.9))
    assert calibrate(runs) == calibrate(runs)


def test_a_parameter_that_no_row_depends_on_is_left(rows):
    made = rows.timed([{**change, "tp": 1} for change in rows.sweep(6)])
    found = calibrate(
        rows.runs_of(made),
        parameters=["family_efficiency", "tensor_scale", "expert_hidden"],
        held_out=False,
    )
    assert found.idle == ("tensor_scale", "expert_hidden")
    assert [c.name for c in found.changes] == ["family_efficiency[A100]"]


def test_from_scratch_depends_on_no_fitted_value(rows):
    runs = rows.runs_of(rows.timed(rows.sweep(6), family_efficiency=0.9))
    names = ["family_efficiency", "launch_s"]
    found = calibrate(runs, from_scratch=True, parameters=names, held_out=False)
    neutral = {p.name: p.neutral for p in PARAMETERS}
    assert [c.before for c in found.changes] == [1.0, neutral["launch_s"]]
    assert not found.prior_fitted
    assert found.stack.coefficients.matrix_efficiency == neutral["matrix_efficiency"]
    assert found.stack.coefficients.tensor_hidden == 0.0  # what is 0 stays
    assert calibrate(runs, parameters=["launch_s"], held_out=False).prior_fitted


# ------------------------------------------------------------------------ cross-validation
def test_a_fold_is_predicted_by_a_fit_that_has_not_seen_it(rows, monkeypatch):
    seen = []
    real = folds_module.fit

    def spy(trials, runs):
        seen.append({run.quality.source for run in runs})
        return real(trials, runs)

    monkeypatch.setattr(folds_module, "fit", spy)
    runs = rows.runs_of(rows.timed(rows.sweep(9, sources=3)))
    found = calibrate(runs)
    assert found.held_out.scheme == "one source left out"
    everything = {"source 0", "source 1", "source 2"}
    assert [everything - sources for sources in seen] == [{f.name} for f in found.held_out.folds]
    assert sum(fold.rows for fold in found.held_out.folds) == 9
    assert found.held_out.time.mape < 0.01


def test_times_of_left_out_rows_change_no_fit_to_the_others(rows):
    runs = rows.runs_of(rows.timed(rows.sweep(9, sources=3), family_efficiency=0.9))
    spoilt = [
        replace(run, measured=replace(run.measured, iter_time_s=9.0 * run.step_s))
        if run.quality.source == "source 1"
        else run
        for run in runs
    ]
    clean, dirty = leave_one_source_out(runs), leave_one_source_out(spoilt)
    by_name = {fold.name: fold for fold in dirty.folds}
    for fold in clean.folds:
        same = fold.values == by_name[fold.name].values
        assert same == (fold.name == "source 1")


@pytest.mark.parametrize(
    ("count", "sources", "models", "scheme", "folds"),
    [
        (12, 3, 2, "one source left out", 3),
        (12, 2, 4, "one model left out", 4),
        (12, 1, 12, "some models left out", 8),
        (12, 1, 1, "a part of the configurations left out", 5),
        (2, 1, 1, "a part of the configurations left out", 2),
        (1, 1, 1, "nothing to leave out", 0),
    ],
)
def test_what_is_left_out(rows, count, sources, models, scheme, folds):
    runs = rows.runs_of(rows.sweep(count, sources=sources, models=models))
    found, parts = folds_module.folds_of(runs)
    assert (found, len(parts)) == (scheme, folds)
    if folds:
        assert sorted(run.line for part in parts for run in part.runs) == [r.line for r in runs]


def test_repeated_runs_of_one_configuration_share_a_fold(rows):
    runs = rows.runs_of(rows.sweep(4, models=1) * 2)
    _, parts = folds_module.folds_of(runs)
    for part in parts:
        assert len({run.inputs for run in part.runs}) * 2 == len(part.runs)


def test_tables_may_be_joined(rows):
    """Rows of two tables have the same line numbers."""
    first = rows.runs_of(rows.timed([{"source": "one"}, {"source": "two"}], factors=[1.2]))
    second = rows.runs_of(rows.timed([{"source": "three", "global_batch": 128}], factors=[1.2]))
    found = calibrate([*first, *second], parameters=["family_efficiency"])
    assert [fold.rows for fold in found.held_out.folds] == [1, 1, 1]
    assert after(found, "family_efficiency") < 1.0


def test_one_configuration_cannot_be_left_out(rows):
    assert calibrate(rows.runs_of([{}]), parameters=["launch_s"]).held_out is None


# ------------------------------------------------------------------------ rows and parameters
def test_a_source_with_many_rows_is_thinned_evenly(rows):
    runs = rows.runs_of([{"layers": 2 + i} for i in range(200)] + [{"source": "two"}] * 3)
    kept = thinned(runs)
    assert len(kept) == MAX_ROWS_PER_SOURCE + 3
    assert [run.line for run in kept[:3]] == [2, 7, 12]


@pytest.mark.parametrize(
    ("change", "options", "what"),
    [
        ({}, {"stack": "torchtitan"}, "no row is left"),
        ({}, {"device": "H100"}, "no row is left"),
        ({}, {"device": "no such"}, "no row is left"),
        ({"device_type": "Cray-1"}, {}, "no row is left"),
        ({"iter_time_s": ""}, {}, "no row is left"),
        ({}, {"parameters": ["launch"]}, "cannot be fitted"),
    ],
)
def test_refused(rows, change, options, what):
    with pytest.raises(UsageError) as caught:
        calibrate(rows.runs_of([change]), **options)
    assert what in caught.value.what
    assert caught.value.fix


def test_rows_of_several_kinds_must_be_chosen_from(rows):
    runs = rows.runs_of([{}, {"layers": 9}, {"device_type": "V100-32GB"}])
    with pytest.raises(UsageError) as caught:
        calibrate(runs)
    assert "megatron-2021 on A100 (2 rows)" in caught.value.allowed
    assert "--stack megatron-2021 --device A100" in caught.value.fix
    assert calibrate(runs, device="v100", parameters=["launch_s"]).family == "V100"
    assert calibrate(runs, device="A100-80GB", parameters=["launch_s"]).rows == 2


def test_an_unknown_stack_is_refused(rows):
    with pytest.raises(WorkloadError):
        calibrate(rows.runs_of([{}]), stack="nothing")


def test_without_scipy_the_extra_is_named(rows, monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy.optimize", None)
    with pytest.raises(MissingExtraError) as caught:
        calibrate(rows.runs_of([{}]), parameters=["launch_s"])
    assert "meshwright[learn]" in caught.value.fix


def test_few_rows_fit_what_every_run_depends_on():
    names = {"family_efficiency", "launch_s"}
    assert {p.name for p in default_parameters(1)} == names
    assert {p.name for p in default_parameters(FEW_ROWS)} == names
    assert len(default_parameters(FEW_ROWS + 1)) < len(default_parameters(1000)) < len(PARAMETERS)


@pytest.mark.parametrize("parameter", PARAMETERS, ids=lambda p: p.name)
def test_bounds_hold_what_is_shipped(parameter):
    assert 0.0 < parameter.low <= parameter.neutral <= parameter.high
    assert parameter.spread > 0.0
    for name in stack_names():
        coefficients = find_stack(name).coefficients
        if parameter.name.startswith("overlap_"):
            value = getattr(coefficients.overlap, parameter.name.removeprefix("overlap_"))
        else:
            value = getattr(coefficients, parameter.name)
        values = value.values() if parameter.place is Place.FAMILY else [value]
        assert all(v == 0.0 or parameter.low <= v <= parameter.high for v in values)
