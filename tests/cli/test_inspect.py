"""``meshwright inspect``: it finds out what it is given."""

from __future__ import annotations

import json

import pytest

TOML = """
[[group]]
device = "H100"
nodes = 2
"""


def test_a_model(run):
    outcome = run("inspect", "llama-3.1-70b", "--seq-length", "4096")
    assert outcome.code == 0
    head = outcome.out.splitlines()[0]
    assert head == "llama-3.1-70b: 80 layers, 70.55B parameters, family llama."
    flat = " ".join(outcome.out.split())
    for words in (
        "Per token of a sequence of 4,096",
        "Activations per layer",
        "none selective full",
    ):
        assert words in flat


def test_a_model_as_an_object(run):
    found = json.loads(run("inspect", "llama-3.1-70b", "--json").out)
    assert found["kind"] == "model"
    assert found["parameters"] == 70_553_706_496
    assert [block["count"] for block in found["blocks"]] == [1, 80, 1]
    ops = found["blocks"][1]["ops"]
    assert {"name", "kind", "flops", "moved_bytes"} == set(ops[0])


def test_a_cluster(run):
    outcome = run("inspect", "4x8xH100")
    assert outcome.code == 0
    assert outcome.out.startswith("4x8xH100: 32 devices (32 H100 on 4 nodes).")
    assert "Sources\n  [1] " in outcome.out


def test_a_cluster_as_an_object(run):
    found = json.loads(run("inspect", "1x8xH100+1x8xAscend910B", "--json").out)
    assert found["kind"] == "cluster"
    assert [group["count"] for group in found["groups"]] == [8, 8]
    assert {level["level"] for level in found["levels"]} >= {"node", "boundary"}
    for device in found["device_types"]:
        assert all(figure["source"] for figure in device["figures"])


def test_files(run, tmp_path):
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"model_type": "llama", "hidden_size": 64}), encoding="utf-8")
    assert "where:" in run("inspect", str(config)).err
    missing = run("inspect", str(tmp_path / "no.toml"))
    assert missing.code == 2
    assert "no.toml" in missing.err
    broken = tmp_path / "broken.toml"
    broken.write_text("[[group", encoding="utf-8")
    assert run("inspect", str(broken)).code == 2


@pytest.mark.parametrize(
    ("subject", "words"),
    [
        ("llama-3.1-70", "did you mean llama-3.1-70b"),
        ("4x8xH10", "did you mean H100"),
        ("H100", "say how many, for example 1x8xH100"),
        ("0x8xH100", "0"),
        ("xyzzy", "is neither a model nor a cluster"),
        ("", "empty"),
    ],
)
def test_unknown(run, subject, words):
    outcome = run("inspect", subject)
    assert outcome.code == 2
    assert words in " ".join(outcome.err.split())


def test_a_cluster_has_no_sequence(run):
    outcome = run("inspect", "4x8xH100", "-s", "4096")
    assert outcome.code == 2
    assert "--seq-length" in outcome.err


def test_a_sequence_beyond_the_positions(run):
    assert run("inspect", "bert-base", "-s", "4096").code == 2
