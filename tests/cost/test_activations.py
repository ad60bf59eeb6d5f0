"""Activation bytes per layer against published closed forms and counts by hand."""

from __future__ import annotations

import pytest

from meshwright.cost.memory import block_memory, local_parameters
from meshwright.graph.builders import embedding_block, head_block
from meshwright.strategy import Recompute, Workload

from ..strategies import (  # noqa: TID252 - importlib mode
    gpt_layer,
    llama_layer,
    moe_layer,
    shapes,
)

# a heads, s tokens, b sequences, h hidden: GPT-3 175B, Megatron 530B, and odd small ones.
SIZES = [(96, 2048, 1, 12288), (128, 2048, 1, 20480), (8, 128, 4, 256), (16, 1024, 2, 64)]
TENSOR = [1, 2, 8]


def kept(block, recompute=Recompute.NONE, *, s, attention="unfused", precision="bf16", **degrees):
    work = Workload(global_batch_size=8, seq_length=s, attention=attention, precision=precision)
    found = block_memory(shapes(block, seq_length=s, **degrees), work, recompute)
    return float(found.kept_bytes[0])


@pytest.mark.parametrize(("a", "s", "b", "h"), SIZES)
def test_korthikanti_table_2(a, s, b, h):
    # Korthikanti et al. 2022, table 2, all rows, s b h times:
    layer = gpt_layer(hidden=h, heads=a)
    sbh, scores = s * b * h, 5 * a * s / h

    assert kept(layer, s=s, micro_batch=b) == sbh * (34 + scores)
    for t in TENSOR:
        rank = {"s": s, "micro_batch": b, "tensor": t}
        split = {**rank, "sequence_parallel": 1 if t > 1 else 0}
        assert kept(layer, **rank) == sbh * (10 + 24 / t + scores / t)
        assert kept(layer, **split) == sbh * (34 + scores) / t
        assert kept(layer, Recompute.SELECTIVE, **rank) == sbh * (10 + 24 / t)
        assert kept(layer, Recompute.SELECTIVE, **split) == sbh * 34 / t
        assert kept(layer, Recompute.FULL, **rank) == sbh * 2
        assert kept(layer, Recompute.FULL, **split) == sbh * 2 / t


@pytest.mark.parametrize("t", TENSOR)
def test_a_fused_kernel_keeps_one_float_per_head_and_token_instead_of_the_scores(t):
    a, s, b, h = 32, 4096, 2, 4096
    layer = gpt_layer(hidden=h, heads=a)
    found = kept(layer, s=s, attention="fused", micro_batch=b, tensor=t)
    assert found == s * b * h * (10 + 24 / t) + 4 * a * s * b / t


def test_a_llama_layer_by_hand():
    # Llama-3-8B: h 4096, 32 heads of 128, 8 key-value heads, f 14336; 2 bytes per value.
    h, a, k, d, f, s, b = 4096, 32, 8, 128, 14336, 8192, 1
    layer = llama_layer(hidden=h, heads=a, kv_heads=k, ffn=f)
    per_token = (
        2 * h  # input, for the norm's backward
        + 2 * h  # normed, for the three projections
        + 2 * a * d  # rotated queries
        + 2 * 2 * k * d  # rotated keys, values
        + 2 * a * d  # context, for attention and the output projection
        + 4 * a  # log-sum-exp, fp32
        + 2 * h  # residual stream, for the second norm
        + 2 * h  # normed again, for gate and up
        + 2 * 2 * f  # gate and up, for the activation
        + 2 * f  # activated, for down
    )
    assert kept(layer, s=s, attention="fused", micro_batch=b) == s * b * per_token
    # On 8 tensor ranks with sequence parallelism every one of these is split.
    shared = kept(layer, s=s, attention="fused", tensor=8, sequence_parallel=1)
    assert shared == s * per_token / 8
    # Context ranks hold a share of the tokens.
    assert kept(layer, s=s, attention="fused", context=4) == s * per_token / 4


def test_more_tensor_ranks_than_key_value_heads_hold_copies_of_them():
    h, a, k, d, f, s = 1024, 16, 2, 64, 2048, 512
    layer = llama_layer(hidden=h, heads=a, kv_heads=k, ffn=f)
    t = 8  # one query head... two per rank, and one of the two key-value heads each
    per_token = 4 * 2 * h + 2 * 2 * a * d / t + 2 * 2 * d + 4 * a / t + 3 * 2 * f / t
    assert kept(layer, s=s, attention="fused", tensor=t) == s * per_token


@pytest.mark.parametrize(
    ("ep", "etp", "t"), [(1, 1, 1), (4, 1, 1), (1, 1, 2), (8, 1, 2), (2, 2, 2), (1, 2, 4)]
)
def test_a_moe_layer_by_hand(ep, etp, t):
    # Routing is balanced: a rank gets as many routed tokens as it sends, whatever the degree.
    h, a, experts, top_k, w, s = 512, 8, 8, 2, 256, 1024
    layer = moe_layer(hidden=h, heads=a, experts=experts, top_k=top_k, width=w)
    dense = 2 * h * 2 + 2 * 3 * h + 2 * h + 4 * a + 2 * h * 2  # as in the llama layer, f = 0
    router = 2 * experts  # logits
    routed = top_k * (
        2  # the weight of the choice, which travels with the token
        + 2 * h  # routed tokens, for gate and up
        + 2 * 2 * w / etp  # gate and up, for the activation
        + 2 * w / etp  # activated, for down
        + 2 * h  # outputs, for the weights' gradient
    )
    found = kept(
        layer,
        s=s,
        attention="fused",
        tensor=t,
        sequence_parallel=int(t > 1),
        expert=ep,
        expert_tensor=etp,
    )
    # A rank of an expert-tensor group of etp sees the routed tokens of all its etp ranks.
    assert found == s / t * (dense + router) + s / t * etp * routed


def test_fp32_doubles_values_and_leaves_masks_and_sums():
    a, s, b, h = 8, 128, 2, 256
    layer = gpt_layer(hidden=h, heads=a)
    # 34 s b h: 32 in two-byte values, 2 in masks of one byte; the scores: 4 a s s b and a mask.
    expected = s * b * h * (2 * 32 + 2) + (2 * 4 + 1) * a * s * s * b
    assert kept(layer, s=s, micro_batch=b, precision="fp32") == expected


def test_what_is_recomputed_is_transient():
    s, block = 512, llama_layer(hidden=512, heads=8, kv_heads=8, ffn=1024)
    work = Workload(global_batch_size=1, seq_length=s)
    local = shapes(block, seq_length=s)
    none, full = (block_memory(local, work, mode) for mode in (Recompute.NONE, Recompute.FULL))
    assert none.kept_bytes + none.transient_bytes == full.kept_bytes + full.transient_bytes
    # The gradients of the widest op: gate, up and their product.
    assert none.transient_bytes[0] == 2 * s * 3 * 1024


def test_the_head_keeps_nothing_between_micro_batches():
    s, h, v = 256, 128, 1000
    head = head_block(vocab=v, hidden=h, tied=False)
    work = Workload(global_batch_size=1, seq_length=s)
    found = block_memory(shapes(head, seq_length=s), work, Recompute.NONE)
    assert found.kept_bytes[0] == 0
    # Saved: the norm's input, the logits' input, logits, fp32 probabilities; working: the
    # logits op, its input and output.
    assert found.transient_bytes[0] == s * (2 * h + 2 * h + 2 * v + 4 * v) + s * (2 * h + 2 * v)


@pytest.mark.parametrize("extra", [-4.0, 6.0])
def test_what_a_stack_adds_to_the_loss_counts_per_logit(extra):
    s, v = 256, 1000
    local = shapes(head_block(vocab=v, hidden=128, tied=False), seq_length=s, tensor=4)
    work = Workload(global_batch_size=1, seq_length=s)
    plain = block_memory(local, work, Recompute.NONE)
    found = block_memory(local, work, Recompute.NONE, loss_extra_bytes=extra)
    assert found.transient_bytes[0] - plain.transient_bytes[0] == extra * s * v / 4


def test_a_layer_has_no_loss():
    s = 256
    local = shapes(gpt_layer(hidden=128, heads=8), seq_length=s)
    work = Workload(global_batch_size=1, seq_length=s)
    plain = block_memory(local, work, Recompute.FULL)
    assert block_memory(local, work, Recompute.FULL, loss_extra_bytes=6.0) == plain


def test_embeddings_keep_their_tokens():
    s = 256
    block = embedding_block(vocab=1000, hidden=64)
    work = Workload(global_batch_size=1, seq_length=s)
    found = block_memory(shapes(block, seq_length=s, micro_batch=3), work, Recompute.NONE)
    assert found.kept_bytes[0] == 3 * s * 8  # int64


@pytest.mark.parametrize("t", TENSOR)
def test_parameters_of_a_dense_layer_on_one_rank(t):
    h, a = 256, 8
    found = local_parameters(shapes(gpt_layer(hidden=h, heads=a), seq_length=8, tensor=t))
    # Weights 12 h^2 split; biases of qkv (3h) and of the first matrix (4h) split; the output
    # biases (2h) and two norms (4h) on every rank.
    assert found.dense[0] == 12 * h * h / t + 7 * h / t + 6 * h
    assert found.expert[0] == found.tied[0] == 0


def test_parameters_of_experts_on_one_rank():
    h, w, experts = 64, 128, 8
    layer = moe_layer(hidden=h, heads=4, experts=experts, top_k=2, width=w)
    found = local_parameters(shapes(layer, seq_length=8, expert=4, expert_tensor=2, tensor=2))
    assert found.expert[0] == 3 * h * w * experts / 4 / 2
    assert found.dense[0] == 4 * h * h / 2 + h * experts + 2 * h


def test_a_vocabulary_is_padded_to_the_tensor_degree():
    block = embedding_block(vocab=1003, hidden=64)
    found = local_parameters(shapes(block, seq_length=8, tensor=4))
    assert found.dense[0] == 251 * 64  # ceil(1003 / 4) rows


def test_a_tied_head_counts_its_table_apart():
    head = head_block(vocab=1000, hidden=64, tied=True)
    found = local_parameters(shapes(head, seq_length=8, tensor=2))
    assert found.tied[0] == 500 * 64
    assert found.dense[0] == 64  # the final norm
