"""``meshwright estimate``: one strategy, from flags or from a file."""

from __future__ import annotations

import json
import re

import pytest

GPT3 = ("gpt3-175b", "-c", "128x8xA100-80GB", "-b", "1536", "-s", "2048")
FIXED = ("--tp", "8", "--pp", "8", "--micro-batch-size", "1")


@pytest.fixture(scope="module")
def gpt3(run):
    return run("estimate", *GPT3, *FIXED)


def test_text(gpt3):
    assert gpt3.code == 0
    assert gpt3.out.startswith("gpt3-175b on 128x8xA100-80GB: tensor 8 with sequence parallelism")
    for words in ("Step time", "compute", "█", "Memory per device", "stage 1 of 8", "Why"):
        assert words in gpt3.out
    assert max(map(len, gpt3.out.splitlines())) <= 80


def test_defaults_are_said_to_be_defaults(gpt3):
    flat = " ".join(gpt3.out.split())
    assert "Decided by default: data 16, ZeRO stage 1, sequence parallelism on" in flat
    assert "micro-batch 1" not in flat.split("Decided by default")[1].split(".")[0]


def test_json(run):
    outcome = run("estimate", *GPT3, *FIXED, "--json")
    found = json.loads(outcome.out)
    assert found["kind"] == "estimate"
    estimate = found["estimate"]
    assert estimate["strategy"]["data"] == 16
    assert estimate["strategy"]["micro_batches"] == 96
    assert len(estimate["memory_per_stage"]) == len(estimate["strategy"]["stages"]) == 8
    assert estimate["fits"]
    assert estimate["peak_memory_bytes"] == max(
        stage["total_bytes"] for stage in estimate["memory_per_stage"]
    )


def test_every_flag_arrives(run):
    outcome = run(
        "estimate", "mixtral-8x7b", "-c", "4x8xH100", "-b", "64", "-s", "4096", "--tensor", "2",
        "--context", "2", "--pipeline", "2", "--virtual-stages", "2", "--data", "4",
        "--data-shard", "2", "--expert", "4", "--expert-tensor", "1", "--mbs", "2", "--zero", "2",
        "--recompute", "full", "--sequence-parallel", "--context-algorithm", "ulysses",
        "--offload", "optimizer", "--axis-order", "tensor-data-context-pipeline", "--json",
    )  # fmt: skip
    assert outcome.code in {0, 3}, outcome.err
    strategy = json.loads(outcome.out)["estimate"]["strategy"]
    del strategy["stages"]
    assert strategy == {
        "tensor": 2,
        "context": 2,
        "context_algorithm": "ulysses",
        "pipeline": 2,
        "virtual_stages": 2,
        "data": 4,
        "data_replicate": 2,
        "data_shard": 2,
        "expert": 4,
        "expert_tensor": 1,
        "micro_batch_size": 2,
        "micro_batches": 8,
        "global_batch_size": 64,
        "schedule": "interleaved",
        "zero_stage": 2,
        "sequence_parallel": True,
        "recompute": "full",
        "offload": "optimizer",
        "axis_order": ["tensor", "data", "context", "pipeline"],
        "num_devices": 32,
    }


def test_what_does_not_fit_is_printed_with_exit_code_3(run):
    args = ("estimate", "llama-3.1-70b", "-c", "1x8xH100", "-b", "8", "-s", "4096", "--tp", "8")
    outcome = run(*args)
    assert outcome.code == 3
    assert re.search(r"but [\d.]+ GiB per device are\s+lacking", outcome.out)
    assert "Memory does not fit" in outcome.out
    found = json.loads(run(*args, "--json").out)["estimate"]
    assert not found["fits"]
    assert found["headroom_bytes"] < 0


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("--tp", "3"), "tensor 3 × context 1 × pipeline 1 = 3 does not divide the 1,024 devices"),
        (("--tp", "8", "--dp", "8"), "tensor 8 × context 1 × pipeline 1 × data 8 = 64"),
        (("--mbs", "7"), "data 1,024 × micro-batch 7 = 7,168 does not divide"),
        (("--tp", "64"), "tensor degree 64 does not divide 96"),
        (("--pp", "2", "--ep", "2"), "expert degree 2 for a model without experts"),
        (("--zero", "1,2"), "2 values where one is wanted"),
        (("--axis-order", "tensor-data"), "does not name every axis once"),
        (("--tp", "-8"), "'-8' is no whole number"),
    ],
)
def test_wrong_products_print_every_factor(run, flags, words):
    outcome = run("estimate", *GPT3, *flags)
    assert outcome.code == 2
    assert words in " ".join(outcome.err.split())


def test_what_is_missing(run):
    outcome = run("estimate", "gpt2-xl", "-b", "8")
    assert outcome.code == 2
    assert "missing: --cluster, --seq-length" in outcome.err


def test_a_plan_and_flags_exclude_each_other(run):
    for extra in (("--tp", "8"), ("gpt2-xl",), ("--micro-batch-size", "1")):
        outcome = run("estimate", *extra, "--plan", "plan.json")
        assert outcome.code == 2
        assert "--plan" in outcome.err


@pytest.mark.parametrize("content", [None, "", "{", "[1]", '{"schema_version": 2}'])
def test_a_plan_that_is_none(run, tmp_path, content):
    path = tmp_path / "plan.json"
    if content is not None:
        path.write_text(content, encoding="utf-8")
    outcome = run("estimate", "--plan", str(path))
    assert outcome.code == 2
    assert "fix:" in outcome.err
