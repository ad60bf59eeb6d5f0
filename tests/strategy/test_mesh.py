"""The abstract mesh: strides and groups."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from meshwright.errors import StrategyError
from meshwright.strategy import AXIS_ORDERS, MESH_AXES, Mesh, check_axis_order, mesh_of

orders = st.sampled_from(AXIS_ORDERS)
sizes = st.tuples(*[st.integers(1, 4)] * 4)


def test_there_are_24_orders_and_the_usual_one_comes_first():
    assert len(set(AXIS_ORDERS)) == 24
    assert AXIS_ORDERS[0] == MESH_AXES == ("tensor", "context", "data", "pipeline")


def test_groups_by_hand():
    # tensor 2, data 3, pipeline 2: ranks 0 1 | 2 3 | 4 5 || 6 7 | 8 9 | 10 11.
    mesh = Mesh(order=MESH_AXES, sizes=(2, 1, 3, 2))
    assert mesh.num_ranks == 12
    assert [mesh.stride(axis) for axis in MESH_AXES] == [1, 2, 2, 6]
    assert mesh.ranks("tensor", 9) == (8, 9)
    assert mesh.ranks("data", 9) == (7, 9, 11)
    assert mesh.ranks("pipeline", 9) == (3, 9)
    assert mesh.ranks("context", 9) == (9,)


@given(orders, sizes)
def test_groups_along_an_axis_partition_the_ranks(order, degrees):
    mesh = Mesh(order=order, sizes=degrees)
    for axis in order:
        groups = {mesh.ranks(axis, rank) for rank in range(mesh.num_ranks)}
        assert sorted(r for group in groups for r in group) == list(range(mesh.num_ranks))
        assert {len(group) for group in groups} == {mesh.size(axis)}
        assert all(rank in mesh.ranks(axis, rank) for rank in range(mesh.num_ranks))


@given(orders, sizes)
def test_ranks_count_through_the_axes_innermost_first(order, degrees):
    mesh = Mesh(order=order, sizes=degrees)
    outermost_first = product(*(range(size) for size in reversed(degrees)))
    for rank, coordinates in enumerate(outermost_first):
        for axis, place in zip(reversed(order), coordinates, strict=True):
            assert mesh.ranks(axis, rank)[place] == rank


def test_mesh_of_takes_degrees_in_any_order():
    degrees = {"pipeline": 5, "data": 4, "context": 3, "tensor": 2}
    assert mesh_of(("data", "pipeline", "tensor", "context"), degrees).sizes == (4, 5, 2, 3)


@pytest.mark.parametrize("order", [(), ("tensor", "tensor", "data", "pipeline"), ("tensor", "x")])
def test_refuses_other_orders(order):
    with pytest.raises(StrategyError) as caught:
        check_axis_order(order)
    assert "tensor-context-data-pipeline" in caught.value.allowed
    with pytest.raises(StrategyError):
        Mesh(order=order, sizes=(1,) * len(order))
