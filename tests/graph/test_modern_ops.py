"""Operations of today's families, by hand on small numbers."""

from __future__ import annotations

import itertools

import pytest

from meshwright.graph import BATCH, SEQ, Block, BlockRole, Mask, OpKind, Split, axis_length
from meshwright.graph.builders import BlockBuilder
from meshwright.graph.builders.audio import (
    AudioSpec,
    audio_embedding,
    audio_projector,
    conformer_layer,
)
from meshwright.graph.builders.hyper import STREAM, hyper_branch
from meshwright.graph.builders.layer import Branch, residual_layer
from meshwright.graph.builders.linear_attention import (
    DeltaNetSpec,
    LightningSpec,
    gated_delta_net,
    kimi_delta_attention,
    lightning_attention,
)
from meshwright.graph.builders.mamba import Mamba2Spec, mamba2
from meshwright.graph.builders.mamba1 import Mamba1Spec, mamba1
from meshwright.graph.builders.mla import MlaSpec, latent_attention
from meshwright.graph.builders.pooled_attention import PooledSpec, pooled_attention
from meshwright.graph.builders.sparse import IndexerSpec
from meshwright.graph.builders.vision import MergerSpec, TowerSpec, merger_block, tower_layer

from .modern import cases, elements, flops, model  # noqa: TID252 - importlib mode

HIDDEN = 10


def layer(mixer: Branch) -> Block:
    return residual_layer("layer", hidden=HIDDEN, mixer=mixer, feed_forward=None)


def mla(*, top_k: int | None = None) -> Block:
    spec = MlaSpec(
        heads=4,
        query_rank=6,
        kv_rank=5,
        nope_dim=3,
        rope_dim=2,
        value_dim=8,
        mask=Mask(top_k=top_k),
        indexer=IndexerSpec(heads=3, head_dim=8, top_k=top_k) if top_k else None,
    )
    return layer(lambda b, x: latent_attention(b, x, spec))


def test_latent_attention_by_hand() -> None:
    block = mla()
    # 10x6, norm 6, 6x4x5; 10x5, 10x2, norm 5, 5x4x3, 5x4x8; 4x8x10; norm 10 of the layer.
    parts = (60, 6, 120, 50, 20, 5, 60, 160, 320, 10)
    assert block.parameter_count() == sum(parts)
    # Causal over 8 tokens: 36 pairs; scores of width 5 and values of width 8, 4 heads.
    assert flops(block, "attention", batch=1, length=8) == 36 * 4 * (2 * 5 + 2 * 8)
    assert flops(block, "key_up", batch=3, length=8) == 2 * 3 * 8 * 5 * 4 * 3
    attention = next(op for op in block.ops if op.name == "attention")
    assert set(attention.saved) == {"query", "key", "value_up", "context"}


def test_the_ranks_stay_whole_and_the_heads_split() -> None:
    block = mla()
    assert block.axis("head").split is not None
    assert block.axis("query_rank").split is None
    assert block.axis("kv_rank").split is None


def test_sparse_attention_by_hand() -> None:
    block = mla(top_k=2)
    dense = mla()
    # Indexer: queries 6x3x8, keys 10x8 and their norm with shift, weights 10x3.
    assert block.parameter_count() - dense.parameter_count() == 144 + 80 + 16 + 30
    # The indexer scores every pair, 3 heads of width 8 and a weighted sum over the heads.
    assert flops(block, "index", batch=1, length=8) == 36 * 3 * (2 * 8 + 2)
    # Two keys per query but for the first, which has one: 15 of the 36 pairs. The keys are the
    # latent vectors: scores of width 5 + 2, values of width 5.
    assert flops(block, "attention", batch=1, length=8) == pytest.approx(15 * 4 * (14 + 10))
    # Expanding queries and outputs costs what expanding keys and values does.
    for name in ("key_up", "value_up"):
        assert flops(block, name, batch=1, length=8) == flops(dense, name, batch=1, length=8)
    attention = next(op for op in block.ops if op.name == "attention")
    assert set(attention.saved) == {"query", "key", "kv_latent_norm", "context"}


def test_mamba2_by_hand() -> None:
    spec = Mamba2Spec(heads=4, head_dim=3, groups=2, state=5, kernel=3, chunk=4)
    block = layer(lambda b, x: mamba2(b, x, spec))
    # In: gate and x 12 each, B and C 10 each, step 4, all from 10.
    # Convolution of 32 channels: 3 taps and a bias. A, D and step bias; norm 12; out 12x10.
    assert block.parameter_count() == 10 * 48 + 32 * 4 + 3 * 4 + 12 + 120 + 10
    tokens, chunks = 8, 2
    by_hand = (
        2 * tokens * 4 * 2 * 5  # scores of a chunk, per group
        + 2 * tokens * 4 * 4 * 3  # inside a chunk
        + 4 * tokens * 4 * 3 * 5  # states of a chunk, and output from earlier ones
        + 2 * chunks * 4 * 3 * 5  # passing states on
        + 2 * tokens * 4 * 3  # skip
    )
    assert flops(block, "ssm_scan", batch=1, length=tokens) == by_hand
    scan = next(op for op in block.ops if op.name == "ssm_scan")
    assert scan.kind is OpKind.SCAN
    states = block.tensor("ssm_states")
    assert axis_length(block.axis(states.dims[1]), batch=1, seq_length=tokens) == chunks
    assert states.name in scan.saved_unfused


def test_gated_delta_net_by_hand() -> None:
    spec = DeltaNetSpec(key_heads=2, key_dim=3, value_heads=4, value_dim=5, kernel=3, chunk=4)
    block = layer(lambda b, x: gated_delta_net(b, x, spec))
    # Queries and keys 6 each, values and gate 20 each, two scalars per value head.
    # Convolution of 32 channels; decay and bias per head; norm of one head; out 20x10.
    assert block.parameter_count() == 10 * (12 + 40 + 8) + 32 * 3 + 8 + 5 + 200 + 10
    tokens, heads, chunk, key, value = 8, 4, 4, 3, 5
    by_hand = tokens * heads * (chunk * (6 * key + 4 * value) + 6 * key * value + chunk**2 / 3)
    assert flops(block, "delta_scan", batch=1, length=tokens) == pytest.approx(by_hand)


def test_lightning_attention_by_hand() -> None:
    block = layer(
        lambda b, x: lightning_attention(b, x, LightningSpec(heads=4, head_dim=3, chunk=4))
    )
    assert block.parameter_count() == 4 * 10 * 12 + 12 + 120 + 10
    assert flops(block, "linear_scan", batch=1, length=8) == 8 * 4 * (4 * 4 * 3 + 4 * 3 * 3)


def test_recurrences_grow_linearly_with_the_sequence_and_attention_does_not() -> None:
    graph = model("Qwen3.5-27B")
    linear = next(b for b in graph.blocks if b.name == "linear_decoder")
    full = next(b for b in graph.blocks if b.name == "decoder")
    one, two = (flops(linear, "delta_scan", batch=1, length=n) for n in (4096, 8192))
    assert two == pytest.approx(2 * one)
    one, two = (flops(full, "attention", batch=1, length=n) for n in (4096, 8192))
    assert two == pytest.approx(4 * one, rel=1e-3)


def pooled(*, ratio: int, top_k: int | None) -> Block:
    spec = PooledSpec(
        heads=4,
        head_dim=6,
        query_rank=5,
        groups=2,
        group_rank=3,
        window=2,
        ratio=ratio,
        indexer=IndexerSpec(heads=3, head_dim=4, top_k=top_k) if top_k else None,
    )
    return layer(lambda b, x: pooled_attention(b, x, spec))


def test_pooled_attention_by_hand() -> None:
    plain, heavy, sparse = (
        pooled(ratio=0, top_k=None),
        pooled(ratio=4, top_k=None),
        pooled(ratio=4, top_k=2),
    )
    # Queries 10x5, norm 5, 5x24; keys 10x6, norm 6; sinks 4; out 2x12x3 and 6x10; norm 10.
    assert plain.parameter_count() == 50 + 5 + 120 + 60 + 6 + 4 + 72 + 60 + 10
    # Pool: values and gates 10x6, a bias per slot 4x6, norm 6.
    assert heavy.parameter_count() - plain.parameter_count() == 120 + 24 + 6
    # Overlapping groups double these widths; the indexer pools its own keys of width 4.
    index = 2 * 10 * 8 + 4 * 8 + 4 + 5 * 3 * 4 + 10 * 3
    assert sparse.parameter_count() - plain.parameter_count() == 240 + 48 + 6 + index
    # 16 tokens, 4 heads of width 6: a window of 2, and the pooled keys seen so far: of 4
    # groups a query sees 2.5 on average, or 1.75 when it may choose 2.
    assert flops(heavy, "attention", batch=1, length=16) == pytest.approx(
        4 * 16 * 4 * 6 * (2 + 2.5)
    )
    assert flops(sparse, "attention", batch=1, length=16) == pytest.approx(
        4 * 16 * 4 * 6 * (2 + 1.75)
    )
    # The indexer scores all pooled keys.
    assert flops(sparse, "index", batch=1, length=16) == pytest.approx(16 * 2.5 * 3 * (2 * 4 + 2))


def test_hyper_connections_by_hand() -> None:
    b = BlockBuilder("layer", BlockRole.LAYER)
    b.axis("hidden", HIDDEN)
    x = b.input("x", (BATCH, SEQ, b.axis(STREAM, 3), "hidden"))
    x = hyper_branch(b, x, lambda _, y: y, label="attention", streams=3)
    block = b.build(output=x)
    # 3 streams: a projection of 30 to 3 x 5 weights, 15 biases, 3 gains, and the norm.
    assert block.parameter_count() == 30 * 15 + 15 + 3 + 10
    assert flops(block, "attention_mix", batch=2, length=4) == 2 * 8 * 30 * 15


def test_vision_layer_and_merger_by_hand() -> None:
    spec = TowerSpec(patches=16, hidden=12, heads=3, head_dim=4, ffn=20)
    block = tower_layer(spec)
    assert block.parameter_count() == 4 * (144 + 12) + (12 * 20 + 20) + (20 * 12 + 12) + 48
    # The tower's sequence is its own, whatever the text's is.
    assert flops(block, "attention", batch=1, length=99) == 16 * 16 * 3 * (2 * 4 + 2 * 4)
    merger = MergerSpec(patches=16, hidden=12, merge=4, widths=(48, 30), norm="patch")
    merged = merger_block(merger)
    assert merged.parameter_count() == 24 + 48 * 48 + 48 + 48 * 30 + 30
    assert flops(merged, "projector_1", batch=1, length=99) == 2 * 4 * 48 * 30


def test_audio_tower_by_hand() -> None:
    spec = AudioSpec(
        tokens=10,
        hidden=12,
        heads=3,
        channels=(8, 5),
        kernel=3,
        window=4,
        output=7,
        text=20,
    )
    embedding = audio_embedding(spec)
    # 3x3 taps from 1 to 8 and from 8 to 5 channels, a norm each, 2 bands x 5 channels to 12.
    assert embedding.parameter_count() == 72 + 8 + 360 + 5 + 10 * 12
    # 4 frames of 128 bands a token: 2 x 64 positions, then 1 x 32.
    assert flops(embedding, "conv_1", batch=1, length=99) == 2 * 10 * 128 * 9 * 8
    assert flops(embedding, "conv_2", batch=1, length=99) == 2 * 10 * 32 * 9 * 8 * 5
    block = conformer_layer(spec)
    halves = 2 * (2 * 12 * 48 + 24)
    attention = 5 * 144 + 4 + 24
    convolution = 2 * 144 + 36 + 144 + 24
    assert block.parameter_count() == halves + attention + convolution + 12
    assert audio_projector(spec).parameter_count() == 12 * 7 + 7 + 7 * 20


def test_deepstack_tokens_leave_and_the_patches_go_on() -> None:
    graph = model("Qwen3-VL-8B")
    names = [run.block.name for run in graph.runs]
    assert names.count("vision_deepstack") == 3
    deep = next(b for b in graph.blocks if b.name == "vision_deepstack")
    assert deep.output == "x"
    assert elements(deep, "merge_norm.weight") == 4 * 1152


@pytest.mark.parametrize("name", cases())
def test_operands_run_along_axes_of_the_length_of_their_tensor(name: str) -> None:
    for block in model(name).blocks:
        sizes = block.sizes(batch=2, seq_length=1024)
        for op in block.ops:
            assert op.flops(sizes, length=1024) >= 0
            for operand in op.inputs + op.outputs:
                dims = block.tensor(operand.tensor).dims
                for axis, dim in zip(operand.axes, dims, strict=True):
                    assert sizes[axis] == sizes[dim], (block.name, op.name, axis, dim)


@pytest.mark.parametrize("name", cases())
def test_every_block_takes_what_the_one_before_hands_on(name: str) -> None:
    """Along the language model and along the tower, apart from where the two meet."""
    blocks = [run.block for run in model(name).runs]
    for before, after in itertools.pairwise(blocks):
        if {before.role, after.role} != {BlockRole.LAYER} or after.inputs[0] != "x":
            continue
        if before.name in ("vision_merger", "audio_projector"):
            continue
        out = [before.axis(d).size for d in before.tensor(before.output).dims]
        into = [after.axis(d).size for d in after.tensor("x").dims]
        assert out == into, (before.name, after.name)


@pytest.mark.parametrize("name", cases())
def test_matrices_do_two_operations_per_parameter_and_token(name: str) -> None:
    """Contractions with a learned weight, experts by their choice: 2 x tokens x parameters."""
    batch, length = 2, 256
    for block in model(name).blocks:
        sizes = block.sizes(batch=batch, seq_length=length)
        for op in block.ops:
            if op.kind not in (OpKind.MATMUL, OpKind.GROUPED_MATMUL, OpKind.CONV):
                continue
            if op.kind is OpKind.CONV and block.name == "audio_embedding":
                continue  # applied at many positions of a token; worked by hand above
            x, weight = op.inputs[0], op.inputs[1]
            tokens = 1.0
            for axis in x.axes:
                if axis not in weight.axes:
                    tokens *= sizes[axis]
            active = elements(block, weight.tensor)
            for axis in weight.axes:
                if block.axis(axis).split == "expert":
                    active //= block.axis(axis).size or 1
            assert op.flops(sizes, length=length) == pytest.approx(2 * tokens * active), op.name


@pytest.mark.parametrize("name", cases())
def test_recurrences_and_attention_reduce_nothing_along_heads(name: str) -> None:
    """Heads run side by side: only the projection behind them sums over ranks."""
    for block in model(name).blocks:
        for op in block.ops:
            if op.kind in (OpKind.SCAN, OpKind.ATTENTION):
                split = {a for a in op.reductions if block.axis(a).split is Split.TENSOR}
                assert not split, (block.name, op.name)


def test_mamba_of_the_first_kind_by_hand() -> None:
    spec = Mamba1Spec(inner=6, state=4, rank=3, kernel=2)
    block = layer(lambda b, x: mamba1(b, x, spec))
    # In 10x12, convolution 6x2 and bias, step 6x3, B and C 6x4, back 3x6 and bias, A 6x4, D 6.
    parts = (120, 18, 18, 48, 24, 24, 6, 60, 10)
    assert block.parameter_count() == sum(parts)
    assert flops(block, "ssm_scan", batch=1, length=8) == 8 * 6 * (8 * 4 + 2)


def test_kimi_delta_attention_decays_per_channel() -> None:
    spec = DeltaNetSpec(key_heads=4, key_dim=3, value_heads=4, value_dim=3, kernel=2, chunk=4)
    block = layer(lambda b, x: kimi_delta_attention(b, x, spec))
    # Queries, keys, values 36; write 4; two ranks of 3 and back to 12; A 4, bias 12; norm 3.
    parts = (10 * 36, 36 * 2, 10 * 4, 2 * (10 * 3 + 3 * 12), 4 + 12, 3, 120, 10)
    assert block.parameter_count() == sum(parts)
    assert block.tensor("delta_decay").dims[2:] == ("delta_head", "delta_key_dim")
    by_hand = 8 * 4 * (4 * 10 * 3 + 6 * 9 + 16 / 3)
    assert flops(block, "delta_scan", batch=1, length=8) == pytest.approx(by_hand)
