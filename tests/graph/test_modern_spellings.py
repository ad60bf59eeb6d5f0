"""The same model in the fields of its publisher and in those of the transformers library."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from meshwright.graph import ModelGraph, Split
from meshwright.graph.sources.huggingface import load_huggingface

from .modern import block_named, cases, expert_axis, model  # noqa: TID252 - importlib mode


def edited(name: str, *, drop: tuple[str, ...] = (), **fields: object) -> dict[str, Any]:
    """A recorded configuration with other fields."""
    config = copy.deepcopy(cases()[name]["config"])
    for field in drop:
        config.pop(field, None)
    return {**config, **fields}


def same(name: str, config: dict[str, Any]) -> bool:
    """Whether the configuration gives the recorded model, block by block."""
    graph: ModelGraph = load_huggingface(config, name=name)
    return graph.runs == model(name).runs


def test_kimi_linear_as_published() -> None:
    config = edited(
        "Kimi-Linear-48B-A3B",
        drop=("num_local_experts", "n_shared_experts", "num_experts_per_tok"),
        num_experts=256,
        num_shared_experts=1,
        num_experts_per_token=8,
        moe_layer_freq=1,
        q_lora_rank=None,
    )
    assert same("Kimi-Linear-48B-A3B", config)


def test_mimo_v2_flash_as_published() -> None:
    windowed = [int(i != 0 and (i + 1) % 6 != 0) for i in range(48)]
    config = edited(
        "MiMo-V2-Flash",
        hybrid_layer_pattern=windowed,
        moe_layer_freq=[0] + [1] * 47,
        n_shared_experts=None,
        swa_num_key_value_heads=8,
        sliding_window=128,
        sliding_window_size=128,
    )
    assert same("MiMo-V2-Flash", config)


def test_minimax_m1_as_published() -> None:
    config = edited(
        "MiniMax-Text-01",
        drop=("layer_types",),
        model_type="minimax_m1",
        attn_type_list=([0] * 7 + [1]) * 10,
        shared_intermediate_size=0,
    )
    assert same("MiniMax-Text-01", config)


@pytest.mark.parametrize("name", ["Qwen2.5-VL-7B", "tiny qwen2_vl"])
def test_early_vision_models_have_flat_text_fields(name: str) -> None:
    config = copy.deepcopy(cases()[name]["config"])
    text = config.pop("text_config")
    text.pop("model_type")
    vision = config["vision_config"]
    vision["in_chans"] = vision.pop("in_channels")
    assert same(name, {**text, **config})


def test_nemotron_by_names_of_layers() -> None:
    names = {"M": "linear_attention", "E": "moe", "*": "full_attention", "-": "mlp"}
    letters = cases()["tiny nemotron_h"]["config"]["hybrid_override_pattern"]
    config = edited(
        "tiny nemotron_h",
        drop=("hybrid_override_pattern", "num_hidden_layers"),
        layers_block_type=[names[letter] for letter in letters],
    )
    assert same("tiny nemotron_h", config)


def test_granite_by_names_of_layers() -> None:
    names = {"linear_attention": "mamba", "full_attention": "attention"}
    kinds = cases()["tiny granitemoehybrid"]["config"]["layer_types"]
    config = edited(
        "tiny granitemoehybrid",
        drop=("layer_types",),
        layers_block_type=[names[kind] for kind in kinds],
    )
    assert same("tiny granitemoehybrid", config)


def test_glm_5_shares_indexers_by_pattern_or_by_frequency() -> None:
    name = "tiny glm_moe_dsa sharing indexers"
    assert same(name, edited(name, drop=("indexer_types",), index_topk_pattern="FFSS"))
    every_third = edited(name, drop=("indexer_types",), index_topk_freq=3)
    # Two layers lead, then one in three: the fourth layer shares, as the third does.
    assert same(name, every_third)
    shared = block_named(model(name), "moe_decoder")
    assert any(tensor.name == "index_key.weight" for tensor in shared.parameters)


def test_a_lite_model_without_compressed_queries() -> None:
    with_null = edited("DeepSeek-V2-Lite", q_lora_rank=None)
    without = edited("DeepSeek-V2-Lite", drop=("q_lora_rank",))
    assert same("DeepSeek-V2-Lite", with_null)
    assert same("DeepSeek-V2-Lite", without)


def test_prediction_modules_come_only_when_the_configuration_has_them() -> None:
    for count in (0, 1, 3):
        config = edited("DeepSeek-V3", num_nextn_predict_layers=count)
        graph = load_huggingface(config, name="v3")
        modules = sum(run.count for run in graph.runs if run.block.auxiliary)
        assert modules == count
        assert graph.parameter_count() == model("DeepSeek-V3").parameter_count()
        said = [s for s in graph.assumptions if "further tokens" in s]
        assert len(said) == (1 if count else 0)


def test_deci_7b_differs_by_key_value_heads_only() -> None:
    config = {
        "model_type": "deci",
        "hidden_size": 96,
        "vocab_size": 211,
        "num_attention_heads": 8,
        "num_hidden_layers": 3,
        "intermediate_size": 112,
        "num_key_value_heads_per_layer": [4, 1, 1],
    }
    graph = load_huggingface(config, name="deci")
    assert [run.count for run in graph.runs] == [1, 1, 2, 1]
    grouped, single = (2 * 96 * (96 + 12 * heads) for heads in (4, 1))
    layers = grouped + 2 * single + 3 * (3 * 96 * 112 + 2 * 96)
    assert graph.parameter_count() == layers + 2 * 211 * 96 + 96


@pytest.mark.parametrize("name", cases())
def test_experts_are_split_by_expert_and_by_width(name: str) -> None:
    for block in model(name).blocks:
        if not expert_axis(block):
            assert block.active_experts == 0
            continue
        assert block.active_experts > 0
        splits = {axis.split for axis in block.axes}
        assert {Split.EXPERT, Split.EXPERT_TENSOR} <= splits
