"""``meshwright plan``: what it prints, where, and with which exit code."""

from __future__ import annotations

import json
import math
import re
import shlex
import subprocess
import sys

import pytest

SMALL = ("plan", "llama-3.1-8b", "-c", "1x8xH100", "-b", "64", "-s", "4096")


@pytest.fixture(scope="module")
def small(run):
    return run(*SMALL, "--top", "3")


@pytest.fixture(scope="module")
def small_json(run):
    outcome = run(*SMALL, "--top", "3", "--json")
    assert outcome.code == 0, outcome.err
    return json.loads(outcome.out)


def numbers(value):
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return [found for each in value for found in numbers(each)]
    return [value] if isinstance(value, float | int) and not isinstance(value, bool) else []


def test_first_line_is_the_plan_in_a_sentence(small):
    assert small.code == 0
    sentence = small.out.split("\n\n")[0].replace("\n", " ")
    assert re.fullmatch(
        r"llama-3\.1-8b on 1x8xH100: .*data \d+.*, micro-batch \d+ × \d+, .*; [\d.]+ m?s per step, "
        r"[\d,]+ tokens/s per device, [\d.]+ % MFU, with [\d.]+ [GM]iB per device to spare\.",
        sentence,
    )


def test_every_section_is_there_and_nothing_is_wider_than_the_terminal(small):
    lines = small.out.splitlines()
    for title in ("Why", "Searched", "Assumed", "Next"):
        assert title in lines
    commands = lines.index("Next")
    assert max(map(len, lines[:commands])) <= 80
    assert not any(line.endswith(" ") for line in lines)
    assert "\x1b" not in small.out, "no colour where there is no terminal"


def test_the_commands_under_next_run_and_agree(small, run, tmp_path, monkeypatch, small_json):
    monkeypatch.chdir(tmp_path)
    commands = small.out.split("\nNext\n")[1].strip().splitlines()
    assert len(commands) == 2
    estimate, again = (shlex.split(line)[1:] for line in commands)
    outcome = run(*estimate, "--json")
    assert outcome.code == 0, outcome.err
    found = json.loads(outcome.out)["estimate"]
    assert found["strategy"] == small_json["best"]["strategy"]
    assert found["step_time_s"] == pytest.approx(small_json["best"]["step_time_s"], rel=1e-9)
    assert run(*again).code == 0
    saved = run("estimate", "--plan", "my-plan/plan.json", "--json")
    assert saved.code == 0, saved.err
    time_s = json.loads(saved.out)["estimate"]["step_time_s"]
    assert time_s == pytest.approx(small_json["best"]["step_time_s"], rel=1e-9)


def test_json_has_what_the_readme_promises(small_json):
    assert list(small_json) == [
        "schema_version",
        "kind",
        "summary",
        "model",
        "cluster",
        "workload",
        "stack",
        "best",
        "alternatives",
        "pareto",
        "lower_bound_s",
        "gap",
        "complete",
        "search_s",
        "candidates",
        "evaluated",
        "excluded",
        "assumptions",
    ]
    best = small_json["best"]
    for key in ("tensor", "pipeline", "context", "expert", "expert_tensor", "data"):
        assert best["strategy"][key] >= 1
    keys = ("micro_batch_size", "micro_batches", "virtual_stages", "schedule", "zero_stage")
    assert set(keys) <= set(best["strategy"])
    assert {"recompute", "sequence_parallel", "axis_order", "stages"} <= set(best["strategy"])
    assert len(small_json["alternatives"]) == 2


def test_json_adds_up(small_json):
    assert all(math.isfinite(number) for number in numbers(small_json))
    evaluated, excluded = small_json["evaluated"], small_json["excluded"]
    assert evaluated + sum(excluded.values()) == small_json["candidates"]
    for plan in (small_json["best"], *small_json["alternatives"]):
        strategy, time, memory = plan["strategy"], plan["time"], plan["memory"]
        assert strategy["num_devices"] == 8
        assert strategy["global_batch_size"] == 64
        assert sum(stage["num_layers"] for stage in strategy["stages"]) == 32
        parts = [v for k, v in time.items() if k not in {"step_s", "communication_s"}]
        assert sum(parts) - time["data_total_s"] == pytest.approx(plan["step_time_s"], rel=1e-9)
        assert memory["headroom_bytes"] == plan["headroom_bytes"] >= 0
        assert plan["step_time_low_s"] < plan["step_time_s"] < plan["step_time_high_s"]
    times = [plan["step_time_s"] for plan in (small_json["best"], *small_json["alternatives"])]
    assert times == sorted(times)
    assert small_json["gap"] == pytest.approx(times[0] / small_json["lower_bound_s"] - 1)


def test_the_same_request_gives_the_same_answer(run, small_json):
    again = json.loads(run(*SMALL, "--top", "3", "--json").out)
    assert {**again, "search_s": 0} == {**small_json, "search_s": 0}


@pytest.mark.parametrize(
    ("flags", "key", "allowed"),
    [
        (("--tp", "2"), "tensor", {2}),
        (("--tensor", "2,4"), "tensor", {2, 4}),
        (("--pp", "2"), "pipeline", {2}),
        (("--dp", "4"), "data", {4}),
        (("--cp", "2"), "context", {2}),
        (("--cp", "2", "--context-algorithm", "all-gather"), "context_algorithm", {"all_gather"}),
        (("--pp", "2", "--vpp", "4"), "virtual_stages", {4}),
        (("--micro-batch-size", "1"), "micro_batch_size", {1}),
        (("--zero", "3"), "zero_stage", {3}),
        (("--recompute", "full"), "recompute", {"full"}),
        (("--tp", "2", "--no-sequence-parallel"), "sequence_parallel", {False}),
        (("--sequence-parallel",), "sequence_parallel", {True}),
        (("--offload", "optimizer"), "offload", {"optimizer"}),
    ],
)
def test_a_flag_fixes_its_dimension(run, flags, key, allowed):
    outcome = run(*SMALL, *flags, "--json")
    assert outcome.code == 0, outcome.err
    result = json.loads(outcome.out)
    plans = (result["best"], *result["alternatives"])
    assert {plan["strategy"][key] for plan in plans} <= allowed


def test_axis_order_is_fixed(run):
    order = "tensor-data-context-pipeline"
    outcome = run(*SMALL, "--cp", "2", "--axis-order", order, "--json")
    assert json.loads(outcome.out)["best"]["strategy"]["axis_order"] == order.split("-")


def test_a_target_narrows_the_space(run):
    result = json.loads(run(*SMALL, "--target", "megatron", "--json").out)
    orders = {tuple(plan["strategy"]["axis_order"]) for plan in result["pareto"]}
    usual = ("tensor", "context", "data", "pipeline")
    assert orders <= {usual, ("tensor", "context", "pipeline", "data")}
    assert result["excluded"]["target"] > 0


def test_nothing_fits(run):
    outcome = run("plan", "llama-3.1-70b", "-c", "1x8xH100", "-b", "8", "-s", "4096")
    assert outcome.code == 3
    assert outcome.out == ""
    assert "does not fit on 1x8xH100" in outcome.err
    assert "GiB more than there is" in " ".join(outcome.err.split())
    assert len(outcome.err.splitlines()) <= 24


def test_nothing_fits_as_an_object(run):
    outcome = run("plan", "llama-3.1-70b", "-c", "1x8xH100", "-b", "8", "-s", "4096", "--json")
    assert outcome.code == 3
    error = json.loads(outcome.out)["error"]
    assert error["type"] == "InfeasibleError"
    assert set(error) == {"type", "what", "where", "allowed", "fix"}
    assert all(error.values())


def test_a_cancelled_search_prints_the_best_so_far(run):
    """A quarter of a second is too short for this space and long enough for some plan."""
    args = ("plan", "deepseek-v3", "-c", "128x8xH800", "-b", "3840", "-s", "4096")
    outcome = run(*args, "--time-limit", "0.25", "--json")
    if outcome.code == 2:  # a slow machine had found nothing yet
        assert json.loads(outcome.out)["error"]["where"] == "--time-limit"
        return
    result = json.loads(outcome.out)
    assert result["complete"] is (result["gap"] < 1e-9)


def test_a_process_of_its_own_says_the_same(repository, small):
    code = "import sys; from meshwright.cli import main; sys.exit(main())"
    done = subprocess.run(
        [sys.executable, "-c", code, *SMALL, "--top", "3"],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        cwd=repository,
    )
    assert done.returncode == 0
    assert done.stderr == ""
    assert re.sub(r"in [\d.]+ m?s:", "", done.stdout) == re.sub(r"in [\d.]+ m?s:", "", small.out)


def test_json_mode_does_not_load_rich():
    code = (
        "import sys; from meshwright.cli import main; code = main(sys.argv[1:]); "
        "print([name for name in sys.modules if name.partition('.')[0] == 'rich'], "
        "file=sys.stderr); sys.exit(code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *SMALL, "--json"],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.stderr.strip() == "[]"
