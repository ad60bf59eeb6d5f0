"""Parameter counts of the classical families against transformers, and what was read."""

from __future__ import annotations

import json
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from meshwright.graph import BlockRole, Mask, ModelGraph, OpKind
from meshwright.graph.sources.huggingface import load_huggingface, registered

COUNTS = Path(__file__).parents[1] / "data" / "parameter_counts.json"


@cache
def cases() -> dict[str, dict[str, Any]]:
    record = json.loads(COUNTS.read_text(encoding="utf-8"))
    return {case["name"]: case for case in record["cases"]}


def model(name: str, **changes: object) -> ModelGraph:
    return load_huggingface({**cases()[name]["config"], **changes}, name=name)


@pytest.mark.parametrize("name", cases())
def test_count_equals_that_of_transformers(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert model(name).parameter_count() == cases()[name]["parameters"]


def test_every_case_has_a_registered_type() -> None:
    types = {case["config"]["model_type"] for case in cases().values()}
    assert types <= set(registered())


# Counts that transformers does not give: its own code for the family is gone, or it ties what
# the released weights do not.
@pytest.mark.parametrize(
    ("config", "count", "source"),
    [
        (
            {
                "model_type": "qwen",
                "hidden_size": 4096,
                "intermediate_size": 22016,
                "num_hidden_layers": 32,
                "num_attention_heads": 32,
                "kv_channels": 128,
                "vocab_size": 151936,
                "no_bias": True,
            },
            7_721_324_544,
            "weights of Qwen/Qwen-7B",
        ),
        (
            {
                "model_type": "chatglm",
                "hidden_size": 4096,
                "ffn_hidden_size": 13696,
                "num_layers": 28,
                "num_attention_heads": 32,
                "kv_channels": 128,
                "multi_query_attention": True,
                "multi_query_group_num": 2,
                "padded_vocab_size": 65024,
                "add_qkv_bias": True,
                "add_bias_linear": False,
                "rmsnorm": True,
            },
            6_243_584_000,
            "weights of THUDM/chatglm2-6b",
        ),
        (
            {
                "model_type": "internlm2",
                "hidden_size": 4096,
                "intermediate_size": 14336,
                "num_hidden_layers": 32,
                "num_attention_heads": 32,
                "num_key_value_heads": 8,
                "vocab_size": 92544,
                "bias": False,
                "tie_word_embeddings": False,
            },
            7_737_708_544,
            "weights of internlm/internlm2-7b",
        ),
        (
            {
                "model_type": "baichuan",
                "hidden_size": 4096,
                "intermediate_size": 11008,
                "num_hidden_layers": 32,
                "num_attention_heads": 32,
                "vocab_size": 125696,
                "tie_word_embeddings": False,
            },
            7_505_973_248,
            "weights of baichuan-inc/Baichuan2-7B-Base",
        ),
        (
            {
                "model_type": "t5",
                "d_model": 2048,
                "d_kv": 64,
                "d_ff": 5120,
                "num_layers": 24,
                "num_heads": 32,
                "vocab_size": 32128,
                "feed_forward_proj": "gated-gelu",
                "tie_word_embeddings": False,
            },
            2_849_757_184,
            "weights of google/flan-t5-xl",
        ),
    ],
    ids=lambda value: value["model_type"] if isinstance(value, dict) else None,
)
def test_count_of_released_weights(config: dict[str, Any], count: int, source: str) -> None:
    assert load_huggingface(config, name=source).parameter_count() == count


# -- masks, dropout, lengths -----------------------------------------------------------------


def masks(graph: ModelGraph) -> list[Mask | None]:
    """The mask of every layer, in order."""
    found = []
    for index in graph.sequence(BlockRole.LAYER):
        block = graph.blocks[index]
        found.append(next(op.mask for op in block.ops if op.kind is OpKind.ATTENTION))
    return found


def test_mistral_has_one_window_for_all() -> None:
    assert set(masks(model("mistral", sliding_window=7))) == {Mask(window=7)}
    assert set(masks(model("mistral", sliding_window=None))) == {Mask()}


def test_gemma_2_alternates_and_gemma_3_has_five_local_layers_of_six() -> None:
    two = masks(model("gemma-2-27b"))
    assert two[:4] == [Mask(window=4096), Mask(), Mask(window=4096), Mask()]
    three = masks(model("gemma-3-1b"))
    assert three[:7] == [Mask(window=512)] * 5 + [Mask()] + [Mask(window=512)]


def test_qwen_windows_start_late_and_only_when_asked() -> None:
    config = {"sliding_window": 9, "max_window_layers": 1}
    assert masks(model("qwen3", **config)) == [Mask()] * 3
    found = masks(model("qwen3", use_sliding_window=True, **config))
    assert found == [Mask(), Mask(window=9), Mask(window=9)]


def test_gpt_neo_alternates() -> None:
    assert masks(model("gpt-neo-1.3b"))[:2] == [Mask(), Mask(window=256)]
    plain = model("gpt-neo-1.3b", attention_types=[[["global"], 24]])
    assert set(masks(plain)) == {Mask()}


def test_layer_types_win_over_patterns() -> None:
    kinds = ["full_attention", "sliding_attention", "full_attention"]
    found = masks(model("olmo3", num_hidden_layers=3, layer_types=kinds, sliding_window=5))
    assert found == [Mask(), Mask(window=5), Mask()]


def test_encoders_see_both_ways() -> None:
    assert set(masks(model("bert-base"))) == {Mask(causal=False)}
    assert set(masks(model("vit-base"))) == {Mask(causal=False)}


def has_dropout(graph: ModelGraph) -> bool:
    return any("mask" in tensor.name for block in graph.blocks for tensor in block.tensors)


@pytest.mark.parametrize("name", ["gpt2", "bert-base", "t5-base", "opt-350m"])
def test_old_families_drop_unless_told_not_to(name: str) -> None:
    off = {
        "resid_pdrop": 0.0,
        "embd_pdrop": 0.0,
        "attn_pdrop": 0.0,
        "hidden_dropout_prob": 0.0,
        "attention_probs_dropout_prob": 0.0,
        "dropout_rate": 0.0,
        "dropout": 0.0,
        "attention_dropout": 0.0,
    }
    assert has_dropout(model(name))
    assert not has_dropout(model(name, **off))
    assert model(name, **off).parameter_count() == model(name).parameter_count()


def test_new_families_do_not_drop() -> None:
    assert not has_dropout(model("llama-3.1-70b"))
    assert has_dropout(model("llama-3.1-70b", attention_dropout=0.1))


def test_lengths() -> None:
    gpt = model("gpt2")
    assert (gpt.max_seq_length, gpt.default_seq_length) == (1024, 1024)
    llama = model("llama-3.1-70b")
    assert (llama.max_seq_length, llama.default_seq_length) == (131072, 8192)
    image = model("vit-base")
    assert (image.max_seq_length, image.default_seq_length) == (197, 197)
    roberta = model("roberta-base")
    assert roberta.max_seq_length == 512
    assert llama.vocab_size == 128256
    assert image.vocab_size is None


def test_images_fix_the_sequence() -> None:
    graph = model("vit-base")
    for block in graph.blocks:
        assert block.sizes(batch=1, seq_length=9999)["seq"] == 197
    assert graph.blocks[0].ops[0].kind is OpKind.CONV


def test_layers_fold() -> None:
    assert len(model("llama-3.1-70b").blocks) == 3
    assert [run.count for run in model("llama-3.1-70b").runs] == [1, 80, 1]
    assert len(model("gemma-3-1b").blocks) == 4
    assert model("t5-base").num_layers == 24
    assert model("gemma-3-27b").num_layers == 27 + 1 + 62


def test_what_was_assumed_is_said() -> None:
    assert model("llama-3.1-70b").assumptions == ()
    assert "0.25 times as many tokens" in model("t5-base").assumptions[0]
    assert "4096 patches" in model("gemma-3-27b").assumptions[0]


def test_classes_of_an_image_model_follow_its_labels() -> None:
    base = model("vit-base").parameter_count()
    labels = {str(i): f"class {i}" for i in range(10)}
    ten = model("vit-base", num_labels=None, id2label=labels).parameter_count()
    assert base - ten == 990 * 769


def test_local_layers_have_names_of_their_own() -> None:
    names = [block.name for block in model("gemma-2-27b").blocks]
    assert names == ["embedding", "local_decoder", "decoder", "head"]
    assert len({block.name for block in model("gemma-3-27b").blocks}) == 7
