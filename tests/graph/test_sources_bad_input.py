"""Changed configurations of the classical families: a graph or a message, never a traceback."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from meshwright.errors import MeshwrightError, ModelError
from meshwright.graph.sources.huggingface import load_huggingface

COUNTS = Path(__file__).parents[1] / "data" / "parameter_counts.json"
#: One configuration per model type.
CONFIGS: dict[str, dict[str, Any]] = {
    case["config"]["model_type"]: case["config"]
    for case in json.loads(COUNTS.read_text(encoding="utf-8"))["cases"]
}
BAD: tuple[Any, ...] = (
    None,
    True,
    -1,
    0,
    3,
    7.5,
    float("nan"),
    10**40,
    2**31,
    100_001,
    "12",
    [],
    [0, 1],
    [[["global"], 2]],
    [["global", "x"]],
    ["full_attention"],
    ["BertForPreTraining", 3],
    {},
    {"0": "cat"},
)
#: Fields that only some configurations carry.
EXTRA = (
    "head_dim",
    "layer_types",
    "sliding_window",
    "attention_types",
    "num_key_value_heads",
    "mlp_only_layers",
    "architectures",
    "id2label",
    "text_config",
    "vision_config",
    "tie_word_embeddings",
    "attention_dropout",
)


def paths(config: dict[str, Any]) -> list[tuple[str, ...]]:
    """Paths of all fields, nested ones too, and of some that may be added."""
    found: list[tuple[str, ...]] = [(key,) for key in (*config, *EXTRA)]
    for key, value in config.items():
        if isinstance(value, dict):
            found += [(key, *rest) for rest in paths(value)]
    return found


def changed(config: dict[str, Any], path: tuple[str, ...], value: object) -> dict[str, Any]:
    """A copy with the field at ``path`` set."""
    key, *rest = path
    if not rest:
        return {**config, key: value}
    return {**config, key: changed(config[key], tuple(rest), value)}


def load_or_explain(config: dict[str, Any]) -> None:
    error = None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            count = load_huggingface(config, name="changed").parameter_count()
        except MeshwrightError as raised:
            error = raised
    if error is None:
        assert count > 0
    else:
        assert isinstance(error, ModelError)
        assert error.where
        assert error.allowed or error.fix
        assert len(str(error)) < 1500


@pytest.mark.parametrize("name", CONFIGS)
def test_each_field_with_each_bad_value(name: str) -> None:
    config = CONFIGS[name]
    # Every second value per field, the other half in the next family that has the field.
    family = sorted(CONFIGS).index(name)
    for i, path in enumerate(paths(config)):
        for value in BAD[(family + i) % 2 :: 2]:
            load_or_explain(changed(config, path, value))


@pytest.mark.parametrize("name", CONFIGS)
def test_each_field_left_out(name: str) -> None:
    for key in CONFIGS[name]:
        load_or_explain({k: v for k, v in CONFIGS[name].items() if k != key})


@settings(max_examples=300)
@given(st.data())
def test_several_fields_at_once(data: st.DataObject) -> None:
    config = CONFIGS[data.draw(st.sampled_from(sorted(CONFIGS)))]
    for path in data.draw(st.lists(st.sampled_from(paths(config)), max_size=4)):
        if len(path) == 1:
            config = changed(config, path, data.draw(st.sampled_from(BAD) | st.integers(1, 200)))
    load_or_explain(config)


@settings(max_examples=100)
@given(st.sampled_from(sorted(CONFIGS)), st.sampled_from(sorted(CONFIGS)))
def test_fields_of_one_family_under_the_type_of_another(fields: str, model_type: str) -> None:
    load_or_explain({**CONFIGS[fields], "model_type": model_type})
