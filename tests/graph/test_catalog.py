"""The catalogue: every entry loads, counts as published, and is found by its names."""

from __future__ import annotations

import json
import re
import warnings
from pathlib import Path

import pytest

from meshwright.graph import ModelGraph, catalog
from meshwright.graph.catalog import catalog_names, entry, find, spelling, unknown
from meshwright.graph.sources import load_model
from meshwright.units import GIGA, MEGA, TERA

from .modern import lookup_only  # noqa: TID252 - importlib mode

UNITS = {"M": MEGA, "B": GIGA, "T": TERA}


def as_printed(count: int, printed: str) -> str:
    """The count with the digits and the suffix of ``printed``."""
    match = re.fullmatch(r"\d+(?:\.(\d+))?([MBT])", printed)
    assert match, printed
    decimals, suffix = len(match[1] or ""), match[2]
    return f"{count / UNITS[suffix]:.{decimals}f}{suffix}"


@pytest.mark.parametrize("name", catalog_names())
def test_parameters_are_the_published_ones(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        graph = load_model(name)
    printed = entry(name).parameters.printed
    assert as_printed(graph.parameter_count(), printed) == printed


@pytest.mark.parametrize("name", [name for name in catalog_names() if entry(name).active])
def test_active_parameters_are_the_published_ones(name: str) -> None:
    graph, active = load_model(name), entry(name).active
    assert active is not None
    count = graph.active_parameter_count() - active.tables_left_out * lookup_only(graph)
    assert as_printed(count, active.printed) == active.printed


@pytest.mark.parametrize("name", catalog_names())
def test_every_figure_has_a_source(name: str) -> None:
    found = entry(name)
    assert found.name == name == name.casefold()
    assert found.source
    assert found.parameters.source
    assert found.active is None or found.active.source


@pytest.mark.parametrize("name", catalog_names())
def test_every_name_finds_its_entry(name: str) -> None:
    found = entry(name)
    for spelled in (name, name.upper(), name.replace("-", "_"), *found.aliases):
        assert find(spelled) is found


def test_sparse_models_publish_active_counts() -> None:
    def is_sparse(graph: ModelGraph) -> bool:
        return graph.active_parameter_count() < graph.parameter_count()

    sparse = [name for name in catalog_names() if is_sparse(load_model(name))]
    without = [name for name in sparse if entry(name).active is None]
    # Their reports print none that our count could be compared with; their notes say so.
    assert all(entry(name).notes for name in without)


def test_the_models_of_the_readme_are_there() -> None:
    promised = [
        "llama-2-7b",
        "llama-2-13b",
        "llama-2-70b",
        "llama-3.1-8b",
        "llama-3.1-70b",
        "llama-3.1-405b",
        "gpt2-xl",
        "gpt3-175b",
        "megatron-22b",
        "megatron-175b",
        "megatron-1t",
        "megatron-turing-530b",
        "bloom-176b",
        "opt-175b",
        "mixtral-8x7b",
        "mixtral-8x22b",
        "deepseek-v3",
        "qwen3-235b-a22b",
        "kimi-k2",
        "gpt-oss-120b",
        "bert-base",
        "bert-large",
        "vit-h",
    ]
    assert set(promised) <= set(catalog_names())
    assert len(catalog_names()) >= 40


def test_spellings() -> None:
    assert spelling("Org/Some_Model-1.5B-Instruct-HF") == spelling("some-model-1.5b")
    assert spelling("meta-llama/Meta-Llama-3-8B") == spelling("llama-3-8b")
    assert spelling("-hf") == "hf"
    assert spelling("Qwen/Qwen3-235B-A22B-Thinking-2507-FP8") == spelling("qwen3-235b-a22b")
    assert spelling("Mixtral-8x7B-Instruct-v0.1") == spelling("mixtral-8x7b")
    assert spelling("deepseek-v3") != spelling("deepseek")
    assert find("") is None
    assert find("chat") is None


def test_an_unknown_name_offers_canonical_names_once() -> None:
    error = unknown("Llama3.1_70B-v9")
    offered = error.fix.partition("?")[0].removeprefix("did you mean ").split(" or ")
    assert "llama-3.1-70b" in offered
    assert len(set(offered)) == len(offered)
    assert set(offered) <= set(catalog_names())
    assert "did you mean" not in unknown("☃").fix


def test_files_are_as_the_module_says() -> None:
    folder = Path(catalog.__file__).parent
    allowed = {"name", "aliases", "source", "parameters", "active", "notes", "config"}
    for path in folder.glob("*.json"):
        assert set(json.loads(path.read_text(encoding="utf-8"))) <= allowed
