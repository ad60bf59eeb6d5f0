"""Placements: where the rank groups of every shape lie under the levels of the network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from meshwright.cluster import Level
from meshwright.cost.collectives import hop_level
from meshwright.cost.local import IntArray, distinct
from meshwright.cost.placement import expert_members, members
from meshwright.search.shapes import Shapes
from meshwright.strategy import MESH_AXES, Space


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedGroup:
    """Members per level of a group that shares parameters: shapes (S, L).

    Attributes:
        ranks: all of it.
        shards: the ranks that one replica's states are divided over.
        replicas: the ranks that hold the same shard.
    """

    ranks: IntArray
    shards: IntArray
    replicas: IntArray

    def take(self, index: IntArray) -> SharedGroup:
        """The rows at ``index``."""
        return SharedGroup(
            ranks=self.ranks[index], shards=self.shards[index], replicas=self.replicas[index]
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Placements:
    """Members of every rank group per level of one device group: shapes (S, L).

    Attributes:
        tensor, context, expert: groups that communicate inside layers.
        dense, experts: groups that share dense and expert parameters.
        hop_extent: shape (S,); ranks from the first stage to the last.
    """

    tensor: IntArray
    context: IntArray
    expert: IntArray
    dense: SharedGroup
    experts: SharedGroup
    hop_extent: IntArray

    def columns(self, levels: Sequence[Level]) -> tuple[IntArray, ...]:
        """Everything that tells two placements apart, as columns of length S."""
        tables = [self.tensor, self.context, self.expert]
        for shared in (self.dense, self.experts):
            tables += [shared.ranks, shared.shards, shared.replicas]
        return (*(column for table in tables for column in table.T), self.hop_level(levels))

    def hop_level(self, levels: Sequence[Level]) -> IntArray:
        """Index of the level that a message between stages crosses: shape (S,)."""
        return hop_level(self.hop_extent, levels)

    def take(self, index: IntArray) -> Placements:
        """The rows at ``index``."""
        return Placements(
            tensor=self.tensor[index],
            context=self.context[index],
            expert=self.expert[index],
            dense=self.dense.take(index),
            experts=self.experts.take(index),
            hop_extent=self.hop_extent[index],
        )


def strides(shapes: Shapes, space: Space) -> dict[str, IntArray]:
    """Distance between neighbours along each mesh axis: shapes (S,)."""
    result = {axis: np.ones(len(shapes), dtype=np.int64) for axis in MESH_AXES}
    for index, order in enumerate(space.axis_orders):
        chosen = shapes.order == index
        stride = np.ones(len(shapes), dtype=np.int64)
        for axis in order:
            result[axis] = np.where(chosen, stride, result[axis])
            stride = stride * getattr(shapes, axis)
    return result


def place(shapes: Shapes, space: Space, levels: Sequence[Level]) -> Placements:
    """Where the groups of every shape lie under the levels of one device group."""
    stride = strides(shapes, space)
    context = members(shapes.context, stride["context"], levels)
    replica_stride = stride["data"] * shapes.data_shard
    return Placements(
        tensor=members(shapes.tensor, stride["tensor"], levels),
        context=context,
        expert=_stage_members(shapes, space, levels, shapes.expert, shapes.expert_tensor),
        dense=SharedGroup(
            ranks=members(shapes.data, stride["data"], levels) * context,
            shards=members(shapes.data_shard, stride["data"], levels) * context,
            replicas=members(shapes.replicas, replica_stride, levels),
        ),
        experts=_expert_group(shapes, space, levels),
        hop_extent=stride["pipeline"] * (shapes.pipeline - 1),
    )


def _expert_group(shapes: Shapes, space: Space, levels: Sequence[Level]) -> SharedGroup:
    """Ranks that hold the same experts: those that the expert degrees leave, inner ones shard."""
    experts = shapes.expert * shapes.expert_tensor
    ranks, replicas = shapes.expert_ranks, shapes.replicas
    shards = np.maximum(1, ranks // replicas)
    return SharedGroup(
        ranks=_stage_members(shapes, space, levels, ranks, experts),
        shards=_stage_members(shapes, space, levels, shards, experts),
        replicas=_stage_members(shapes, space, levels, ranks // shards, experts * shards),
    )


def _stage_members(
    shapes: Shapes, space: Space, levels: Sequence[Level], size: IntArray, stride: IntArray
) -> IntArray:
    """Members of a group that is strided through the ranks of one stage."""
    inner = np.ones(len(shapes), dtype=np.int64)
    for index, order in enumerate(space.axis_orders):
        inside = np.ones(len(shapes), dtype=np.int64)
        for axis in order[: order.index("pipeline")]:
            inside = inside * getattr(shapes, axis)
        inner = np.where(shapes.order == index, inside, inner)
    return expert_members(size, stride, inner=inner, pipeline=shapes.pipeline, levels=levels)


def equivalent(
    shapes: Shapes, placements: Sequence[Placements], levels: Sequence[Sequence[Level]]
) -> IntArray:
    """Indices of one shape of each set that differs in axis order only and is placed alike.

    Args:
        shapes: S shapes.
        placements: of every device group.
        levels: of every device group.
    """
    columns = list(shapes.columns()[:-1])
    for placed, tiers in zip(placements, levels, strict=True):
        columns += placed.columns(tiers)
    first, _ = distinct(columns)
    return np.sort(first)
