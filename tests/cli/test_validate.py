"""``meshwright validate``: what it prints and writes, and what it refuses."""

from __future__ import annotations

import csv
import json

import pytest

from meshwright.cli import validate
from meshwright.validation import GROUPINGS, SKIPS
from meshwright.validation.report import COLUMNS

HEAD = (
    "source,model,arch,layers,hidden,heads,vocab,seq_len,device_type,num_devices,tp,pp,"
    "micro_batch,global_batch,precision,framework,iter_time_s,mem_gb_per_device,oom,fit_ready"
)
ROWS = (
    "one,small,gpt-dense,8,1024,16,51200,1024,A100,8,1,1,4,64,fp16,Megatron-LM,1.0,,,time",
    "one,small,gpt-dense,8,1024,16,51200,1024,A100,8,2,1,4,64,fp16,Megatron-LM,1.2,,,time",
    "two,small,gpt-dense,8,1024,16,51200,1024,H100,8,1,1,4,64,bf16,NeMo,0.5,20,0,time+memory",
    "two,small,gpt-dense,8,1024,16,51200,1024,Cray-1,8,1,1,4,64,bf16,NeMo,0.5,,,time",
    "two,ResNet,cnn-resnet50,,,,,,H100,8,1,1,32,256,fp16,MXNet,0.5,,,time",
    "two,small,gpt-dense,8,1024,16,51200,1024,H100,8,1,1,4,64,bf16,NeMo,0.5,,,",
)


@pytest.fixture
def runs(tmp_path):
    path = tmp_path / "runs.csv"
    path.write_text("\n".join((HEAD, *ROWS)) + "\n", encoding="utf-8")
    return path


def test_groups_as_an_object(run, runs):
    outcome = run("validate", str(runs), "--by", "source", "--json")
    assert (outcome.code, outcome.err) == (0, "")
    found = json.loads(outcome.out)
    everything, one, two = found["groups"]
    assert [everything["name"], one["name"], two["name"]] == ["all", "one", "two"]
    assert (everything["rows"], one["rows"], two["rows"]) == (3, 2, 1)
    assert two["skipped"] == {"unknown_device": 1, "not_a_transformer": 1, "not_fit_ready": 1}
    assert set(everything) == {"name", "rows", "skipped", "time", "memory", "ranking"}
    assert set(everything["time"]) == {"median_ape", "mape", "bias", "coverage"}
    assert set(everything["memory"]) == {"mape", "worst_under", "oom"}
    assert everything["memory"]["oom"] == {
        "ran_fits": 1,
        "ran_oom": 0,
        "oom_fits": 0,
        "oom_oom": 0,
    }
    assert set(everything["ranking"]) == {
        "sweeps",
        "spearman_mean",
        "spearman_min",
        "top1",
        "regret_mean",
        "regret_max",
    }
    assert (everything["ranking"]["sweeps"], two["ranking"]["sweeps"]) == (1, 0)
    assert two["ranking"]["regret_mean"] is None
    assert {target["met"] for target in found["targets"]} <= {True, False, None}


def test_tables_say_why_rows_are_skipped_and_what_the_targets_are(run, runs):
    outcome = run("validate", str(runs), "--by", "framework")
    assert outcome.code == 0
    assert outcome.out.startswith("3 of 6 runs predicted\n")
    flat = " ".join(outcome.out.split())
    for words in ("Megatron-LM 2 ", "MXNet 0 ", "Targets", "at most 4 %", "not in the catalogue"):
        assert words in flat
    assert max(map(len, outcome.out.splitlines())) <= 80


def test_every_row_is_written_with_its_breakdown(run, runs, tmp_path):
    path = tmp_path / "rows.csv"
    outcome = run("validate", str(runs), "--rows", str(path))
    assert str(path) in "".join(outcome.out.split())
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert tuple(rows[0]) == COLUMNS
    assert [row["skip"] for row in rows[:3]] == ["", "", ""]
    assert {row["skip"] for row in rows[3:]} <= set(SKIPS)
    parts = [
        float(value)
        for name, value in rows[0].items()
        if name.startswith("time.") and name != "time.data_total_s"
    ]
    assert sum(parts) == pytest.approx(float(rows[0]["predicted_step_s"]), rel=1e-4)
    ratio = float(rows[0]["predicted_step_s"]) / float(rows[0]["measured_step_s"])
    assert float(rows[0]["time_ratio"]) == pytest.approx(ratio, rel=1e-3)


def test_the_plot_is_one_file_that_loads_nothing(run, runs, tmp_path):
    path = tmp_path / "plot.html"
    assert run("validate", str(runs), "--plot", str(path), "--by", "device").code == 0
    page = path.read_text(encoding="utf-8")
    assert page.count("<circle") == 3
    assert page.count("<button aria-pressed") == 2
    for outside in ("http:", "https:", "src=", "@import", "<link"):
        assert outside not in page


def test_names_are_escaped_in_the_plot(run, runs, tmp_path):
    runs.write_text(runs.read_text().replace("two,", "<script>two</script>,"))
    path = tmp_path / "plot.html"
    assert run("validate", str(runs), "--plot", str(path)).code == 0
    assert "<script>two" not in path.read_text()


def test_filters_choose_rows_by_what_was_chosen_for_them(run, runs):
    found = json.loads(run("validate", str(runs), "--filter", "tp=2", "--json").out)
    assert found["groups"][0]["rows"] == 1
    both = ("--filter", "device_type=h100", "--filter", "framework=nemo")
    found = json.loads(run("validate", str(runs), *both, "--json").out)
    assert (found["groups"][0]["rows"], found["groups"][0]["skipped"]) == (1, {"not_fit_ready": 1})


@pytest.mark.parametrize(
    ("args", "what"),
    [
        (("--filter", "tp"), "no condition"),
        (("--filter", "iter_time_s=1.0"), "no condition"),
        (("--filter", "tp=3"), "no row is left"),
        (("--filter", "tp=many"), "no row is left"),
        (("--by", "colour"), "not known here"),
        (("--rows", "no/such/folder/rows.csv"), "cannot be written"),
        (("--plot", "no/such/folder/plot.html"), "cannot be written"),
    ],
)
def test_wrong_requests(run, runs, args, what):
    outcome = run("validate", str(runs), *args)
    assert outcome.code == 2
    assert what in outcome.err
    assert outcome.err.startswith("error:   ")


@pytest.mark.parametrize("text", ["", HEAD + "\n", "layers\n8\n", HEAD + "\n1,2\n", "\0"])
def test_wrong_files(run, runs, text):
    runs.write_text(text, encoding="utf-8")
    outcome = run("validate", str(runs))
    assert outcome.code == 2
    assert "where:" in outcome.err
    assert "Traceback" not in outcome.err


def test_a_missing_file(run, tmp_path):
    outcome = run("validate", str(tmp_path / "none.csv"), "--json")
    assert outcome.code == 2
    assert json.loads(outcome.out)["error"]["type"] == "FileError"


def test_the_words_of_by_are_the_groupings():
    assert set(validate.GROUPINGS) == set(GROUPINGS)
