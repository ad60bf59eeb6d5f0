"""Group members per level against the ranks of the mesh, one by one."""

from __future__ import annotations

from collections import Counter
from dataclasses import fields
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from meshwright.cost.placement import expert_members, members
from meshwright.search.placements import place
from meshwright.search.shapes import Shapes
from meshwright.strategy import AXIS_ORDERS, Space, mesh_of

from ..strategies import flat_level  # noqa: TID252 - importlib mode

powers = st.sampled_from([1, 2, 4, 8])


def levels_of(*sizes):
    return tuple(flat_level(size) for size in sizes)


def fullest(ranks, level_size):
    """Most ranks of a group that share one domain."""
    return max(Counter(rank // level_size for rank in ranks).values())


def one_shape(degrees, **others):
    values = {f.name: 1 for f in fields(Shapes)}
    values |= {"order": 0, "context_algorithm": 0, "data_shard": degrees["data"]}
    values |= degrees | others
    return Shapes(**{name: np.array([v], dtype=np.int64) for name, v in values.items()})


def placed(degrees, order, sizes, **experts):
    space = Space(axis_orders=(order,))
    return place(one_shape(degrees, **experts), space, levels_of(*sizes))


@given(st.sampled_from(AXIS_ORDERS), powers, powers, powers, powers, powers)
def test_every_group_of_every_axis_order(order, t, c, d, p, node):
    """Powers of two: whole groups fill whole domains, so every group looks alike."""
    degrees = {"tensor": t, "context": c, "data": d, "pipeline": p}
    mesh = mesh_of(order, degrees)
    sizes = (node, max(2 * node, mesh.num_ranks))
    found = placed(degrees, order, sizes)
    for axis in ("tensor", "context"):
        for rank in range(mesh.num_ranks):
            ranks = mesh.ranks(axis, rank)
            expected = [fullest(ranks, size) for size in sizes]
            assert getattr(found, axis)[0].tolist() == expected


@given(st.sampled_from(AXIS_ORDERS), powers, powers, powers, powers, powers)
def test_ranks_that_share_dense_parameters(order, t, c, d, p, node):
    """Data x context ranks at one place of the tensor and pipeline axes."""
    degrees = {"tensor": t, "context": c, "data": d, "pipeline": p}
    mesh = mesh_of(order, degrees)
    sizes = (node, max(2 * node, mesh.num_ranks))
    found = placed(degrees, order, sizes).dense.ranks[0].tolist()
    group = {r for first in mesh.ranks("data", 0) for r in mesh.ranks("context", first)}
    assert found[-1] == len(group) == c * d
    assert found == [fullest(group, size) for size in sizes]


@given(st.sampled_from(AXIS_ORDERS), powers, powers, powers, powers, powers, powers)
def test_hybrid_sharding_stays_among_neighbours(order, t, c, d, p, node, shard):
    """Neighbours along the data axis (with their context ranks) shard; the rest replicate."""
    if d % shard:
        return
    degrees = {"tensor": t, "context": c, "data": d, "pipeline": p}
    mesh = mesh_of(order, degrees)
    sizes = (node, max(2 * node, mesh.num_ranks))
    found = placed(degrees, order, sizes, data_shard=shard).dense
    first, whole = mesh.ranks("data", 0)[:shard], mesh.ranks("data", 0)
    shards = {r for rank in first for r in mesh.ranks("context", rank)}
    assert found.shards[0].tolist() == [fullest(shards, size) for size in sizes]
    assert found.replicas[0].tolist() == [fullest(whole[::shard], size) for size in sizes]


def stage_ranks(mesh, stage):
    """Ranks of one stage, in order."""
    place_of = mesh.stride("pipeline")
    return [r for r in range(mesh.num_ranks) if r // place_of % mesh.size("pipeline") == stage]


@given(
    st.sampled_from(AXIS_ORDERS),
    powers,
    powers,
    powers,
    powers,
    st.sampled_from([1, 2, 4]),
    st.sampled_from([1, 2]),
)
def test_expert_groups_run_through_the_ranks_of_a_stage(order, t, c, d, p, ep, etp):
    degrees = {"tensor": t, "context": c, "data": d, "pipeline": p}
    if (t * c * d) % (ep * etp) or t % etp:
        return
    mesh, node = mesh_of(order, degrees), 8
    sizes = (node, max(2 * node, mesh.num_ranks))
    found = placed(degrees, order, sizes, expert=ep, expert_tensor=etp)
    for stage in range(p):
        ranks = stage_ranks(mesh, stage)
        # Ranks that hold different experts: every etp-th of a run of ep x etp.
        experts = ranks[: ep * etp : etp]
        assert found.expert[0].tolist() == [fullest(experts, size) for size in sizes]
        # Ranks that hold the same ones: every (ep x etp)-th.
        same = ranks[:: ep * etp]
        assert found.experts.ranks[0].tolist() == [fullest(same, size) for size in sizes]


def test_nodes_that_are_no_power_of_two():
    # Groups of 4 neighbours under nodes of 6: the first node holds one whole group.
    assert members(np.array([4]), np.array([1]), levels_of(6, 24)).tolist() == [[4, 4]]
    # Every 4th of 8 ranks: 6 // 4 = 1 per node.
    assert members(np.array([2]), np.array([4]), levels_of(6, 24)).tolist() == [[1, 2]]


def test_members_never_fall_along_levels_and_end_with_the_group():
    grid = np.array(list(product([1, 2, 4, 8, 64], [1, 2, 8, 32, 100])))
    found = members(grid[:, 0], grid[:, 1], levels_of(4, 8, 64, 8192))
    assert (np.diff(found, axis=1) >= 0).all()
    assert (found[:, -1] == grid[:, 0]).all()
    assert found.min() == 1


def test_expert_groups_of_one_piece_are_as_any_strided_group():
    size, stride = np.array([1, 2, 4, 8]), np.array([1, 1, 2, 4])
    one, levels = np.ones(4, dtype=np.int64), levels_of(8, 64)
    found = expert_members(size, stride, inner=64 * one, pipeline=one, levels=levels)
    assert (found == members(size, stride, levels)).all()


@pytest.mark.parametrize(
    ("order", "level"),
    [
        (("tensor", "context", "data", "pipeline"), 1),
        (("pipeline", "tensor", "context", "data"), 0),
        (("tensor", "pipeline", "context", "data"), 0),
    ],
)
def test_which_level_the_stages_cross(order, level):
    # tensor 2, data 4, pipeline 4 on nodes of 8: with the pipeline outermost the stages are 8
    # apart; with it second, stages 0 to 3 are ranks 0, 2, 4, 6 of one node.
    degrees = {"tensor": 2, "context": 1, "data": 4, "pipeline": 4}
    found = placed(degrees, order, (8, 32))
    assert found.hop_level(levels_of(8, 32)).tolist() == [level]
