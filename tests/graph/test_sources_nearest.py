"""Unknown model types: the nearest structure, said aloud."""

from __future__ import annotations

from typing import Any

import pytest

from meshwright.errors import AssumptionWarning, ModelError
from meshwright.graph import ModelGraph, OpKind
from meshwright.graph.sources import load_model

DENSE: dict[str, Any] = {
    "model_type": "brandnew",
    "hidden_size": 64,
    "intermediate_size": 112,
    "num_hidden_layers": 3,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "vocab_size": 320,
    "rms_norm_eps": 1e-6,
    "hidden_act": "silu",
}


def assumed(config: dict[str, Any], words: str) -> ModelGraph:
    """The graph, after a warning that has these words and is among the assumptions."""
    with pytest.warns(AssumptionWarning, match=words) as caught:
        graph = load_model(config)
    assert len(caught) == 1
    assert str(caught[0].message) in graph.assumptions
    return graph


def known(config: dict[str, Any], model_type: str) -> ModelGraph:
    return load_model({**config, "model_type": model_type})


def test_usual_names_are_a_decoder_like_llama() -> None:
    graph = assumed(DENSE, "Model type 'brandnew' is unknown; it was read as a decoder-only")
    assert graph.parameter_count() == known(DENSE, "llama").parameter_count()
    assert graph.family == "generic"


def test_no_type_at_all() -> None:
    config = {key: value for key, value in DENSE.items() if key != "model_type"}
    graph = assumed(config, "No model type is given; it was read as")
    assert graph.parameter_count() == known(DENSE, "llama").parameter_count()


def test_other_spellings() -> None:
    config = {
        "model_type": "brandnew",
        "dim": 64,
        "ffn_dim": 112,
        "n_layers": 3,
        "n_heads": 8,
        "n_kv_heads": 2,
        "vocab_size": 320,
    }
    graph = assumed(config, "no biases")
    assert graph.parameter_count() == known(DENSE, "llama").parameter_count()


def test_fields_that_say_biases_and_norms() -> None:
    plain = known(DENSE, "llama").parameter_count()
    graph = assumed({**DENSE, "use_qk_norm": True}, "norms on queries and keys")
    assert graph.parameter_count() == plain + 3 * 16
    graph = assumed({**DENSE, "qkv_bias": True}, r"rotary attention \(biases\)")
    assert graph.parameter_count() == plain + 3 * (64 + 2 * 16)
    graph = assumed({**DENSE, "hidden_act": "relu2"}, "a plain feed-forward layer")
    assert graph.parameter_count() == plain - 3 * 64 * 112
    graph = assumed({**DENSE, "tie_word_embeddings": True}, "logits shared with the token table")
    assert graph.parameter_count() == plain - 320 * 64
    layer_norms = {**DENSE, "rms_norm_eps": None, "layer_norm_eps": 1e-5}
    assert assumed(layer_norms, "layer norms").parameter_count() == plain + 7 * 64


def test_fields_of_experts() -> None:
    config = {
        **DENSE,
        "n_routed_experts": 6,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": 24,
        "n_shared_experts": 1,
        "first_k_dense_replace": 1,
    }
    graph = assumed(
        config, "6 gated experts of which a token visits 2 and a shared one of width 24"
    )
    dense = known(DENSE, "llama").parameter_count()
    per_layer = 6 * 64 + 7 * 3 * 64 * 24 - 3 * 64 * 112
    assert graph.parameter_count() == dense + 2 * per_layer
    assert graph.num_layers == 3


def test_experts_without_a_number_of_choices() -> None:
    with pytest.raises(ModelError, match="num_experts_per_tok"):
        load_model({**DENSE, "num_experts": 6})


def test_fields_of_latent_attention() -> None:
    config = {
        **DENSE,
        "kv_lora_rank": 16,
        "q_lora_rank": None,
        "qk_nope_head_dim": 8,
        "qk_rope_head_dim": 4,
        "v_head_dim": 8,
    }
    graph = assumed(config, "latent attention like DeepSeek V3")
    assert graph.parameter_count() == known(config, "deepseek_v3").parameter_count()


def test_fields_of_gpt_2() -> None:
    config = {"model_type": "x", "n_embd": 64, "n_layer": 2, "n_head": 4, "n_positions": 32}
    config |= {"vocab_size": 320}
    graph = assumed(config, "a decoder like GPT-2")
    assert graph.parameter_count() == known(config, "gpt2").parameter_count()


def test_a_model_around_a_language_model() -> None:
    text = {**DENSE, "model_type": "llama"}
    config = {"model_type": "brandnew_vl", "text_config": text, "vision_config": {"depth": 3}}
    graph = assumed(config, "its language model alone .the family 'llama'.")
    assert graph.parameter_count() == load_model(text).parameter_count()
    nested = {"model_type": "brandnew_vl", "text_config": DENSE}
    graph = assumed(nested, "its language model alone .a decoder-only")
    assert graph.parameter_count() == load_model(text).parameter_count()


def test_windows_are_kept() -> None:
    graph = assumed({**DENSE, "sliding_window": 16}, "brandnew")
    (op,) = (op for op in graph.blocks[1].ops if op.kind is OpKind.ATTENTION)
    assert op.mask is not None
    assert op.mask.window == 16


@pytest.mark.parametrize(
    "field", ["hidden_size", "num_hidden_layers", "num_attention_heads", "vocab_size"]
)
def test_essential_fields_cannot_be_assumed(field: str) -> None:
    config = {key: value for key, value in DENSE.items() if key != field}
    with pytest.raises(ModelError, match=f"{field}.* is missing"):
        load_model(config)


def test_an_unknown_encoder_decoder_is_refused() -> None:
    with pytest.raises(ModelError, match="an encoder-decoder that is not known"):
        load_model({**DENSE, "is_encoder_decoder": True})


@pytest.mark.parametrize(
    "field", [{"num_dense_layers": 1}, {"mlp_layer_types": ["dense", "sparse", "sparse"]}]
)
def test_other_ways_to_say_which_layers_have_experts(field: dict[str, Any]) -> None:
    experts = {"num_experts": 6, "num_experts_per_tok": 2, "moe_intermediate_size": 24}
    graph = assumed({**DENSE, **experts, **field}, "6 gated experts")
    assert [run.block.name for run in graph.runs] == [
        "embedding",
        "decoder",
        "moe_decoder",
        "head",
    ]
    assert graph.runs[2].count == 2


def test_a_window_that_is_switched_off() -> None:
    graph = assumed({**DENSE, "sliding_window": 16, "use_sliding_window": False}, "brandnew")
    (op,) = (op for op in graph.blocks[1].ops if op.kind is OpKind.ATTENTION)
    assert op.mask is not None
    assert op.mask.window is None
