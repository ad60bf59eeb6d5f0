"""A stack in a user's file: read, and refused at its edges."""

from __future__ import annotations

import pytest

import meshwright
from meshwright.cost.coefficients import TABLES
from meshwright.cost.stack_file import KEYS, load_stack, parse_stack
from meshwright.cost.stacks import find_stack
from meshwright.errors import FileError, WorkloadError
from meshwright.provenance import Provenance

HEAD = '[mine]\nbase = "megatron-core"\n'
VALUES = HEAD + '[[mine.values]]\nkind = "measured"\ntext = "our cluster"\n'


def test_what_is_given_is_taken_and_the_rest_is_inherited():
    text = (
        VALUES + 'launch_us = 22\noverlap_tail = 0.5\nfamily_efficiency = { "H100:bf16" = 0.7 }\n'
    )
    stack, base = parse_stack(text, where="s.toml"), find_stack("megatron-core")
    found = stack.coefficients
    assert (stack.name, stack.title, stack.attention) == ("mine", "mine", base.attention)
    assert found.launch_s == pytest.approx(22e-6)
    assert found.overlap.tail == 0.5
    assert found.family_efficiency["H100:bf16"] == 0.7
    assert found.family_efficiency["H100:fp8"] == base.coefficients.family_efficiency["H100:fp8"]
    assert found.tensor_hidden == base.coefficients.tensor_hidden
    assert found.sources["launch_s"].kind is Provenance.MEASURED
    assert "as megatron-core" in found.sources["tensor_hidden"].text


def test_a_path_is_a_stack_and_its_name(tmp_path):
    path = tmp_path / "stack.toml"
    path.write_text(VALUES + "launch_us = 22\n", encoding="utf-8")
    stack = find_stack(str(path))
    assert stack == load_stack(path)
    assert stack.name == str(path)
    work = meshwright.Workload(global_batch_size=64, seq_length=2048)
    plan = meshwright.plan("llama-3.1-8b", "1x8xH100", work, stack=str(path)).best
    assert any(str(path) in text for text in plan.assumptions)
    assert meshwright.load_plan(meshwright.save_plan(plan, tmp_path)) == plan


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "0 entries"),
        ("a", "no TOML"),
        ("[" * 5000, "no TOML"),
        ("a = 1\n", "1 entries"),
        (HEAD + "[two]\n", "2 entries"),
        ("[mine]\n", "no base"),
        ("[mine]\nbase = 3\n", "no base"),
        ('[mine]\nbase = "other.toml"\n', "no base"),
        (HEAD + "title = 3\n", "title"),
        (HEAD + 'attention = "quick"\n', "attention"),
        (HEAD + "attention = []\n", "attention"),
        (HEAD + "colour = 3\n", "colour"),
        (HEAD + "values = 3\n", "no list"),
        (HEAD + "values = [3]\n", "no list"),
        (HEAD + "[[mine.values]]\nlaunch_us = 3\n", "no kind"),
        (HEAD + '[[mine.values]]\nkind = ["fitted"]\n', "no kind"),
        (HEAD + '[[mine.values]]\nkind = "fitted"\ntext = " "\n', "no text"),
        (VALUES + "launch_s = 3\n", "launch_s"),
        (VALUES + 'launch_us = "3"\n', "launch_us is 3"),
        (VALUES + "launch_us = true\n", "launch_us is True"),
        (VALUES + "launch_us = -1\n", "launch_us is -1"),
        (VALUES + "launch_us = inf\n", "launch_us is inf"),
        (VALUES + "launch_us = nan\n", "launch_us is nan"),
        (VALUES + f"launch_us = 1{'0' * 400}\n", "launch_us is 1000"),
        (VALUES + "gemm_half_scale = 0\n", "gemm_half_scale is 0"),
        (VALUES + "tensor_hidden = 1.5\n", "tensor_hidden is 1.5"),
        (VALUES + "family_efficiency = 1\n", "no table"),
        (VALUES + "family_efficiency = { H100 = 0 }\n", "family_efficiency is 0"),
    ],
)
def test_refused(tmp_path, text, what):
    path = tmp_path / "stack.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(FileError) as caught:
        find_stack(str(path))
    assert what in caught.value.what
    assert str(path) in caught.value.where
    assert caught.value.allowed
    assert caught.value.fix


def test_an_unknown_base_is_refused_with_the_nearest():
    with pytest.raises(WorkloadError) as caught:
        parse_stack('[mine]\nbase = "megatron-cor"\n', where="s.toml")
    assert caught.value.where == "s.toml: mine.base"
    assert "megatron-core" in caught.value.fix


def test_a_missing_file(tmp_path):
    with pytest.raises(FileError, match="no such software stack"):
        find_stack(str(tmp_path / "none.toml"))


@pytest.mark.parametrize("key", KEYS)
def test_every_coefficient_can_be_given(key):
    value = "{ H100 = 0.5 }" if key in TABLES else "0.5"
    stack = parse_stack(VALUES + f"{key} = {value}\n", where="s.toml")
    assert stack.coefficients != find_stack("megatron-core").coefficients
