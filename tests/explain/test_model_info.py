"""Numbers of a model, by hand for one whose sizes are round."""

from __future__ import annotations

import pytest

from meshwright.errors import WorkloadError
from meshwright.explain.model_info import model_info
from meshwright.graph.sources import load_model

HIDDEN, LAYERS, HEADS, WIDTH, VOCAB, SEQ = 1024, 4, 16, 4096, 32000, 2048
CONFIG = {
    "model_type": "llama",
    "hidden_size": HIDDEN,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": HEADS,
    "num_key_value_heads": HEADS,
    "intermediate_size": WIDTH,
    "vocab_size": VOCAB,
    "max_position_embeddings": SEQ,
    "hidden_act": "silu",
    "rms_norm_eps": 1e-5,
    "tie_word_embeddings": False,
}


@pytest.fixture(scope="module")
def info():
    return model_info(load_model(CONFIG), seq_length=SEQ)


def test_parameters_by_hand(info):
    layer = 4 * HIDDEN**2 + 3 * HIDDEN * WIDTH + 2 * HIDDEN
    assert info.layers == LAYERS
    assert info.parameters == LAYERS * layer + 2 * VOCAB * HIDDEN + HIDDEN
    assert info.active_parameters == info.parameters
    assert info.auxiliary_parameters == 0


def test_flops_per_token_by_hand(info):
    """2 per weight and token, and 4 h (s + 1)/2 for causal scores and values."""
    layer = 2 * (4 * HIDDEN**2 + 3 * HIDDEN * WIDTH) + 4 * HIDDEN * (SEQ + 1) / 2
    forward = LAYERS * layer + 2 * VOCAB * HIDDEN
    assert info.forward_flops_per_token == pytest.approx(forward, rel=1e-12)
    assert info.training_flops_per_token == pytest.approx(3 * forward, rel=1e-12)


def test_blocks_are_folded_and_ops_add_up(info):
    assert [(block.role, block.count) for block in info.blocks] == [
        ("embedding", 1),
        ("layer", LAYERS),
        ("head", 1),
    ]
    for block in info.blocks:
        assert sum(op.flops for op in block.ops) == pytest.approx(block.forward_flops)
    total = sum(block.count * block.parameters for block in info.blocks)
    assert total == info.parameters


def test_activations_by_recomputation(info):
    layer = next(block for block in info.blocks if block.role == "layer")
    kept = layer.activation_bytes
    assert list(kept) == ["none", "selective", "full"]
    assert kept["full"] == 2 * SEQ * HIDDEN, "the layer's input in bf16"
    assert kept["none"] >= kept["selective"] > kept["full"]


def test_moved_bytes_of_a_contraction(info):
    layer = next(block for block in info.blocks if block.role == "layer")
    query = next(op for op in layer.ops if op.name == "query")
    assert query.moved_bytes == 2 * (2 * SEQ * HIDDEN + HIDDEN**2)


def test_the_sequence_is_the_models_own_unless_given():
    assert model_info(load_model("bert-base")).seq_length == 512
    with pytest.raises(WorkloadError):
        model_info(load_model("bert-base"), seq_length=513)


def test_experts_are_counted_active():
    info = model_info(load_model("mixtral-8x7b"), seq_length=SEQ)
    assert info.active_parameters < info.parameters / 3
