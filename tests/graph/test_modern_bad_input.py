"""Wrong and lacking fields of today's families: a message, never a traceback."""

from __future__ import annotations

import copy
import warnings
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from meshwright.errors import MeshwrightError, ModelError
from meshwright.graph.sources.huggingface import load_huggingface

from .modern import cases  # noqa: TID252 - importlib mode

#: Small ones cover every family and are quick to build.
SMALL = tuple(name for name in cases() if "tiny" in name)
BAD: tuple[Any, ...] = (
    None,
    True,
    -1,
    0,
    1,
    3,
    7.5,
    float("nan"),
    float("inf"),
    10**40,
    2**31 + 1,
    "12",
    "",
    [],
    [0, 1],
    ["full_attention"],
    {},
    {"rope_type": "yarn"},
)


def paths(config: dict[str, Any], prefix: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """Paths of all fields, nested ones too."""
    found: list[tuple[str, ...]] = []
    for key, value in config.items():
        found.append((*prefix, key))
        if isinstance(value, dict):
            found += paths(value, (*prefix, key))
    return found


def load_or_explain(config: dict[str, Any]) -> None:
    """Loads, or raises an error for users; an assumption may be told."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        error = None
        try:
            count = load_huggingface(config, name="mutated").parameter_count()
        except MeshwrightError as raised:
            error = raised
    if error is None:
        assert count > 0
    else:
        assert error.what
        assert error.where


@given(data=st.data())
@settings(max_examples=400)
def test_a_changed_field_loads_or_explains(data: st.DataObject) -> None:
    config = copy.deepcopy(cases()[data.draw(st.sampled_from(SMALL))]["config"])
    for _ in range(data.draw(st.integers(1, 3))):
        *parents, last = data.draw(st.sampled_from(paths(config)))
        target = config
        for parent in parents:
            target = target[parent]
        if data.draw(st.booleans()):
            target[last] = copy.deepcopy(data.draw(st.sampled_from(BAD)))
        else:
            del target[last]
    load_or_explain(config)


@pytest.mark.parametrize("name", SMALL)
def test_each_field_alone_may_be_missing(name: str) -> None:
    config = cases()[name]["config"]
    for path in paths(config):
        changed = copy.deepcopy(config)
        target = changed
        for parent in path[:-1]:
            target = target[parent]
        del target[path[-1]]
        load_or_explain(changed)


@pytest.mark.parametrize(
    ("name", "field", "value", "names"),
    [
        ("tiny deepseek_v3 with biases", "kv_lora_rank", None, "kv_lora_rank"),
        ("tiny deepseek_v32", "q_lora_rank", None, "q_lora_rank"),
        ("tiny deepseek_v3 with biases", "num_experts_per_tok", 9, "num_experts_per_tok"),
        ("tiny deepseek_v4", "o_groups", 4, "o_groups"),
        ("tiny deepseek_v4", "compress_ratios", [0, 4], "compress_ratios"),
        ("tiny deepseek_v4", "compress_ratios", [0, 4, 5, 4, 4], "compress_ratios[2]"),
        ("tiny nemotron_h", "hybrid_override_pattern", "M*E-MX", "hybrid_override_pattern"),
        ("tiny nemotron_h", "hybrid_override_pattern", "M*", "hybrid_override_pattern"),
        ("tiny nemotron_h", "n_groups", 4, "n_groups"),
        ("tiny qwen3_next", "linear_num_value_heads", 5, "linear_num_value_heads"),
        ("tiny minimax", "layer_types", ["linear_attention"], "layer_types"),
        ("gpt-oss tiny", "num_key_value_heads", 4, "num_key_value_heads"),
    ],
)
def test_a_wrong_field_is_named(name: str, field: str, value: object, names: str) -> None:
    config = copy.deepcopy(cases()[name]["config"])
    config[field] = value
    with pytest.raises(ModelError) as raised:
        load_huggingface(config, name=name)
    assert names in raised.value.where
    assert raised.value.allowed
    assert raised.value.fix


def test_block_configs_are_checked_one_by_one() -> None:
    config = {
        "model_type": "nemotron-nas",
        "hidden_size": 96,
        "vocab_size": 211,
        "num_attention_heads": 8,
        "num_hidden_layers": 2,
        "block_configs": [
            {"attention": {"n_heads_in_group": 4}, "ffn": {"ffn_mult": 2.625}},
            {"attention": {"n_heads_in_group": 3}, "ffn": {"ffn_mult": 2.625}},
        ],
    }
    with pytest.raises(ModelError) as raised:
        load_huggingface(config, name="nas")
    assert "block_configs[1].attention.n_heads_in_group" in raised.value.where
    config["block_configs"] = [{"attention": {"no_op": True}}] * 2
    with pytest.raises(ModelError) as raised:
        load_huggingface(config, name="nas")
    assert "block_configs[0]" in raised.value.where
    config["block_configs"] = [{"attention": {"no_op": True}, "ffn": {"no_op": True}}] * 2
    with pytest.raises(ModelError):
        load_huggingface(config, name="nas")
