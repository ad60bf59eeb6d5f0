"""Masks, ops, blocks, folding: by brute force and by hand."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

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
    Mask,
    ModelGraph,
    Op,
    Operand,
    OpKind,
    Role,
    Run,
    Split,
    Tensor,
    Term,
    axis_length,
    backward_factor,
    batch_axis,
    fold,
    seq_axis,
)

# -- masks -------------------------------------------------------------------------------


def seen(mask: Mask, query: int, length: int) -> int:
    """Keys that a query sees, counted one by one."""
    keys = [
        key
        for key in range(length)
        if (not mask.causal or key <= query)
        and (mask.chunk is None or key // mask.chunk == query // mask.chunk)
    ]
    limits = [limit for limit in (mask.window, mask.top_k) if limit is not None]
    return min([len(keys), *limits])


@given(
    length=st.integers(1, 40),
    causal=st.booleans(),
    window=st.none() | st.integers(1, 50),
    chunk=st.none() | st.integers(1, 50),
    top_k=st.none() | st.integers(1, 50),
)
def test_density_is_the_counted_share(
    length: int, causal: bool, window: int | None, chunk: int | None, top_k: int | None
) -> None:
    mask = Mask(causal=causal, window=window, chunk=chunk, top_k=top_k)
    pairs = sum(seen(mask, query, length) for query in range(length))
    assert mask.density(length) == pytest.approx(pairs / length**2)


@given(pooled=st.integers(1, 30), stride=st.integers(1, 8))
def test_density_of_pooled_keys_per_group_of_queries(pooled: int, stride: int) -> None:
    # All queries of a group see the pooled keys up to their own.
    pairs = sum(group + 1 for group in range(pooled)) * stride
    length = pooled * stride
    assert Mask(stride=stride).density(length) == pytest.approx(pairs / length**2)


def test_density_worked_by_hand() -> None:
    # Queries of 8 tokens with a window of 3 see 1, 2, 3, 3, 3, 3, 3, 3 keys: 21 of 64.
    assert Mask(window=3).density(8) == 21 / 64
    # Chunks of 4 in 10 tokens: 10 + 10 + 3 pairs.
    assert Mask(chunk=4).density(10) == 23 / 100
    assert Mask().density(4) == 10 / 16


# -- ops -----------------------------------------------------------------------------------


def contraction() -> Op:
    return Op(
        name="up",
        kind=OpKind.MATMUL,
        inputs=(
            Operand(tensor="x", axes=(BATCH, SEQ, "hidden")),
            Operand(tensor="w", axes=("hidden", "ffn")),
        ),
        outputs=(Operand(tensor="y", axes=(BATCH, SEQ, "ffn")),),
        terms=(Term(factor=2.0, axes=(BATCH, SEQ, "hidden", "ffn")),),
        saved=("x",),
    )


def test_axes_and_reductions_of_a_contraction() -> None:
    op = contraction()
    assert op.axes == {BATCH, SEQ, "hidden", "ffn"}
    assert op.reductions == {"hidden"}


def test_flops_of_a_contraction() -> None:
    sizes = {BATCH: 2.0, SEQ: 8.0, "hidden": 16.0, "ffn": 64.0}
    assert contraction().flops(sizes, length=8) == 2 * 2 * 8 * 16 * 64


def test_masked_terms_follow_the_density() -> None:
    op = Op(
        name="attention",
        kind=OpKind.ATTENTION,
        inputs=(),
        outputs=(),
        terms=(Term(factor=2.0, axes=("a",), masked=True), Term(factor=1.0, axes=("a",))),
        mask=Mask(window=1),
    )
    assert op.flops({"a": 100.0}, length=4) == 2 * 100 * 0.25 + 100


def test_backward_repeats_a_contraction_once_per_operand() -> None:
    op = contraction()
    assert backward_factor(op, learned=True) == 2.0
    assert backward_factor(op, learned=False) == 1.0
    attention = replace(op, kind=OpKind.ATTENTION)
    assert backward_factor(attention, learned=False) == 2.0


# -- axes ----------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [0, -1])
def test_an_axis_has_a_positive_size(size: int) -> None:
    with pytest.raises(ModelError, match=f"'hidden' has size {size}"):
        Axis(name="hidden", size=size)


def test_length_of_an_axis() -> None:
    assert axis_length(Axis(name="h", size=7), batch=2, seq_length=9) == 7
    assert axis_length(batch_axis(), batch=2, seq_length=9) == 2
    assert axis_length(seq_axis(), batch=2, seq_length=9) == 9
    assert axis_length(seq_axis(scale=0.25), batch=2, seq_length=100) == 25
    assert axis_length(seq_axis(scale=0.25), batch=2, seq_length=1) == 1


# -- blocks ----------------------------------------------------------------------------------


def block(**changes: object) -> Block:
    fields = {
        "name": "mlp",
        "role": BlockRole.LAYER,
        "axes": (
            batch_axis(),
            seq_axis(),
            Axis(name="hidden", size=16),
            Axis(name="ffn", size=64, split=Split.TENSOR),
        ),
        "tensors": (
            Tensor(name="x", dims=(BATCH, SEQ, "hidden")),
            Tensor(name="w", dims=("hidden", "ffn"), role=Role.PARAMETER),
            Tensor(name="y", dims=(BATCH, SEQ, "ffn")),
        ),
        "ops": (contraction(),),
        "inputs": ("x",),
        "output": "y",
    }
    return Block(**{**fields, **changes})


def test_a_block_counts_its_parameters() -> None:
    assert block().parameter_count() == 16 * 64
    assert block().active_parameter_count() == 16 * 64
    assert [t.name for t in block().parameters] == ["w"]
    assert block().axis("ffn").size == 64
    assert block().tensor("y").dims == (BATCH, SEQ, "ffn")
    assert block().sizes(batch=2, seq_length=5) == {BATCH: 2, SEQ: 5, "hidden": 16, "ffn": 64}


def test_a_tied_parameter_counts_where_it_is_stored() -> None:
    tensors = block().tensors
    tied = replace(tensors[1], tied_to="embedding.token_embedding.weight")
    assert block(tensors=(tensors[0], tied, tensors[2])).parameter_count() == 0


def test_active_parameters_of_experts() -> None:
    experts = (
        *block().axes,
        Axis(name="expert", size=8, split=Split.EXPERT),
    )
    tensors = block().tensors
    weight = replace(tensors[1], dims=("expert", "hidden", "ffn"))
    routed = replace(
        contraction(),
        inputs=(
            Operand(tensor="x", axes=(BATCH, SEQ, "hidden")),
            Operand(tensor="w", axes=("expert", "hidden", "ffn")),
        ),
    )
    moe = block(
        axes=experts, tensors=(tensors[0], weight, tensors[2]), ops=(routed,), active_experts=2
    )
    assert moe.parameter_count() == 8 * 16 * 64
    assert moe.active_parameter_count() == 2 * 16 * 64


def test_a_block_names_each_thing_once() -> None:
    with pytest.raises(ModelError, match="twice"):
        block(axes=(*block().axes, Axis(name="ffn", size=64)))
    with pytest.raises(ModelError, match="twice"):
        block(tensors=(*block().tensors, Tensor(name="x", dims=())))


def test_a_tensor_runs_along_known_axes() -> None:
    with pytest.raises(ModelError, match="unknown axes"):
        block(tensors=(*block().tensors, Tensor(name="z", dims=("nowhere",))))


def test_an_op_reads_what_is_made() -> None:
    with pytest.raises(ModelError, match="before it is made"):
        block(inputs=())


def test_an_op_names_known_tensors_and_axes() -> None:
    op = contraction()
    with pytest.raises(ModelError, match="unknown tensor"):
        block(ops=(replace(op, outputs=(Operand(tensor="z", axes=(BATCH,)),)),))
    with pytest.raises(ModelError, match="gives 1 axes"):
        block(ops=(replace(op, outputs=(Operand(tensor="y", axes=(BATCH,)),)),))
    with pytest.raises(ModelError, match="unknown axes"):
        block(ops=(replace(op, terms=(Term(factor=1.0, axes=("nowhere",)),)),))


def test_a_parameter_has_no_dimension_of_the_workload() -> None:
    tensors = block().tensors
    bound = replace(tensors[1], dims=(SEQ, "ffn"))
    whole = block(tensors=(tensors[0], bound, tensors[2]))
    with pytest.raises(ModelError, match="the workload binds"):
        whole.parameter_count()


# -- folding -----------------------------------------------------------------------------------


@given(st.lists(st.sampled_from("abc"), min_size=1, max_size=30))
def test_folding_loses_nothing(names: list[str]) -> None:
    blocks = [block(name=name) for name in names]
    runs = fold(blocks)
    assert [run.block for run in runs for _ in range(run.count)] == blocks
    assert all(a.block != b.block for a, b in pairwise(runs))


def graph(*runs: Run) -> ModelGraph:
    return ModelGraph(name="m", family="test", runs=runs)


def test_a_model_keeps_its_layers_in_order() -> None:
    a, b = block(name="a"), block(name="b")
    model = graph(Run(block=a, count=3), Run(block=b, count=1), Run(block=a, count=2))
    assert model.blocks == (a, b)
    assert model.sequence(BlockRole.LAYER) == (0, 0, 0, 1, 0, 0)
    assert model.num_layers == 6
    assert model.parameter_count() == 6 * 16 * 64


def test_a_model_has_layers_between_its_ends() -> None:
    head = block(name="head", role=BlockRole.HEAD)
    with pytest.raises(ModelError, match="no layers"):
        graph(Run(block=head, count=1))
    with pytest.raises(ModelError, match="out of order"):
        graph(Run(block=head, count=1), Run(block=block(), count=1))


def test_equal_blocks_are_one_even_when_built_apart() -> None:
    model = graph(
        Run(block=block(name="a"), count=1),
        Run(block=block(name="b"), count=1),
        Run(block=block(name="a"), count=1),
    )
    assert len(model.blocks) == 2
    assert model.sequence(BlockRole.LAYER) == (0, 1, 0)
