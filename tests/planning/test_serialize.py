"""``plan.json``: equal after a round trip, and a message for every file that is none."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import meshwright
from meshwright.errors import FileError
from meshwright.planning import estimate, plan
from meshwright.planning.serialize import (
    LIMIT_BYTES,
    SCHEMA_VERSION,
    dump_plan,
    load_plan,
    parse_plan,
    save_plan,
)
from meshwright.strategy import Recompute, RecomputeRun, Workload

WORK = Workload(global_batch_size=32, seq_length=2048)
CASES = {
    "dense": ("llama-3.1-8b", "1x8xH100"),
    "experts": ("mixtral-8x7b", "2x8xH100"),
    "latent attention": ("deepseek-v3", "64x8xH800"),
    "mixed cluster": ("llama-3.1-8b", "1x8xH100+1x8xAscend910B"),
    "vision": ("vit-h", "1x8xA100-80GB"),
    "encoder-decoder": ("t5-11b", "1x8xA100-80GB"),
}


@pytest.fixture(scope="module")
def small():
    return plan("llama-3.1-8b", "1x8xH100", WORK, top=1).best


@pytest.fixture(scope="module")
def text(small):
    return dump_plan(small)


@pytest.mark.parametrize("case", CASES)
def test_a_saved_plan_is_equal_when_loaded(case, tmp_path):
    model, cluster = CASES[case]
    work = Workload(global_batch_size=512, seq_length=256 if case == "vision" else 512)
    best = plan(model, cluster, work, top=1).best
    path = save_plan(best, tmp_path / "new" / "folder")
    loaded = load_plan(path)
    assert loaded == best
    assert type(loaded.strategy.stages) is tuple
    assert load_plan(path.parent) == best, "the folder will do"


def test_a_strategy_that_is_not_uniform_comes_back(small):
    strategy = small.strategy
    stage = strategy.stages[0]
    runs = (RecomputeRun(count=5, mode=Recompute.FULL), RecomputeRun(count=27, mode=Recompute.NONE))
    mixed = replace(strategy, stages=(replace(stage, recompute=runs),))
    other = estimate(small.model, small.cluster, small.workload, mixed)
    assert parse_plan(dump_plan(other), where="x") == other != small


def test_a_loaded_plan_is_estimated_alike(small, text):
    loaded = parse_plan(text, where="x")
    again = estimate(loaded.model, loaded.cluster, loaded.workload, loaded.strategy)
    step_s = again.prediction.step_time_s
    assert step_s == pytest.approx(small.prediction.step_time_s, rel=1e-9)
    peak = again.prediction.peak_memory_bytes
    assert peak == pytest.approx(small.prediction.peak_memory_bytes, rel=1e-9)


def test_the_file_says_what_wrote_it(text):
    content = json.loads(text)
    assert content["schema_version"] == SCHEMA_VERSION
    assert content["tool"] == {"name": "meshwright", "version": meshwright.__version__}
    assert content["plan"]["model"]["name"] == "llama-3.1-8b"


def test_saving_is_deterministic(small, text):
    assert dump_plan(small) == text


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "no JSON"),
        ("{", "no JSON"),
        ("[]", "no JSON object"),
        ("{}", "schema_version None"),
        ("NaN", "no JSON"),
        ('{"schema_version": 99}', "schema_version 99"),
        ('{"schema_version": true}', "schema_version True"),
        ('{"schema_version": 1}', "no plan that meshwright wrote"),
        ('{"schema_version": 1, "plan": {}}', "no plan that meshwright wrote"),
        ("[" * 100_000, "no JSON"),
        ('{"schema_version": ' + "9" * 5000 + "}", "no JSON"),
    ],
)
def test_what_is_no_plan(content, words, tmp_path):
    path = tmp_path / "plan.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(FileError, match=words) as caught:
        load_plan(path)
    assert str(path) in caught.value.where
    assert caught.value.fix


def test_truncated(text, tmp_path):
    path = tmp_path / "plan.json"
    path.write_text(text[: len(text) // 2], encoding="utf-8")
    with pytest.raises(FileError, match="no JSON"):
        load_plan(path)


def test_missing_binary_and_huge_files(tmp_path):
    with pytest.raises(FileError):
        load_plan(tmp_path / "none.json")
    with pytest.raises(FileError):
        load_plan(tmp_path)
    binary = tmp_path / "binary.json"
    binary.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(FileError, match="UTF-8"):
        load_plan(binary)
    huge = tmp_path / "huge.json"
    with huge.open("wb") as stream:
        stream.truncate(LIMIT_BYTES + 1)
    with pytest.raises(FileError, match="too large"):
        load_plan(huge)


def test_a_folder_that_cannot_be_made(small, tmp_path):
    (tmp_path / "file").write_text("", encoding="utf-8")
    for folder in (tmp_path / "file" / "below", tmp_path / "file", "nul\0"):
        with pytest.raises(FileError, match="cannot be written"):
            save_plan(small, folder)


@pytest.mark.parametrize("count", [-1, 0, 10**18, 10**30])
@pytest.mark.parametrize("run", [0, 1, 2])
def test_absurd_counts_are_not_unfolded(text, run, count):
    content = json.loads(text)
    content["plan"]["model"]["runs"][run]["count"] = count
    with pytest.raises(FileError, match="no plan that meshwright wrote"):
        parse_plan(json.dumps(content), where="x")


def _paths(value, path=()):
    """Every place in a JSON value that can be spoilt."""
    yield path
    if isinstance(value, dict):
        for key, child in value.items():
            yield from _paths(child, (*path, key))
    elif isinstance(value, list):
        for index, child in enumerate(value[:3]):
            yield from _paths(child, (*path, index))


@given(data=st.data())
def test_a_spoilt_file_is_a_message_or_still_a_plan(text, data):
    content = json.loads(text)
    place = data.draw(st.sampled_from(list(_paths(content["plan"]))[1:]))
    junk = st.sampled_from([None, -1, 0, 1e300, 10**30, "", "x", [], {}, True, [[]]])
    holder = content["plan"]
    for step in place[:-1]:
        holder = holder[step]
    if data.draw(st.booleans()) and isinstance(holder, dict):
        del holder[place[-1]]
    else:
        holder[place[-1]] = data.draw(junk)
    with suppress(FileError):
        parse_plan(json.dumps(content), where="x")
