"""Metrics by hand, on predictions that are given."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from meshwright.cost.breakdown import CostBreakdown, MemoryBreakdown
from meshwright.planning import Prediction
from meshwright.provenance import Estimate, Provenance, Source
from meshwright.units import GIB
from meshwright.validation.metrics import (
    OomMatrix,
    RankingMetrics,
    Sweep,
    TimeMetrics,
    group_of,
    spearman,
    sweeps_of,
)
from meshwright.validation.outcomes import Predicted, predict_runs
from meshwright.validation.skips import RowSkippedError
from meshwright.validation.targets import target_values
from meshwright.validation.validation import validate


def predicted(step_s, *, low=0.0, high=1e9, memory_gib=10.0, capacity_gib=80.0):
    """A prediction of one device: a fifth of the memory is the framework's, half of it reserve."""
    parts = dict.fromkeys((name for name in CostBreakdown.__dataclass_fields__), 0.0)
    framework = memory_gib / 5 * GIB
    memory = MemoryBreakdown(
        parameters_bytes=memory_gib * GIB - framework,
        gradients_bytes=0.0,
        optimizer_bytes=0.0,
        activations_bytes=0.0,
        temporaries_bytes=0.0,
        buffers_bytes=0.0,
        framework_bytes=framework,
        capacity_bytes=capacity_gib * GIB,
    )
    source = Source(kind=Provenance.ANALYTIC, text="given")
    return Predicted(
        prediction=Prediction(
            step_time=Estimate(value=step_s, low=low, high=high, source=source),
            tokens_per_s_per_device=1.0,
            mfu=0.5,
            hfu=0.5,
            time=CostBreakdown(**parts | {"compute_s": step_s}),
            memory=(memory,),
        ),
        stack="modern",
        cluster="1x8xA100-80GB",
        reserve_bytes=framework / 2,
    )


def outcomes_of(runs, answers):
    """Rows with these predictions, in order."""
    waiting = iter(answers)
    return predict_runs(runs, predictor=lambda _: next(waiting))


def test_time_by_hand(make_runs):
    runs = make_runs({"iter_time_s": 1}, {"iter_time_s": 2}, {"iter_time_s": 4, "tp": 1, "dp": 4})
    answers = [
        predicted(1.1, low=0.9, high=1.3),  # +10 %, inside
        predicted(1.0, low=0.9, high=1.1),  # -50 %, outside
        predicted(5.0, low=4.0, high=6.0),  # +25 %, on the edge: inside
    ]
    found = group_of("all", outcomes_of(runs, answers)).time
    assert found.median_ape == pytest.approx(0.25)
    assert found.mape == pytest.approx((0.10 + 0.50 + 0.25) / 3)
    assert found.bias == pytest.approx((1.1 * 0.5 * 1.25) ** (1 / 3) - 1)
    assert found.coverage == pytest.approx(2 / 3)


def test_memory_by_hand(make_runs):
    smi, reserve = "nvidia-smi GB", "max reserved/active GiB over ranks, as logged"
    cells = {"fit_ready": "memory", "oom": 0.0}
    runs = make_runs(
        {**cells, "mem_gb_per_device": 8, "mem_kind": smi},
        {**cells, "mem_gb_per_device": 10, "mem_kind": "peak GB per device (XLA/alpa allocator)"},
        {**cells, "mem_gb_per_device": 12, "mem_kind": reserve},
        {**cells, "oom": 1.0},
    )
    answers = [predicted(1.0), predicted(1.0), predicted(1.0), predicted(1.0, capacity_gib=9.0)]
    found = group_of("all", outcomes_of(runs, answers)).memory
    # 10 of 8; tensors are 8 of 10; with the reserve 9 of 12.
    assert found.mape == pytest.approx((0.25 + 0.2 + 0.25) / 3)
    assert found.worst_under == pytest.approx(0.25)
    assert found.oom == OomMatrix(ran_fits=3, oom_oom=1)


def test_outcomes_by_hand(make_runs):
    ran, out = {"fit_ready": "memory", "oom": 0.0}, {"fit_ready": "memory", "oom": 1.0}
    runs = make_runs(ran, ran, ran, out, out, {"fit_ready": "time"})
    fits, full = predicted(1.0), predicted(1.0, capacity_gib=1.0)
    found = group_of("all", outcomes_of(runs, [fits, full, full, fits, full, full])).memory
    assert found.oom == OomMatrix(ran_fits=1, ran_oom=2, oom_fits=1, oom_oom=1)
    assert found.mape is None


def test_ranking_by_hand(make_runs):
    """Three sweeps: the right pick, a wrong one, and a lone configuration that is none."""
    rows, answers = [], []
    for source, times in {
        "right": [(1.0, 2.0), (2.0, 3.0), (3.0, 5.0)],
        "wrong": [(1.0, 3.0), (2.0, 2.0)],
        "lone": [(1.0, 1.0)],
    }.items():
        for index, (said, measured) in enumerate(times):
            rows.append({"source": source, "iter_time_s": measured, "micro_batch": 2**index})
            answers.append(predicted(said))
    found = group_of("all", outcomes_of(make_runs(*rows), answers)).ranking
    assert found == RankingMetrics(sweeps=2, top1=0.5, regret_mean=0.25, regret_max=0.5)


def test_equal_inputs_are_one_configuration(make_runs):
    runs = make_runs(
        {"iter_time_s": 1.0}, {"iter_time_s": 3.0, "locator": "again"}, {"micro_batch": 4}
    )
    answers = [predicted(2.0), predicted(2.0), predicted(1.0)]
    (sweep,) = sweeps_of(outcomes_of(runs, answers))
    assert sweep == Sweep(predicted_s=(2.0, 1.0), measured_s=(2.0, 1.0))


@pytest.mark.parametrize(
    "other",
    [
        {"source": "another"},
        {"seq_len": 2048},
        {"global_batch": 64},
        {"layers": 16},
        {"num_devices": 16, "dp": 4},
        {"device_type": "H100"},
        {"framework": "torchtitan"},
        {"precision": "bf16"},
    ],
)
def test_only_the_strategy_varies_within_a_sweep(make_runs, other):
    runs = make_runs({}, {"micro_batch": 4}, other)
    assert [
        len(sweep.measured_s) for sweep in sweeps_of(outcomes_of(runs, [predicted(1.0)] * 3))
    ] == [2]


def test_rank_correlation_waits_for_eight_configurations(make_runs):
    rows = [{"iter_time_s": i + 1, "recompute": f"full:block:{i}"} for i in range(8)]
    runs = make_runs(*rows)
    said = [predicted(8.0 - i) for i in range(8)]
    assert group_of("all", outcomes_of(runs, said)).ranking.spearman_min == pytest.approx(-1.0)
    assert group_of("all", outcomes_of(runs[:7], said[:7])).ranking.spearman_min is None


def test_of_equal_predictions_the_slowest_is_our_pick():
    assert Sweep(predicted_s=(1.0, 1.0, 2.0), measured_s=(1.0, 1.5, 1.0)).regret == 0.5


def test_spearman_with_ties():
    # Ranks 1, 2.5, 2.5, 4 and 1, 2, 3, 4: 4.5 / sqrt(4.5 * 5).
    assert spearman([1, 2, 2, 3], [1, 2, 3, 4]) == pytest.approx(4.5 / (4.5 * 5.0) ** 0.5)
    assert spearman([1, 1, 1], [1, 2, 3]) == 0.0


@given(st.lists(st.floats(1e-3, 1e3), min_size=2, max_size=20, unique=True))
def test_rank_correlation_sees_order_only(values):
    assert spearman(values, [value**3 for value in values]) == pytest.approx(1.0)
    assert spearman(values, [-value for value in values]) == pytest.approx(-1.0)


@given(st.lists(st.tuples(st.floats(1e-3, 1e3), st.floats(1e-3, 1e3)), min_size=2, max_size=9))
def test_regret_is_zero_exactly_when_the_pick_is_the_best(times):
    sweep = Sweep(predicted_s=tuple(t[0] for t in times), measured_s=tuple(t[1] for t in times))
    assert sweep.regret >= 0.0
    perfect = replace(sweep, predicted_s=sweep.measured_s)
    assert perfect.regret == 0.0


def test_skipped_rows_are_counted_by_reason(make_runs):
    def refuse(inputs):
        raise RowSkippedError("unknown_device" if inputs.task == "a" else "batch_missing")

    rows = make_runs({"task": "a"}, {"task": "a"}, {"task": "b"}, {"fit_ready": ""})
    group = group_of("all", predict_runs(rows, predictor=refuse))
    assert (group.rows, group.time) == (0, TimeMetrics())
    assert group.skipped == {"unknown_device": 2, "batch_missing": 1, "not_fit_ready": 1}


def test_a_row_without_a_result_is_skipped(make_runs):
    (outcome,) = outcomes_of(make_runs({"iter_time_s": ""}), [predicted(1.0)])
    assert (outcome.skip, outcome.prediction) == ("no_result", None)


def test_groups_come_after_all_of_them_and_add_up(make_runs):
    runs = make_runs({"source": "b"}, {"source": "a"}, {"source": "b", "fit_ready": ""})
    found = validate(runs, by="source", predictor=lambda _: predicted(1.0))
    assert [group.name for group in found.groups] == ["all", "a", "b"]
    assert [group.rows for group in found.groups] == [2, 1, 1]
    assert [sum(group.skipped.values()) for group in found.groups] == [1, 0, 1]


def test_perfect_predictions_meet_every_target_but_the_interval(make_runs):
    rows = [{"iter_time_s": i + 1, "recompute": f"full:block:{i}", "oom": 0.0} for i in range(8)]
    more = {"fit_ready": "time+memory", "mem_gb_per_device": 10, "source": "vTrain, made up"}
    runs = make_runs(*({**row, **more} for row in rows))
    outcomes = outcomes_of(runs, [predicted(float(i + 1)) for i in range(8)])
    missed = [target.name for target, value in target_values(outcomes) if not target.met(value)]
    assert missed == ["runs inside the interval"]  # all are, which says that it is too wide
    assert {target.met(value) for target, value in target_values(())} == {None}


def test_targets_of_one_source_see_no_other(make_runs):
    wrong = [{"iter_time_s": 1, "source": "other"}, {"iter_time_s": 2, "tp": 1, "dp": 4}]
    runs = make_runs(*wrong, wrong[0] | {"tp": 1, "dp": 4, "iter_time_s": 9})
    outcomes = outcomes_of(runs, [predicted(2.0), predicted(1.0), predicted(1.0)])
    values = {target.name: value for target, value in target_values(outcomes)}
    assert values["mean regret, vTrain's sweeps"] is None
    assert values["mean error of step time"] > 0.0
