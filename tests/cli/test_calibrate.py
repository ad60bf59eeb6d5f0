"""``meshwright calibrate``: what it prints and writes, and what it refuses."""

from __future__ import annotations

import json

import pytest

from meshwright.cost.stack_file import load_stack
from meshwright.cost.stacks import find_stack

HEAD = (
    "source,model,arch,layers,hidden,heads,vocab,seq_len,device_type,num_devices,tp,pp,"
    "micro_batch,global_batch,precision,framework,iter_time_s,fit_ready"
)
ROWS = (
    "one,small,gpt-dense,8,2048,16,51200,1024,A100,8,1,1,4,64,fp16,Megatron-LM,1.5,time",
    "two,small,gpt-dense,8,2048,16,51200,1024,A100,8,2,1,4,64,fp16,Megatron-LM,1.8,time",
    "three,large,gpt-dense,8,4096,32,51200,1024,A100,8,1,1,4,64,fp16,Megatron-LM,4.5,time",
    "three,small,gpt-dense,8,2048,16,51200,1024,Cray-1,8,1,1,4,64,fp16,Megatron-LM,1.5,time",
)
FAST = ("--parameters", "family_efficiency")


@pytest.fixture
def runs(tmp_path):
    path = tmp_path / "runs.csv"
    path.write_text("\n".join((HEAD, *ROWS)) + "\n", encoding="utf-8")
    return path


def test_an_object_says_which_error_is_in_sample(run, runs):
    outcome = run("calibrate", "--measurements", str(runs), *FAST, "--json")
    assert (outcome.code, outcome.err) == (0, "")
    found = json.loads(outcome.out)
    assert (found["stack"], found["family"], found["rows"]) == ("megatron-2021", "A100", 3)
    assert found["skipped"] == {"unknown_device": 1}
    assert [change["name"] for change in found["changes"]] == ["family_efficiency[A100]"]
    assert found["in_sample"]["mape"] < found["before"]["mape"]
    assert found["held_out"]["scheme"] == "one source left out"
    assert [fold["name"] for fold in found["held_out"]["folds"]] == ["one", "two", "three"]
    assert found["path"] is None


def test_tables_and_a_file_that_the_other_commands_take(run, runs, tmp_path):
    folder = tmp_path / "new" / "folder"
    outcome = run("calibrate", "--measurements", str(runs), *FAST, "-o", str(folder))
    assert (outcome.code, outcome.err) == (0, "")
    flat = " ".join(outcome.out.split())
    for words in (
        "megatron-2021 on A100: fitted to 3 rows of 3 sources",
        "after, in-sample: the rows it was fitted to",
        "cross-validated: one source left out",
        "--from-scratch starts without",
        "1 row not used",
    ):
        assert words in flat
    path = folder / "stack.toml"
    text = path.read_text(encoding="utf-8")
    assert "calibrated on 3 rows of runs.csv" in text
    assert str(tmp_path) not in text
    coefficients = load_stack(path).coefficients
    base = find_stack("megatron-2021").coefficients
    assert coefficients.family_efficiency["A100"] != base.family_efficiency.get("A100", 1.0)
    assert coefficients.launch_s == base.launch_s
    work = ("-c", "1x8xA100", "-b", "64", "-s", "1024", "--stack", str(path), "--json")
    assert json.loads(run("estimate", "gpt2-xl", *work).out)["stack"] == str(path)
    checked = json.loads(run("validate", str(runs), "--stack", str(path), "--json").out)
    again = json.loads(run("calibrate", "--measurements", str(runs), *FAST, "--json").out)
    for figure in ("median_ape", "mape", "bias"):
        assert checked["groups"][0]["time"][figure] == pytest.approx(again["in_sample"][figure])


@pytest.mark.parametrize(
    ("args", "what"),
    [
        (("--parameters", "colour"), "cannot be fitted"),
        (("--parameters", ""), "cannot be fitted"),
        (("--stack", "nothing"), "unknown software stack"),
        (("--stack", "mindspeed"), "no row is left"),
        (("--stack", "mine.toml"), "a calibration starts from a stack"),
        (("--device", "H100"), "no row is left"),
    ],
)
def test_wrong_requests(run, runs, args, what):
    outcome = run("calibrate", "--measurements", str(runs), *args)
    assert outcome.code == 2
    assert what in outcome.err
    assert outcome.err.startswith("error:   ")


def test_a_folder_that_cannot_be_made(run, runs):
    outcome = run("calibrate", "--measurements", str(runs), *FAST, "-o", str(runs / "below"))
    assert outcome.code == 2
    assert "cannot be written" in outcome.err


@pytest.mark.parametrize("text", ["", HEAD + "\n", "layers\n8\n", HEAD + "\n1,2\n", "\0"])
def test_wrong_files(run, runs, text):
    runs.write_text(text, encoding="utf-8")
    outcome = run("calibrate", "--measurements", str(runs))
    assert outcome.code == 2
    assert "where:" in outcome.err
    assert "Traceback" not in outcome.err


def test_a_missing_file(run, tmp_path):
    outcome = run("calibrate", "--measurements", str(tmp_path / "none.csv"), "--json")
    assert outcome.code == 2
    assert json.loads(outcome.out)["error"]["type"] == "FileError"


def test_validate_refuses_a_stack_that_is_not_there(run, runs):
    assert run("validate", str(runs), "--stack", "none.toml").code == 2
