"""Builders: published closed forms and parameters counted by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from meshwright.errors import ModelError
from meshwright.graph import (
    BATCH,
    SEQ,
    Axis,
    Block,
    BlockRole,
    Dtype,
    Mask,
    OpKind,
    Split,
    Tensor,
    seq_axis,
)
from meshwright.graph.builders import (
    TOKEN_TABLE,
    AttentionSpec,
    BlockBuilder,
    LayerSpec,
    MoeSpec,
    embedding_block,
    head_block,
    transformer_layer,
    transformer_layers,
)
from meshwright.graph.builders.encoder_decoder import HalfSpec, decoder_layer, encoder_layer
from meshwright.graph.builders.heads import classifier_head_block, masked_lm_head_block

BYTES = {Dtype.COMPUTE: 2, Dtype.BYTE: 1, Dtype.FP32: 4, Dtype.INT64: 8}


def saved(block: Block, *, fused: bool) -> tuple[Tensor, ...]:
    """Distinct tensors that the backward needs."""
    names: dict[str, None] = {}
    for op in block.ops:
        extra = op.saved_fused if fused else op.saved_unfused
        names.update(dict.fromkeys(op.saved + extra))
    return tuple(block.tensor(name) for name in names)


def saved_bytes(block: Block, *, batch: int, seq: int, fused: bool) -> float:
    sizes = block.sizes(batch=batch, seq_length=seq)
    total = 0.0
    for tensor in saved(block, fused=fused):
        elements = 1.0
        for dim in tensor.dims:
            elements *= sizes[dim]
        total += elements * BYTES[tensor.dtype]
    return total


def forward_flops(block: Block, *kinds: OpKind, batch: int, seq: int) -> float:
    sizes = block.sizes(batch=batch, seq_length=seq)
    return sum(op.flops(sizes, length=seq) for op in block.ops if op.kind in kinds)


def gpt_layer(h: int, a: int, *, dropout: bool = True, causal: bool = False) -> Block:
    return transformer_layer(
        LayerSpec(
            hidden=h,
            attention=AttentionSpec(
                heads=a,
                kv_heads=a,
                head_dim=h // a,
                mask=Mask(causal=causal),
                qkv_bias=True,
                out_bias=True,
                rotary=False,
                dropout=dropout,
            ),
            ffn=4 * h,
            gated=False,
            mlp_bias=True,
            norm_bias=True,
            dropout=dropout,
        )
    )


dims = st.tuples(
    st.integers(1, 4), st.sampled_from([64, 128, 1000]), st.integers(1, 8), st.integers(1, 16)
)


@given(dims)
def test_activation_bytes_of_a_gpt_layer(sizes: tuple[int, int, int, int]) -> None:
    """Korthikanti et al. 2022 (arXiv:2205.05198), equation 1: s b h (34 + 5 a s / h)."""
    b, s, a, d = sizes
    h = a * d
    expected = s * b * h * 34 + 5 * a * s * s * b
    assert saved_bytes(gpt_layer(h, a), batch=b, seq=s, fused=False) == expected


def test_a_fused_kernel_keeps_the_logsumexp_instead_of_the_scores() -> None:
    b, s, h, a = 2, 128, 64, 4
    expected = s * b * h * 34 + 4 * a * s * b
    assert saved_bytes(gpt_layer(h, a), batch=b, seq=s, fused=True) == expected


def test_without_dropout_no_masks_are_kept() -> None:
    # Two masks of one byte fall away, and of the scores only the probabilities remain.
    b, s, h, a = 2, 128, 64, 4
    layer = gpt_layer(h, a, dropout=False)
    assert saved_bytes(layer, batch=b, seq=s, fused=False) == s * b * h * 32 + 2 * a * s * s * b


@given(dims)
def test_forward_flops_of_a_gpt_layer(sizes: tuple[int, int, int, int]) -> None:
    """Narayanan et al. 2021 (arXiv:2104.04473), appendix: 24 b s h^2 (1 + s / 6h)."""
    b, s, a, d = sizes
    h = a * d
    found = forward_flops(gpt_layer(h, a), OpKind.MATMUL, OpKind.ATTENTION, batch=b, seq=s)
    assert found == pytest.approx(24 * b * s * h * h + 4 * b * s * s * h)


def test_a_causal_mask_halves_attention() -> None:
    b, s, h, a = 1, 1000, 64, 4
    full = forward_flops(gpt_layer(h, a), OpKind.ATTENTION, batch=b, seq=s)
    causal = forward_flops(gpt_layer(h, a, causal=True), OpKind.ATTENTION, batch=b, seq=s)
    assert causal == pytest.approx(full * 1001 / 2000)


@given(st.integers(1, 8), st.integers(1, 32))
def test_parameters_of_a_gpt_layer(a: int, d: int) -> None:
    h = a * d
    assert gpt_layer(h, a).parameter_count() == 12 * h * h + 13 * h


GROUPED = AttentionSpec(heads=4, kv_heads=2, head_dim=8)
PLAIN = LayerSpec(hidden=32, attention=GROUPED, ffn=48)
#: 32 x 32 queries, twice 32 x 16, 32 x 32 out; three of 32 x 48; two norms.
PLAIN_COUNT = 1024 + 2 * 512 + 1024 + 3 * 1536 + 64


@pytest.mark.parametrize(
    ("spec", "count"),
    [
        (PLAIN, PLAIN_COUNT),
        (replace(PLAIN, gated=False), PLAIN_COUNT - 1536),
        (replace(PLAIN, mlp_bias=True), PLAIN_COUNT + 48 + 48 + 32),
        (replace(PLAIN, norm_bias=True), PLAIN_COUNT + 64),
        (replace(PLAIN, norm_learned=False), PLAIN_COUNT - 64),
        (replace(PLAIN, sandwich=True), PLAIN_COUNT + 64),
        (replace(PLAIN, sandwich=True, pre_norm=False), PLAIN_COUNT),
        (replace(PLAIN, post_norm=True, pre_norm=False), PLAIN_COUNT),
        (replace(PLAIN, parallel=True), PLAIN_COUNT),
        (replace(PLAIN, parallel=True, shared_norm=True), PLAIN_COUNT - 32),
        (replace(PLAIN, dropout=True), PLAIN_COUNT),
        (replace(PLAIN, gated=False, activation_parameters=2), PLAIN_COUNT - 1534),
    ],
)
def test_parameters_of_a_layer(spec: LayerSpec, count: int) -> None:
    assert transformer_layer(spec).parameter_count() == count


@pytest.mark.parametrize(
    ("changes", "more"),
    [
        ({"qkv_bias": True}, 32 + 16 + 16),
        ({"out_bias": True}, 32),
        ({"qk_norm": "head"}, 16),
        ({"qk_norm": "head", "qk_norm_bias": True}, 32),
        ({"qk_norm": "layer"}, 32 + 16),
        ({"output_gate": True}, 1024),
        ({"shared_key_value": True}, -512),
        ({"sinks": True}, 4),
        ({"value_dim": 4}, -256 - 512),
        ({"dropout": True}, 0),
        ({"rotary": False}, 0),
    ],
)
def test_parameters_of_attention(changes: dict[str, object], more: int) -> None:
    layer = transformer_layer(replace(PLAIN, attention=replace(GROUPED, **changes)))
    assert layer.parameter_count() == PLAIN_COUNT + more


def test_experts_replace_the_dense_layer() -> None:
    moe = MoeSpec(experts=6, top_k=2, width=16)
    layer = transformer_layer(replace(PLAIN, ffn=0, moe=moe))
    rest = PLAIN_COUNT - 3 * 1536
    assert layer.parameter_count() == rest + 6 * 32 + 6 * 3 * 32 * 16
    assert layer.active_parameter_count() == rest + 6 * 32 + 2 * 3 * 32 * 16
    shared = replace(moe, shared_width=10, shared_gate=True)
    more = transformer_layer(replace(PLAIN, ffn=0, moe=shared))
    assert more.parameter_count() - layer.parameter_count() == 3 * 32 * 10 + 32


def test_routed_flops_follow_the_choices_not_the_experts() -> None:
    moe = MoeSpec(experts=6, top_k=2, width=16)
    layer = transformer_layer(replace(PLAIN, ffn=0, moe=moe))
    flops = forward_flops(layer, OpKind.GROUPED_MATMUL, batch=1, seq=10)
    assert flops == 10 * 2 * 3 * 2 * 32 * 16


def test_experts_are_dispatched_and_combined() -> None:
    layer = transformer_layer(replace(PLAIN, ffn=0, moe=MoeSpec(experts=6, top_k=2, width=16)))
    kinds = [op.kind for op in layer.ops]
    assert kinds.count(OpKind.ROUTER) == kinds.count(OpKind.DISPATCH) == 1
    assert kinds.index(OpKind.ROUTER) < kinds.index(OpKind.DISPATCH)
    assert kinds.index(OpKind.DISPATCH) < kinds.index(OpKind.GROUPED_MATMUL)
    assert kinds[-2] is OpKind.COMBINE


def test_standard_layout_of_the_axes() -> None:
    layer = transformer_layer(replace(PLAIN, ffn=0, moe=MoeSpec(experts=6, top_k=2, width=16)))
    splits = {axis.name: axis.split for axis in layer.axes}
    assert splits[BATCH] is Split.DATA
    assert splits[SEQ] is Split.CONTEXT
    assert splits["keys"] is None
    assert splits["head"] is splits["kv_head"] is Split.TENSOR
    assert splits["moe_expert"] is Split.EXPERT
    assert splits["moe_expert_ffn"] is Split.EXPERT_TENSOR
    assert splits["hidden"] is splits["head_dim"] is None


def test_grouped_keys_are_smaller_than_queries() -> None:
    layer = transformer_layer(PLAIN)
    assert layer.tensor("key").dims == (BATCH, SEQ, "kv_head", "head_dim")
    assert layer.tensor("query").dims == (BATCH, SEQ, "head", "head_dim")


def test_equal_layers_share_one_block() -> None:
    wide = replace(PLAIN, ffn=64)
    layers = transformer_layers([PLAIN, PLAIN, wide, PLAIN])
    assert layers[0] is layers[1] is layers[3]
    assert layers[2].parameter_count() == PLAIN_COUNT + 3 * 32 * 16


# -- ends ----------------------------------------------------------------------------------


def test_embeddings() -> None:
    assert embedding_block(vocab=100, hidden=32).parameter_count() == 3200
    full = embedding_block(
        vocab=100, hidden=32, positions=10, token_types=2, norm=True, dropout=True
    )
    assert full.parameter_count() == 3200 + 320 + 64 + 64
    assert full.role is BlockRole.EMBEDDING
    narrow = embedding_block(vocab=100, hidden=32, table_width=8)
    assert narrow.parameter_count() == 800 + 8 * 32
    assert embedding_block(vocab=100, hidden=32, table_width=32).parameter_count() == 3200


def test_heads() -> None:
    head = head_block(vocab=100, hidden=32, tied=False)
    assert head.parameter_count() == 32 + 3200
    tied = head_block(vocab=100, hidden=32, tied=True)
    assert tied.parameter_count() == 32
    assert tied.tensor("logits.weight").tied_to == TOKEN_TABLE
    assert head_block(vocab=100, hidden=32, tied=True, norm=False).parameter_count() == 0
    rich = head_block(vocab=100, hidden=32, tied=True, norm_bias=True, bias=True, table_width=8)
    assert rich.parameter_count() == 64 + 32 * 8 + 100


def test_the_tied_table_exists_where_the_head_looks_for_it() -> None:
    block_name, _, tensor = TOKEN_TABLE.partition(".")
    table = embedding_block(vocab=100, hidden=32)
    assert table.name == block_name
    assert table.tensor(tensor).dims == ("vocab", "hidden")


def test_logits_and_loss_are_kept_in_fp32_once() -> None:
    head = head_block(vocab=100, hidden=32, tied=False)
    kept = {tensor.name: tensor for tensor in saved(head, fused=True)}
    assert kept["loss_probabilities"].dtype is Dtype.FP32
    assert set(kept) == {"x", "final_norm", "logits", "loss_probabilities"}


def test_masked_token_head() -> None:
    head = masked_lm_head_block(vocab=100, hidden=32, tied=True)
    # A dense layer with bias, a norm, and the logits' bias.
    assert head.parameter_count() == 32 * 32 + 32 + 64 + 100
    pairs = masked_lm_head_block(vocab=100, hidden=32, tied=True, sentence_classes=2)
    assert pairs.parameter_count() - head.parameter_count() == 32 * 32 + 32 + 32 * 2 + 2


def test_classifier_head() -> None:
    seq = Axis(name=SEQ, size=17, split=Split.CONTEXT)
    head = classifier_head_block(classes=10, hidden=32, seq=seq)
    assert head.parameter_count() == 64 + 320 + 10
    # One row of logits per image, not one per patch.
    assert forward_flops(head, OpKind.MATMUL, batch=3, seq=999) == 2 * 3 * 32 * 10


# -- encoder and decoder ---------------------------------------------------------------------

HALF = HalfSpec(
    hidden=32,
    attention=AttentionSpec(heads=4, kv_heads=4, head_dim=8, rotary=False),
    ffn=48,
    gated=False,
    dropout=False,
    target_scale=0.5,
)


def test_halves_of_an_encoder_decoder() -> None:
    encoder = encoder_layer(HALF)
    assert encoder.parameter_count() == 4 * 1024 + 2 * 1536 + 64
    decoder = decoder_layer(HALF)
    assert decoder.parameter_count() == encoder.parameter_count() + 4 * 1024 + 32
    first = decoder_layer(replace(HALF, position_buckets=6, vocab=100))
    assert first.parameter_count() == decoder.parameter_count() + 6 * 4 + 32
    assert decoder.inputs == ("encoder_output", "x")
    assert first.inputs == ("encoder_output", "tokens")


def test_cross_attention_is_between_both_lengths() -> None:
    decoder = decoder_layer(HALF)
    sizes = decoder.sizes(batch=1, seq_length=20)
    cross = next(op for op in decoder.ops if op.name == "cross_attention")
    assert cross.flops(sizes, length=20) == 4 * 10 * 20 * 32
    own = next(op for op in decoder.ops if op.name == "attention")
    assert own.flops(sizes, length=10) == pytest.approx(4 * 10 * 10 * 32 * 55 / 100)


# -- the builder itself ------------------------------------------------------------------------


def test_a_builder_refuses_contradictions() -> None:
    b = BlockBuilder("block", BlockRole.LAYER)
    b.axis("hidden", 4)
    assert b.axis("hidden", 4) == "hidden"
    with pytest.raises(ModelError, match="is both"):
        b.axis("hidden", 5)
    b.input("x", (BATCH, SEQ, "hidden"))
    with pytest.raises(ModelError, match="declared twice"):
        b.activation("x", (BATCH,))


def test_a_block_keeps_only_axes_in_use() -> None:
    b = BlockBuilder("block", BlockRole.LAYER, seq=seq_axis(scale=0.5))
    b.axis("hidden", 4)
    b.axis("idle", 9)
    out = b.norm("norm", b.input("x", (BATCH, SEQ, "hidden")), over="hidden")
    built = b.build(output=out)
    assert {axis.name for axis in built.axes} == {BATCH, SEQ, "hidden"}
    assert built.axis(SEQ).scale == 0.5
