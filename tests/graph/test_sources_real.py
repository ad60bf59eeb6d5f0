"""Real configurations as published, when the checkout has them beside it."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import pytest

from meshwright.graph.sources import load_model

#: Parameters as the model's page prints them, by name of the file.
PRINTED = {
    "meta-llama--Meta-Llama-3.1-8B": "8.03",
    "meta-llama--Meta-Llama-3.1-70B": "70.6",
    "meta-llama--Meta-Llama-3.1-405B": "406",
    "mistralai--Mixtral-8x7B-v0.1": "46.7",
    "Qwen--Qwen3-0.6B": "0.6",
    "Qwen--Qwen3-8B": "8.2",
    "Qwen--Qwen3-30B-A3B": "30.5",
    "Qwen--Qwen3-235B-A22B": "235",
}
#: One of them by heart, for checkouts that stand alone.
QWEN3_06B = {
    "model_type": "qwen3",
    "hidden_size": 1024,
    "intermediate_size": 3072,
    "num_hidden_layers": 28,
    "num_attention_heads": 16,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "vocab_size": 151936,
    "max_position_embeddings": 40960,
    "tie_word_embeddings": True,
}


@pytest.fixture(scope="module")
def folder(shared: Path | None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Configurations to read: the real ones, or the one by heart."""
    if shared is not None:
        return shared / "inputs" / "hf"
    alone = tmp_path_factory.mktemp("hf")
    (alone / "Qwen--Qwen3-0.6B.json").write_text(json.dumps(QWEN3_06B))
    return alone


def test_all_load_without_warning(folder: Path) -> None:
    files = sorted(folder.glob("*.json"))
    assert files
    for path in files:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            graph = load_model(path)
        assert graph.name == path.stem
        assert graph.parameter_count() > 10**8
        assert graph.active_parameter_count() <= graph.parameter_count()


def test_sizes_are_the_published_ones(folder: Path) -> None:
    for path in folder.glob("*.json"):
        if (printed := PRINTED.get(path.stem)) is not None:
            decimals = len(printed.partition(".")[2])
            count = load_model(path).parameter_count()
            assert f"{count / 10**9:.{decimals}f}" == printed


def test_the_same_text_and_path_give_the_same_model(folder: Path) -> None:
    for path in folder.glob("Qwen--Qwen3-0*.json"):
        from_text = load_model(path.read_text(encoding="utf-8"))
        assert from_text.runs == load_model(path).runs
