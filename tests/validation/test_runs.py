"""Reading tables of runs: every column in its place, every bad file a message."""

from __future__ import annotations

import pytest

from meshwright.errors import FileError
from meshwright.validation.runs import parse_runs, read_runs


def test_a_row_is_split_into_what_was_chosen_and_what_came_out(make_runs):
    (run,) = make_runs({"mem_gb_per_device": 40, "mem_kind": "nvidia-smi GB", "oom": 0.0})
    assert run.line == 2
    assert run.inputs.architecture.layers == 8
    assert run.inputs.architecture.tied_embeddings is True
    assert run.inputs.parallel.cp is None
    assert run.inputs.parallel.zero_stage == "0"
    assert run.measured.iter_time_s == 1.0
    assert run.measured.oom is False
    assert run.quality.fit_ready == "time"


def test_the_time_is_the_stated_one_else_that_of_the_tokens(make_runs):
    stated, derived, neither = make_runs(
        {"tokens_per_s_per_device": 1.0},
        {"iter_time_s": "", "tokens_per_s_per_device": 2048},
        {"iter_time_s": ""},
    )
    assert stated.step_s == 1.0
    assert derived.step_s == 32 * 1024 / (2048 * 8)
    assert neither.step_s is None


@pytest.mark.parametrize(
    ("cells", "step_s", "memory_gb", "ran_out"),
    [
        ({"fit_ready": "time"}, 1.0, None, None),
        ({"fit_ready": "memory"}, None, 40.0, False),
        ({"fit_ready": "time+memory"}, 1.0, 40.0, False),
        ({"fit_ready": ""}, None, None, None),
        ({"fit_ready": "time", "oom": 0}, 1.0, None, False),
        ({"fit_ready": "memory", "oom": 1, "mem_gb_per_device": ""}, None, None, True),
        ({"fit_ready": "time+memory", "check": "inconsistent"}, None, None, None),
        ({"fit_ready": "time", "check": "ok_time_only(mfu formula differs)"}, 1.0, None, None),
    ],
)
def test_a_row_is_used_for_what_its_table_says(make_runs, cells, step_s, memory_gb, ran_out):
    (run,) = make_runs({"mem_gb_per_device": 40, **cells})
    assert (run.step_s, run.memory_gb, run.ran_out) == (step_s, memory_gb, ran_out)


def test_a_table_without_that_column_uses_every_result(make_runs):
    (run,) = make_runs({"mem_gb_per_device": 40}, drop=("fit_ready", "check"))
    assert run.step_s == 1.0
    assert run.memory_gb == 40.0


def test_optional_columns_may_be_missing():
    needed = ("layers", "hidden", "heads", "device_type", "num_devices", "global_batch")
    text = ",".join(needed) + "\n8,1024,16,H100,8,32\n"
    (run,) = parse_runs(text, where="runs.csv")
    assert run.inputs.hardware.num_devices == 8
    assert run.step_s is None


@pytest.mark.parametrize(
    ("change", "line", "what"),
    [
        (lambda t: t.replace('"8.0"', '"eight"'), 2, "layers is 'eight'"),
        (lambda t: t.replace('"8.0"', '"8.5"'), 2, "layers is '8.5'"),
        (lambda t: t.replace('"8.0"', '"-8"'), 2, "layers is '-8'"),
        (lambda t: t.replace('"8.0"', '"1e400"'), 2, "layers is '1e400'"),
        (lambda t: t.replace('"80.0"', '"nan"'), 2, "device_mem_gb is 'nan'"),
        (lambda t: t.replace('"time"', '"time","more"'), 2, "another number of cells"),
        (lambda t: t.replace(',"time"', ""), 2, "another number of cells"),
        (lambda t: t.replace("layers,", "depth,"), 1, "no column 'layers'"),
        (lambda _: "", 1, "no column 'layers'"),
        (lambda t: t + '"made up" x,1\n', 3, "no CSV"),
        (lambda t: t + '"made up\n', 3, "no CSV"),
    ],
)
def test_a_bad_file_is_an_error_with_its_line(make_table, change, line, what):
    with pytest.raises(FileError) as caught:
        parse_runs(change(make_table({})), where="runs.csv")
    assert what in caught.value.what
    assert caught.value.where == f"runs.csv, line {line}"
    assert caught.value.allowed
    assert caught.value.fix


def test_a_missing_file_is_an_error(tmp_path):
    with pytest.raises(FileError, match="no such table of runs"):
        read_runs(tmp_path / "none.csv")


def test_a_quoted_cell_may_hold_commas_and_lines(make_runs):
    (run,) = make_runs({"source": "one, two\nthree"})
    assert run.quality.source == "one, two\nthree"
