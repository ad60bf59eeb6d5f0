"""Parameter counts of today's families: against transformers, and as published."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import pytest

from meshwright.graph import ModelGraph
from meshwright.graph.sources.huggingface import load_huggingface

from .modern import SHARED, cases, elements, lookup_only, model  # noqa: TID252 - importlib mode

GIGA = 10**9


@pytest.mark.parametrize("name", cases())
def test_count_equals_that_of_transformers(name: str) -> None:
    assert model(name).parameter_count() == cases()[name]["parameters"]


@pytest.mark.parametrize("name", cases())
def test_recorded_configurations_need_no_warning(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        load_huggingface(cases()[name]["config"], name=name)


def text_only(graph: ModelGraph) -> int:
    """Parameters without the vision tower."""
    return graph.parameter_count() - sum(
        run.count * run.block.parameter_count()
        for run in graph.runs
        if run.block.name.startswith("vision")
    )


#: Total as printed, from the model's own report or card: billions and decimals.
PUBLISHED = {
    "DeepSeek-V3": ("671", "arXiv 2412.19437, abstract"),
    "DeepSeek-V2": ("236", "arXiv 2405.04434, abstract"),
    "DeepSeek-V2-Lite": ("15.7", "arXiv 2405.04434, appendix B"),
    "DeepSeek-V4-Flash": ("284", "model card of DeepSeek-V4-Flash"),
    "GLM-4.5V": ("108", "weights of zai-org/GLM-4.5V"),
    "GLM-5": ("744", "model card of GLM-5"),
    "gpt-oss-20b": ("20.9", "arXiv 2508.10925, table 1 (20.91B)"),
    "gpt-oss-120b": ("116.8", "arXiv 2508.10925, table 1 (116.83B)"),
    "Qwen3-Next-80B-A3B": ("80", "model card of Qwen3-Next-80B-A3B"),
    "Qwen3.5-397B-A17B": ("397", "the model's name"),
    "Qwen3-VL-8B": ("8.8", "weights of Qwen/Qwen3-VL-8B-Instruct: 8.77B"),
    "Qwen2.5-VL-7B": ("8.3", "weights of Qwen/Qwen2.5-VL-7B-Instruct: 8.29B"),
    "Llama-4-Scout": ("109", "model card of Llama 4"),
    "Nemotron-3-Nano-30B-A3B": ("31.6", "model card of Nemotron 3 Nano"),
    "Nemotron-H-8B": ("8.1", "weights of nvidia/Nemotron-H-8B-Base-8K"),
    "MiniMax-Text-01": ("456", "arXiv 2501.08313, abstract"),
    "gemma-4-E2B": ("5.1", "model card of Gemma 4, with embeddings"),
    "gemma-4-E4B": ("8", "model card of Gemma 4, with embeddings"),
    "Kimi-Linear-48B-A3B": ("49", "weights of moonshotai/Kimi-Linear-48B-A3B-Base: 49B"),
    "Jamba-v0.1": ("52", "arXiv 2403.19887, section 3"),
    "MiMo-V2-Flash": ("309", "model card of MiMo-V2-Flash"),
    "MiMo-7B as qwen2": ("7.6", "weights of XiaomiMiMo/MiMo-7B-Base without the module"),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_total_is_the_published_one_to_the_printed_digit(name: str) -> None:
    printed, _source = PUBLISHED[name]
    decimals = len(printed.partition(".")[2])
    assert f"{model(name).parameter_count() / GIGA:.{decimals}f}" == printed


def test_totals_published_in_round_numbers() -> None:
    # "230B", "1T" and "400B" are round; the towers of Gemma 4 are counted apart on its card.
    assert round(model("MiniMax-M2.5").parameter_count() / GIGA, -1) == 230
    assert round(model("Kimi-K2 as deepseek_v3").parameter_count() / GIGA / 1000) == 1
    assert round(model("Llama-4-Maverick").parameter_count() / GIGA, -1) == 400
    assert f"{text_only(model('gemma-4-26B-A4B')) / GIGA:.1f}" == "25.2"
    assert f"{text_only(model('Qwen3.5-27B')) / GIGA:.0f}" == "27"


#: Active parameters as printed, and how many of the two tables (tokens, logits) the report
#: leaves out: a token meets one row of the first.
ACTIVE = {
    "DeepSeek-V2": ("21", 1),
    "DeepSeek-V3": ("37", 1),
    "DeepSeek-V4-Flash": ("13", 1),
    "Kimi-K2 as deepseek_v3": ("32", 1),
    "gpt-oss-20b": ("3.6", 1),
    "gpt-oss-120b": ("5.1", 1),
    "MiniMax-M2.5": ("10", 1),
    "Nemotron-3-Nano-30B-A3B": ("3.2", 1),
    "MiMo-V2-Flash": ("15", 1),
    "GLM-4.5": ("32", 2),
    "GLM-5": ("40", 2),
    "MiniMax-Text-01": ("45.9", 2),
}


@pytest.mark.parametrize("name", ACTIVE)
def test_active_parameters_are_the_published_ones(name: str) -> None:
    printed, tables = ACTIVE[name]
    graph = model(name)
    active = graph.active_parameter_count() - tables * lookup_only(graph)
    decimals = len(printed.partition(".")[2])
    assert f"{active / GIGA:.{decimals}f}" == printed


def test_nemotron_nano_counts_both_ways() -> None:
    """The card prints 3.2B active, 3.6B with the embeddings."""
    graph = model("Nemotron-3-Nano-30B-A3B")
    assert f"{graph.active_parameter_count() / GIGA:.1f}" == "3.6"


def test_towers_and_tables_are_left_out_of_the_active_counts_that_leave_them_out() -> None:
    # Llama 4: 17B active; Gemma 4: 3.8B, whose token table serves the logits too.
    scout = model("Llama-4-Scout")
    tower = scout.parameter_count() - text_only(scout)
    assert round((scout.active_parameter_count() - lookup_only(scout) - tower) / GIGA) == 16
    assert round((scout.active_parameter_count() - tower) / GIGA) == 17
    gemma = model("gemma-4-26B-A4B")
    tower = gemma.parameter_count() - text_only(gemma)
    assert f"{(gemma.active_parameter_count() - tower) / GIGA:.1f}" == "3.8"
    # Qwen3.5-397B-A17B.
    qwen = model("Qwen3.5-397B-A17B")
    assert round((qwen.active_parameter_count() - lookup_only(qwen)) / GIGA) == 17


def test_prediction_modules_stand_apart() -> None:
    """DeepSeek-V3: 671B, and 684.5B in the weights, which store the shared tables once more."""
    graph = model("DeepSeek-V3")
    with_modules = graph.parameter_count(include_auxiliary=True)
    assert f"{graph.parameter_count() / GIGA:.0f}" == "671"
    tables = 2 * lookup_only(graph)
    assert f"{(with_modules + tables) / GIGA:.2f}" == "684.49"
    assert graph.active_parameter_count(include_auxiliary=True) > graph.active_parameter_count()
    assert sum(run.count for run in graph.runs if run.block.auxiliary) == 1


def test_glm_45_counts_its_module_and_leaves_out_both_tables() -> None:
    """355B (arXiv 2508.06471, table 1: with the prediction layer, without embedding and logits)."""
    graph = model("GLM-4.5")
    counted = graph.parameter_count(include_auxiliary=True) - 2 * lookup_only(graph)
    assert f"{counted / GIGA:.0f}" == "355"


def test_a_prediction_module_by_hand() -> None:
    """Norms of hidden and token, 2h to h, a layer, a final norm; tables are shared."""
    graph = model("Qwen3.5-27B")
    config = dict(cases()["Qwen3.5-27B"]["config"])
    text = config["text_config"]
    hidden, heads, dim = text["hidden_size"], text["num_attention_heads"], text["head_dim"]
    kv, ffn = text["num_key_value_heads"], text["intermediate_size"]
    attention = hidden * dim * (2 * heads + 2 * kv) + heads * dim * hidden + 2 * dim
    layer = attention + 3 * hidden * ffn + 2 * hidden
    by_hand = 2 * hidden * hidden + 2 * hidden + layer + hidden
    auxiliary = graph.parameter_count(include_auxiliary=True) - graph.parameter_count()
    assert auxiliary == by_hand


def nas(**blocks: object) -> dict[str, object]:
    return {
        "model_type": "nemotron-nas",
        "hidden_size": 96,
        "vocab_size": 211,
        "num_attention_heads": 8,
        "num_hidden_layers": 5,
        "max_position_embeddings": 512,
        "block_configs": [
            {"attention": {"n_heads_in_group": 4}, "ffn": {"ffn_mult": 2.625}},
            {"attention": {"no_op": True}, "ffn": {"ffn_mult": 5.25}},
            {"attention": {"replace_with_linear": True}, "ffn": {"no_op": True}},
            {"attention": {"no_op": True}, "ffn": {"no_op": True}},
            {"attention": {"n_heads_in_group": 8}, "ffn": {"replace_with_linear": True}},
        ],
        **blocks,
    }


def test_layers_of_a_searched_architecture_by_hand() -> None:
    """Widths: int(2 x 2.625 x 96 / 3) = 168 and 336, rounded up to 256 and 512."""
    graph = load_huggingface(nas(), name="nas")
    hidden, dim = 96, 12
    ends = 2 * 211 * hidden + hidden
    grouped = 2 * hidden * hidden + 2 * hidden * 2 * dim
    single = 2 * hidden * hidden + 2 * hidden * dim
    layers = (
        (grouped + 3 * hidden * 256 + 2 * hidden)
        + (3 * hidden * 512 + hidden)
        + (hidden * hidden + hidden)
        + (single + hidden * hidden + 2 * hidden)
    )
    assert graph.parameter_count() == ends + layers
    assert graph.num_layers == 4
    assert any("do nothing" in sentence for sentence in graph.assumptions)


#: Names of the real configurations, and what their counts print as.
REAL = {
    "nvidia--Llama-3_3-Nemotron-Super-49B-v1": "50",
    "XiaomiMiMo--MiMo-7B-Base": "8",
    "moonshotai--Kimi-K2-Instruct": "1026",
    "MiniMaxAI--MiniMax-M2.5": "229",
    "zai-org--GLM-5": "744",
    "deepseek-ai--DeepSeek-V3": "671",
    "deepseek-ai--DeepSeek-V3.2": "672",
    "deepseek-ai--DeepSeek-V4-Flash": "284",
    "google--gemma-4-26B-A4B": "26",
    "meta-llama--Llama-4-Scout-17B-16E-Instruct": "109",
    "nvidia--NVIDIA-Nemotron-3-Nano-30B-A3B-BF16": "32",
    "openai--gpt-oss-20b": "21",
    "Qwen--Qwen3-VL-8B-Instruct": "9",
    "Qwen--Qwen3.5-27B": "27",
    "Qwen--Qwen3.5-397B-A17B": "397",
}


def real_configurations() -> dict[str, Path]:
    """Those of the list that are there."""
    return {path.stem: path for path in SHARED.glob("*.json") if path.stem in REAL}


def test_real_configurations_load_without_warning_and_with_the_size_of_their_name() -> None:
    """Read when present; the recorded cases above cover the same models without them."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name, path in real_configurations().items():
            graph = load_huggingface(json.loads(path.read_text(encoding="utf-8")), name=name)
            assert f"{graph.parameter_count() / GIGA:.0f}" == REAL[name], name


def test_pooled_and_grouped_projections_hold_what_their_matrices_hold() -> None:
    """V4: the grouped output projection is (groups x rank) x (heads x width / groups)."""
    graph = model("DeepSeek-V4-Flash")
    block = next(b for b in graph.blocks if b.name == "sparse_moe_decoder")
    assert [run.count for run in graph.runs if run.block.name == "window_moe_decoder"] == [2]
    assert elements(block, "attention_out_down.weight") == 8 * 1024 * (64 * 512 // 8)
    assert elements(block, "mlp_mix.weight") == (2 + 4) * 4 * 4 * 4096
