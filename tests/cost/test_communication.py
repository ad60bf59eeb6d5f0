"""What blocks communicate inside their layers: which tensors, how much, how often."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from meshwright.cost.collectives import Network
from meshwright.cost.communication import (
    ContextCommunication,
    ExpertCommunication,
    TensorCommunication,
    reduced_tensors,
)
from meshwright.cost.compute import ComputeModel
from meshwright.graph import BlockRole, Split
from meshwright.graph.builders import (
    AttentionSpec,
    LayerSpec,
    MoeSpec,
    embedding_block,
    head_block,
    transformer_layer,
)
from meshwright.graph.sources import load_model
from meshwright.strategy import ContextAlgorithm, Workload

from ..strategies import (  # noqa: TID252 - importlib mode
    H100,
    NOTHING_HIDDEN,
    flat_level,
    gpt_layer,
    llama_layer,
    moe_layer,
    shapes,
)

RATE = 1e9


def model(kind, block, *, s=1024, coefficients=NOTHING_HIDDEN, **degrees):
    """Communication of one kind over one level of 1 GB/s without latency."""
    axis = {TensorCommunication: "tensor", ExpertCommunication: "expert"}.get(kind, "context")
    return kind(
        shapes(block, seq_length=s, **degrees),
        Network((flat_level(512, bandwidth=RATE),), launch_s=0.0),
        np.array([[degrees.get(axis, 1)]]),
        Workload(global_batch_size=1, seq_length=s),
        coefficients,
    )


def tensor(block, **more):
    return passes(model(TensorCommunication, block, **more).passes())


def expert(block, **more):
    return passes(model(ExpertCommunication, block, **more).passes())


def passes(found):
    return float(found.forward_s[0]), float(found.backward_s[0])


# ---------------------------------------------------------------- which tensors
def layer(**changes):
    attention = AttentionSpec(heads=8, kv_heads=8, head_dim=16)
    return transformer_layer(LayerSpec(hidden=128, attention=attention, ffn=512, **changes))


def test_a_sequential_layer_reduces_after_attention_and_after_the_mlp():
    # Shoeybi et al. 2019, figure 4: two all-reduces forward (g), two backward (f).
    expected = (("attention_out", "down"), ("attention_norm", "mlp_norm"))
    assert reduced_tensors(layer()) == expected
    assert reduced_tensors(gpt_layer(hidden=128, heads=8)) == expected
    assert reduced_tensors(layer(sandwich=True)) == expected


def test_without_a_norm_before_it_the_residual_is_reduced():
    forward, backward = reduced_tensors(layer(pre_norm=False, post_norm=True))
    assert forward == ("attention_out", "down")
    assert backward == ("x", "attention_sum_norm")


def test_a_parallel_layer_with_one_norm_reduces_one_gradient():
    # Wang and Komatsuzaki 2021 (GPT-J): both branches read one tensor.
    forward, backward = reduced_tensors(layer(parallel=True, shared_norm=True))
    assert forward == ("attention_out", "down")
    assert backward == ("attention_norm",)


def test_experts_reduce_over_their_own_groups():
    forward, backward = reduced_tensors(
        moe_layer(hidden=128, heads=8, experts=8, top_k=2, width=64)
    )
    assert forward == ("attention_out",)
    assert backward == ("attention_norm",)


def test_a_shared_expert_is_an_mlp_of_its_own():
    attention = AttentionSpec(heads=8, kv_heads=8, head_dim=16)
    mixture = MoeSpec(experts=8, top_k=2, width=64, shared_width=64)
    block = transformer_layer(LayerSpec(hidden=128, attention=attention, moe=mixture))
    forward, backward = reduced_tensors(block)
    assert forward == ("attention_out", "moe_shared_down")
    assert backward == ("attention_norm", "mlp_norm")


def test_embedding_and_head():
    # The table is split by rows: looked-up vectors are partial. The logits stay split; the
    # gradient of their input is partial.
    assert reduced_tensors(embedding_block(vocab=1000, hidden=64)) == (("token_embedding",), ())
    forward, backward = reduced_tensors(head_block(vocab=1000, hidden=64, tied=False))
    assert backward == ("final_norm",)
    assert forward == ("loss",)  # one fp32 number per token


FAMILIES = [
    "llama-3.1-8b",
    "gpt3-175b",
    "gpt-j-6b",
    "gpt-neox-20b",
    "falcon-40b",
    "bloom-176b",
    "gemma-2-27b",
    "mixtral-8x7b",
    "deepseek-v3",
    "qwen3-next-80b-a3b",
    "nemotron-h-8b",
    "t5-11b",
    "bert-large",
    "vit-h",
    "gpt-oss-120b",
]


@pytest.mark.parametrize("name", FAMILIES)
def test_what_layers_reduce_is_as_wide_as_the_residual_stream(name):
    """Every split branch ends in one reduction; nothing wider or still split is reduced."""
    graph = load_model(name)
    for block in graph.blocks:
        forward, backward = reduced_tensors(block)
        splits = {axis.split for axis in block.axes}
        if block.role is BlockRole.LAYER and Split.TENSOR in splits:
            assert 1 <= len(forward) <= 4
            assert 1 <= len(backward) <= 5
            hidden = block.tensor(block.output).dims
            for tensor in forward:
                assert set(block.tensor(tensor).dims) == set(hidden), (block.name, tensor)
        for tensor in forward + backward:
            dims = block.tensor(tensor).dims
            assert all(block.axis(dim).split is not Split.TENSOR for dim in dims)


# ---------------------------------------------------------------- tensor groups
def test_four_all_reduces_of_the_residual_stream():
    # Per pass two all-reduces of 2 s b h bytes, 2 (t - 1)/t each on the wire.
    s, b, h, t = 1024, 2, 512, 4
    found = tensor(gpt_layer(hidden=h, heads=8), s=s, micro_batch=b, tensor=t)
    once = 2 * (t - 1) / t * 2 * s * b * h / RATE
    assert found == pytest.approx((2 * once, 2 * once))


def test_sequence_parallelism_moves_the_same_bytes_and_gathers_once_more():
    # Korthikanti et al. 2022, section 4.2.2: all-gather and reduce-scatter instead, each half
    # an all-reduce; the backward gathers the inputs of both column-parallel products again.
    s, b, h, t = 1024, 2, 512, 4
    block = gpt_layer(hidden=h, heads=8)
    found = tensor(block, s=s, micro_batch=b, tensor=t, sequence_parallel=1)
    half = (t - 1) / t * 2 * s * b * h / RATE
    assert found == pytest.approx((4 * half, 6 * half))


def test_one_rank_sends_nothing():
    block = moe_layer(hidden=128, heads=8, experts=8, top_k=2, width=64)
    assert tensor(block) == expert(block) == (0.0, 0.0)


def test_overlap_halves_what_sequence_parallelism_exposes_and_no_all_reduce():
    block, hidden = gpt_layer(hidden=512, heads=8), replace(NOTHING_HIDDEN, tensor_hidden=0.5)
    for split, factor in ((0, 1.0), (1, 0.5)):
        rank = {"tensor": 4, "sequence_parallel": split}
        bare = tensor(block, **rank)
        found = tensor(block, coefficients=hidden, **rank)
        assert found == pytest.approx(tuple(factor * seconds for seconds in bare))


# ---------------------------------------------------------------- experts
def test_all_to_all_of_routed_tokens():
    # Two all-to-alls per pass of k s h 2 bytes; nodes of one rank: a token goes once to each of
    # the ranks that hold its experts, ep (1 - (1 - 1/ep)^k) of them.
    s, h, k, ep = 1024, 256, 2, 4
    block = moe_layer(hidden=h, heads=4, experts=8, top_k=k, width=64)
    coefficients = replace(NOTHING_HIDDEN, expert_imbalance=1.25)
    found = expert(block, s=s, expert=ep, coefficients=coefficients)
    met = ep * (1 - (1 - 1 / ep) ** k)
    once = 2 * s * h * met * (ep - 1) / ep / RATE
    assert found == pytest.approx((2 * 1.25 * once, 2 * 1.25 * once))


def test_sequence_parallel_ranks_route_their_own_tokens():
    block = moe_layer(hidden=256, heads=4, experts=8, top_k=2, width=64)
    whole = expert(block, expert=4)
    share = expert(block, expert=4, tensor=2, sequence_parallel=1)
    assert share == pytest.approx(tuple(seconds / 2 for seconds in whole))


# ---------------------------------------------------------------- context
def context(algorithm, *, c=4, coefficients=NOTHING_HIDDEN, s=1024):
    block = llama_layer(hidden=512, heads=8, kv_heads=2, ffn=1024)
    degrees = {"context": c, "context_algorithm": list(ContextAlgorithm).index(algorithm)}
    found = model(ContextCommunication, block, s=s, coefficients=coefficients, **degrees)
    compute = ComputeModel(found.shapes, H100, found.workload, coefficients)
    return passes(found.passes({o.name: compute.time(o) for o in block.ops}))


KEYS = 2 * 2 * 1024 * 2 * 64  # keys and values, 2 bytes, 1024 tokens, 2 heads of 64


def test_gathered_keys_and_values():
    once = 3 / 4 * KEYS / RATE
    assert context(ContextAlgorithm.ALL_GATHER) == pytest.approx((once, 2 * once))


def test_ring_passes_the_same_bytes_and_hides_behind_attention():
    # At least the tail stays exposed, whatever attention would hide.
    once = 3 / 4 * KEYS / RATE
    assert context(ContextAlgorithm.RING) == pytest.approx((once, 2 * once))
    overlap = replace(NOTHING_HIDDEN.overlap, tail=0.25)
    all_hidden = replace(NOTHING_HIDDEN, context_hidden=1e6, overlap=overlap)
    hidden = context(ContextAlgorithm.RING, coefficients=all_hidden)
    assert hidden == pytest.approx((once / 4, once / 2))


def test_ulysses_exchanges_shares_of_all_four_tensors():
    # Jacobs et al. 2023: queries, keys, values and context, 3/4 of a rank's share leaves it.
    share = (KEYS + 2 * 2 * 1024 * 512) / 4
    once = 3 / 4 * share / RATE
    assert context(ContextAlgorithm.ULYSSES) == pytest.approx((once, once))


@pytest.mark.parametrize("algorithm", list(ContextAlgorithm))
def test_one_context_rank_gathers_nothing(algorithm):
    assert context(algorithm, c=1) == (0.0, 0.0)
