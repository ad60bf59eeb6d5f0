"""FLOPs, GEMM shapes and roofline of ops on one rank, by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from meshwright.cluster.device import GemmCurve
from meshwright.cost.compute import ComputeModel
from meshwright.cost.stacks import MODERN
from meshwright.graph import Mask
from meshwright.graph.builders import head_block
from meshwright.graph.sources import load_model
from meshwright.planning.flops import cluster_peak, forward_flops, model_flops, roofline_s
from meshwright.strategy import Workload

from ..strategies import (  # noqa: TID252 - importlib mode
    H100,
    PLAIN,
    gpt_layer,
    llama_config,
    llama_layer,
    moe_layer,
    shapes,
)


def compute(block, *, s=1024, device=H100, coefficients=PLAIN, work=None, **degrees):
    workload = work or Workload(global_batch_size=1, seq_length=s)
    return ComputeModel(shapes(block, seq_length=s, **degrees), device, workload, coefficients)


def op(block, name):
    return next(op for op in block.ops if op.name == name)


def gemm(block, name, **more):
    return tuple(float(x[0]) for x in compute(block, **more).gemm_shape(op(block, name)))


# ---------------------------------------------------------------- FLOPs
@pytest.mark.parametrize(("h", "a", "s"), [(12288, 96, 2048), (512, 8, 128), (64, 2, 1024)])
def test_flops_of_a_gpt_layer(h, a, s):
    # Narayanan et al. 2021, appendix: forward 24 b s h^2 (1 + s / 6h) with full attention,
    # backward twice that.
    full = llama_layer(hidden=h, heads=a, kv_heads=a, ffn=4 * h, mask=Mask(causal=False))
    classic = gpt_layer(hidden=h, heads=a)
    forward, backward = forward_flops(classic, seq_length=s)
    # Causal attention needs (s + 1) / 2s of the scores.
    assert forward == pytest.approx(24 * s * h * h * (1 + s / (6 * h) * (s + 1) / (2 * s)))
    assert backward == pytest.approx(2 * forward)
    gated, _ = forward_flops(full, seq_length=s)  # a third matrix: 8 s h^2 more
    assert gated == pytest.approx(24 * s * h * h * (1 + s / (6 * h)) + 8 * s * h * h)


def test_six_flops_per_parameter_and_token():
    # Kaplan et al. 2020: C = 6 N D, without attention scores and look-ups.
    config = llama_config(hidden_size=1024, intermediate_size=4096, vocab_size=32000)
    model, s = load_model(config), 512
    work = Workload(global_batch_size=4, seq_length=s)
    n = model.parameter_count() - 32000 * 1024 - 9 * 1024  # no look-up, no norms
    scores = 4 * 12 * s * (s + 1) / 2 * 1024  # layers x 3 x 2 x 2 (s (s + 1) / 2) h
    assert model_flops(model, work) == pytest.approx(4 * (6 * n * s + scores))


def test_a_token_of_a_moe_layer_meets_its_chosen_experts_only():
    h, a, e, k, w, s = 256, 4, 8, 2, 512, 128
    layer = moe_layer(hidden=h, heads=a, experts=e, top_k=k, width=w)
    forward, _ = forward_flops(layer, seq_length=s)
    attention = 8 * s * h * h + 4 * h * s * (s + 1) / 2
    assert forward == pytest.approx(attention + 2 * s * h * e + k * 3 * 2 * s * h * w)


def test_roofline_by_hand():
    from meshwright.cluster import load_cluster

    model, work = load_model(llama_config()), Workload(global_batch_size=8, seq_length=256)
    cluster = load_cluster("2x8xH100+1x8xA100-80GB")
    peak = 16 * 989.4e12 + 8 * 312e12
    assert cluster_peak(cluster, "bf16") == pytest.approx(peak, rel=1e-3)
    found = roofline_s(model, cluster, work)
    assert found == pytest.approx(model_flops(model, work) / cluster_peak(cluster, "bf16"))


# ---------------------------------------------------------------- shapes of contractions
def test_gemm_shapes_of_a_dense_layer():
    # h 1024, 16 heads of 64, 4 key-value heads, f 4096, 2 sequences of 1024 tokens.
    block = llama_layer(hidden=1024, heads=16, kv_heads=4, ffn=4096)
    whole = {"s": 1024, "micro_batch": 2}
    assert gemm(block, "query", **whole) == (2048, (16 + 4 + 4) * 64, 1024)  # fused widths
    assert gemm(block, "key", **whole) == gemm(block, "query", **whole)
    assert gemm(block, "attention_out", **whole) == (2048, 1024, 1024)
    assert gemm(block, "gate", **whole) == (2048, 2 * 4096, 1024)
    assert gemm(block, "down", **whole) == (2048, 1024, 4096)


@pytest.mark.parametrize("sequence_parallel", [0, 1])
def test_gemm_shapes_on_tensor_and_context_ranks(sequence_parallel):
    # Between the two contractions a rank has all tokens of its context share.
    block = llama_layer(hidden=1024, heads=16, kv_heads=4, ffn=4096)
    rank = {"tensor": 4, "context": 2, "sequence_parallel": sequence_parallel}
    assert gemm(block, "query", **rank) == (512, 24 * 64 / 4, 1024)
    assert gemm(block, "attention_out", **rank) == (512, 1024, 1024 / 4)
    assert gemm(block, "gate", **rank) == (512, 2 * 4096 / 4, 1024)
    assert gemm(block, "down", **rank) == (512, 1024, 4096 / 4)


def test_gemm_shape_of_the_logits():
    head = head_block(vocab=32000, hidden=1024, tied=False)
    assert gemm(head, "logits", tensor=8) == (1024, 4000, 1024)


@pytest.mark.parametrize("ep", [1, 2, 8])
def test_tokens_per_expert(ep):
    # 1024 tokens x 2 choices over 8 experts: 256 each; ep ranks send as much again for the
    # 8/ep experts of a rank.
    block = moe_layer(hidden=256, heads=4, experts=8, top_k=2, width=512)
    rank = {"expert": ep}
    assert gemm(block, "moe_expert_gate", **rank) == (256 * ep, 2 * 512, 256)
    assert gemm(block, "moe_expert_down", **rank) == (256 * ep, 256, 512)


def test_tokens_per_expert_on_expert_tensor_ranks():
    # Without splitting tokens over tensor ranks: each rank has half the width.
    block = moe_layer(hidden=256, heads=4, experts=8, top_k=2, width=512)
    rank = {"tensor": 2, "sequence_parallel": 1, "expert_tensor": 2}
    assert gemm(block, "moe_expert_gate", **rank) == (256, 2 * 256, 256)
    alone = {"tensor": 2, "sequence_parallel": 1, "expert_tensor": 1}
    assert gemm(block, "moe_expert_gate", **alone) == (128, 2 * 512, 256)


@pytest.mark.parametrize("t", [1, 2, 4, 8])
def test_flops_of_the_ranks_add_up(t):
    block = llama_layer(hidden=512, heads=8, kv_heads=8, ffn=1024)
    one, rank = compute(block), compute(block, tensor=t, context=2)
    for o in block.ops:
        if o.name in ("query", "attention", "attention_out", "gate", "down"):
            assert rank.shapes.flops(o)[0] * t * 2 == pytest.approx(one.shapes.flops(o)[0])


# ---------------------------------------------------------------- the roofline of one op
EASY = replace(
    H100,
    peak_flops={"bf16": 1e15},
    memory_bandwidth_bytes_per_s=1e12,
    memory_efficiency=1.0,
    sustained_efficiency=1.0,
    attention_efficiency=0.5,
    attention_backward_efficiency=0.4,
    launch_s=1e-6,
    gemm={"bf16": GemmCurve(limit=0.8, m_half=0.0, n_half=0.0, k_half=0.0)},
)


def times(block, name, **more):
    found = compute(block, device=EASY, **more).time(op(block, name))
    return float(found.forward_s[0]), float(found.backward_s[0])


def test_a_large_contraction_is_bound_by_compute():
    # 2 x 8192 x 8192 x 32768 FLOPs at 0.8e15 = 5.5 ms; 1.2 GB take 1.2 ms.
    block = llama_layer(hidden=8192, heads=64, kv_heads=64, ffn=32768)
    forward, backward = times(block, "down", s=8192)
    assert forward == pytest.approx(2 * 8192 * 8192 * 32768 / 0.8e15)
    assert backward == pytest.approx(2 * forward)


def test_a_thin_contraction_is_bound_by_memory():
    # 16 tokens: the weight of 8192 x 32768 x 2 bytes passes at 1 TB/s.
    block = llama_layer(hidden=8192, heads=64, kv_heads=64, ffn=32768)
    forward, _ = times(block, "down", s=16)
    assert forward == pytest.approx(2 * (8192 * 32768 + 16 * (8192 + 32768)) / 1e12)


def test_a_tiny_op_takes_a_launch_and_a_fused_one_not_even_that():
    block = llama_layer(hidden=64, heads=2, kv_heads=2, ffn=128)
    assert times(block, "query", s=16)[0] == 1e-6
    assert times(block, "key", s=16)[0] < 1e-7


def test_sustained_efficiency_slows_compute_and_memory_alike():
    block = llama_layer(hidden=8192, heads=64, kv_heads=64, ffn=32768)
    half = replace(EASY, sustained_efficiency=0.5)
    for name, s in (("down", 8192), ("down", 16), ("mlp_norm", 8192)):
        slow = compute(block, device=half, s=s).time(op(block, name)).forward_s[0]
        assert slow == pytest.approx(2 * times(block, name, s=s)[0])


def test_fused_attention_by_hand():
    # 2 contractions, half of 4096 keys: 4 x 64 x 128 x 4096 x 2048.5 FLOPs at half the peak,
    # slower by 200 / 4096 on 4096 queries; backward is 2.5 times the FLOPs at 0.4.
    block = llama_layer(hidden=8192, heads=64, kv_heads=8, ffn=32768)
    flops = 4 * 64 * 128 * 4096 * 4097 / 2
    forward, backward = times(block, "attention", s=4096)
    short = 1 + MODERN.attention_half / 4096
    assert forward == pytest.approx(short * flops / (1e15 * 0.5))
    assert backward == pytest.approx((2 + MODERN.attention_extra) * short * flops / (1e15 * 0.4))


def test_unfused_attention_computes_and_moves_the_whole_square():
    block = gpt_layer(hidden=1024, heads=16)
    work = Workload(global_batch_size=1, seq_length=2048, attention="unfused")
    forward, _ = times(block, "attention", s=2048, work=work)
    square = 16 * 2048 * 2048
    saved = 2 * 4 * 2048 * 1024 + (2 + 1 + 2) * square  # q, k, v, context; scores and mask
    assert forward == pytest.approx(4 * square * 64 / (1e15 * 0.8) + 2 * saved / 1e12)


def test_a_norm_moves_its_input_and_output():
    block = llama_layer(hidden=8192, heads=64, kv_heads=64, ffn=32768)
    moved = 2 * (2 * 4096 * 8192 + 8192)  # in, out, weight
    saved = 2 * 4096 * 8192
    share = MODERN.pointwise_traffic
    forward, backward = times(block, "mlp_norm", s=4096)
    assert forward == pytest.approx(share * moved / 1e12)
    assert backward == pytest.approx(share * (moved + saved) / 1e12)


def test_sequence_parallelism_splits_norms_not_contractions():
    block = llama_layer(hidden=8192, heads=64, kv_heads=64, ffn=32768)
    plain, split = ({"s": 4096, "tensor": 8, "sequence_parallel": on} for on in (0, 1))
    assert times(block, "down", **split) == times(block, "down", **plain)
    # Not exactly an eighth: every rank has the whole weight of the norm.
    assert times(block, "mlp_norm", **split)[0] < times(block, "mlp_norm", **plain)[0] / 7.9


def test_the_busiest_expert_rank_sets_the_pace():
    block = moe_layer(hidden=4096, heads=32, experts=8, top_k=2, width=14336)
    alone = times(block, "moe_expert_down", s=8192)
    spread = times(block, "moe_expert_down", s=8192, expert=8)
    assert spread[0] == pytest.approx(MODERN.expert_imbalance * alone[0])


@given(
    st.floats(1.0, 10.0),
    st.sampled_from(["peak", "memory"]),
    st.sampled_from([64, 1024, 8192]),
    st.sampled_from([1, 4]),
)
def test_a_better_device_is_never_slower_at_any_op(factor, what, s, t):
    if what == "peak":
        better = replace(EASY, peak_flops={"bf16": 1e15 * factor})
    else:
        better = replace(EASY, memory_bandwidth_bytes_per_s=1e12 * factor)
    block = gpt_layer(hidden=512, heads=8)
    before = compute(block, device=EASY, s=s, tensor=t)
    after = compute(block, device=better, s=s, tensor=t)
    for o in block.ops:
        old, new = before.time(o), after.time(o)
        assert (new.forward_s <= old.forward_s).all()
        assert (new.backward_s <= old.backward_s).all()


@given(st.sampled_from([1, 2, 4, 8]), st.sampled_from([1, 2, 4]), st.sampled_from([64, 512]))
def test_no_op_beats_the_peak(t, c, s):
    block = llama_layer(hidden=512, heads=8, kv_heads=2, ffn=1024)
    found = compute(block, s=s, tensor=t, context=c)
    for o in block.ops:
        assert np.all(found.time(o).forward_s >= 0)
        if o.name in ("query", "attention", "attention_out", "gate", "up", "down"):
            least = found.shapes.flops(o) / H100.peak("bf16")
            assert (found.time(o).forward_s >= least).all()
