"""Shapes: every way to factor the devices into degrees and lay them out, as columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from meshwright.cluster import Cluster, Level
from meshwright.cost.local import BoolArray, IntArray, distinct
from meshwright.cost.placement import expert_members, members
from meshwright.search.facts import ModelFacts
from meshwright.search.rules import MIN_CONTEXT_CHUNK, RULE_INDEX
from meshwright.strategy import MESH_AXES, ContextAlgorithm, Space

#: A tensor group beyond the scale-up domain is tried up to this degree (small nodes).
MIN_TENSOR_SPAN = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Shapes:
    """Degree tuples with an axis order, as columns of equal length S."""

    tensor: IntArray
    context: IntArray
    context_algorithm: IntArray
    pipeline: IntArray
    data: IntArray
    expert: IntArray
    expert_tensor: IntArray
    order: IntArray

    def __len__(self) -> int:
        return len(self.tensor)

    def take(self, index: IntArray) -> Shapes:
        """The shapes at ``index``."""
        return Shapes(**{f.name: getattr(self, f.name)[index] for f in fields(self)})

    def columns(self) -> tuple[IntArray, ...]:
        """All columns, in field order."""
        return tuple(getattr(self, f.name) for f in fields(self))


def divisors(n: int) -> IntArray:
    """Divisors of ``n``, ascending.

    >>> divisors(12).tolist()
    [1, 2, 3, 4, 6, 12]
    """
    low = [d for d in range(1, int(n**0.5) + 1) if n % d == 0]
    return np.array(sorted({*low, *(n // d for d in low)}), dtype=np.int64)


def _allowed(values: IntArray, allowed: tuple[int, ...] | None) -> IntArray:
    return values if allowed is None else values[np.isin(values, np.array(allowed))]


def _cross(columns: Sequence[IntArray], values: IntArray) -> list[IntArray]:
    """Every row of ``columns`` with every one of ``values``, the new column last."""
    rows = len(columns[0])
    return [*(np.repeat(c, len(values)) for c in columns), np.tile(values, rows)]


def enumerate_shapes(space: Space, *, num_devices: int, facts: ModelFacts) -> Shapes:
    """All factorisations of the device count that the space allows, with every axis order.

    Pipelines longer than the model has layers are not formed; neither are expert degrees for
    a model without experts.
    """
    all_divisors = divisors(num_devices)
    pipelines = _allowed(all_divisors[all_divisors <= facts.layers], space.pipeline)
    columns: list[IntArray] = [pipelines]
    for allowed in (space.tensor, space.context):
        columns = _cross(columns, _allowed(all_divisors, allowed))
        used = np.prod(np.stack([c.astype(np.float64) for c in columns]), axis=0)
        fits = (used <= num_devices) & (num_devices % np.maximum(used, 1) == 0)
        columns = [c[fits] for c in columns]
    pipeline, tensor, context = columns
    data = num_devices // (pipeline * tensor * context)
    keep = np.ones(len(data), bool) if space.data is None else np.isin(data, space.data)
    columns = [c[keep] for c in (pipeline, tensor, context, data)]

    columns = _cross(
        columns, np.array([list(ContextAlgorithm).index(a) for a in space.context_algorithms])
    )
    first = list(ContextAlgorithm).index(space.context_algorithms[0])
    columns = [c[(columns[2] > 1) | (columns[4] == first)] for c in columns]

    experts = (
        divisors(int(np.gcd.reduce(facts.expert_lengths))) if facts.has_experts else np.array([1])
    )
    columns = _cross(columns, _allowed(experts, space.expert))
    columns = _cross(columns, _expert_tensors(space, facts, all_divisors))
    one_or_tensor = (columns[6] == 1) | (columns[6] == columns[1])
    if space.expert_tensor is not None:
        one_or_tensor = columns[1] % columns[6] == 0
    columns = [c[one_or_tensor] for c in columns]
    columns = _cross(columns, np.arange(len(space.axis_orders)))
    pipeline, tensor, context, data, algorithm, expert, expert_tensor, order = columns
    return Shapes(
        tensor=tensor,
        context=context,
        context_algorithm=algorithm,
        pipeline=pipeline,
        data=data,
        expert=expert,
        expert_tensor=expert_tensor,
        order=order,
    )


def _expert_tensors(space: Space, facts: ModelFacts, all_divisors: IntArray) -> IntArray:
    if not facts.has_experts:
        return np.array([1], dtype=np.int64)
    return _allowed(all_divisors, space.expert_tensor)


def shape_rules(shapes: Shapes, facts: ModelFacts, space: Space, cluster: Cluster) -> IntArray:
    """Index of the first rule that excludes each shape, -1 where none does: shape (S,)."""
    t, c, ep, etp = shapes.tensor, shapes.context, shapes.expert, shapes.expert_tensor
    rule = np.full(len(shapes), -1, dtype=np.int64)

    def exclude(name: str, bad: BoolArray) -> None:
        rule[(rule < 0) & bad] = RULE_INDEX[name]

    no = np.zeros(len(shapes), dtype=bool)
    span = max(MIN_TENSOR_SPAN, min(group.scale_up_size for group in cluster.groups))
    if space.tensor is None:
        exclude("tensor_span", t > span)
    exclude("tensor_divides", _any(no, [length % t != 0 for length in facts.tensor_lengths]))
    exclude(
        "tensor_divides",
        _any(no, [(n % t != 0) & (t % n != 0) for n in facts.replicable_lengths]),
    )
    exclude(
        "sequence_divides",
        _any(no, [(c > 1) & (n % (2 * c) != 0) for n in facts.sequence_lengths]),
    )
    if space.context is None:
        exclude(
            "context_chunk",
            _any(no, [(c > 1) & (n < 2 * c * MIN_CONTEXT_CHUNK) for n in facts.sequence_lengths]),
        )
    ulysses = shapes.context_algorithm == list(ContextAlgorithm).index(ContextAlgorithm.ULYSSES)
    exclude(
        "context_heads",
        _any(no, [ulysses & (c > 1) & (n % (t * c) != 0) for n in facts.head_lengths]),
    )
    exclude("expert_divides", _any(no, [n % ep != 0 for n in facts.expert_lengths]))
    exclude("expert_divides", _any(no, [n % etp != 0 for n in facts.expert_widths]))
    exclude("expert_ranks", (t * c * shapes.data) % (ep * etp) != 0)
    if not cluster.is_uniform:
        outermost = np.array([order[-1] == "pipeline" for order in space.axis_orders])
        exclude("mixed_order", ~outermost[shapes.order])
    return rule


def _any(no: BoolArray, conditions: Sequence[BoolArray]) -> BoolArray:
    found = no
    for condition in conditions:
        found = found | condition
    return found


def strides(shapes: Shapes, space: Space) -> dict[str, IntArray]:
    """Distance between neighbours along each mesh axis: shapes (S,)."""
    sizes = {axis: getattr(shapes, axis) for axis in MESH_AXES}
    result = {axis: np.ones(len(shapes), dtype=np.int64) for axis in MESH_AXES}
    for index, order in enumerate(space.axis_orders):
        chosen = shapes.order == index
        stride = np.ones(len(shapes), dtype=np.int64)
        for axis in order:
            result[axis] = np.where(chosen, stride, result[axis])
            stride = stride * sizes[axis]
    return result


@dataclass(frozen=True, slots=True, kw_only=True)
class Placements:
    """Members of every rank group per level of one device group: shapes (S, L).

    Attributes:
        tensor, context, expert: groups that communicate inside layers.
        dense, expert_data: groups that share dense and expert parameters.
        hop_extent: shape (S,); ranks from the first stage to the last.
    """

    tensor: IntArray
    context: IntArray
    expert: IntArray
    dense: IntArray
    expert_data: IntArray
    hop_extent: IntArray

    def columns(self) -> tuple[IntArray, ...]:
        """Every column of every attribute."""
        tables = (self.tensor, self.context, self.expert, self.dense, self.expert_data)
        return (*(column for table in tables for column in table.T), self.hop_extent)

    def take(self, index: IntArray) -> Placements:
        """The rows at ``index``."""
        return Placements(**{f.name: getattr(self, f.name)[index] for f in fields(self)})


def place(shapes: Shapes, space: Space, levels: Sequence[Level]) -> Placements:
    """Where the groups of every shape lie under the levels of one device group."""
    stride = strides(shapes, space)
    inner = np.ones(len(shapes), dtype=np.int64)
    for index, order in enumerate(space.axis_orders):
        inside = order[: order.index("pipeline")]
        size = np.ones(len(shapes), dtype=np.int64)
        for axis in inside:
            size = size * getattr(shapes, axis)
        inner = np.where(shapes.order == index, size, inner)
    experts = shapes.expert * shapes.expert_tensor
    ranks = shapes.tensor * shapes.context * shapes.data
    data = members(shapes.data, stride["data"], levels)
    context = members(shapes.context, stride["context"], levels)
    return Placements(
        tensor=members(shapes.tensor, stride["tensor"], levels),
        context=context,
        expert=expert_members(
            shapes.expert,
            shapes.expert_tensor,
            inner=inner,
            pipeline=shapes.pipeline,
            levels=levels,
        ),
        dense=data * context,
        expert_data=expert_members(
            ranks // experts, experts, inner=inner, pipeline=shapes.pipeline, levels=levels
        ),
        hop_extent=stride["pipeline"] * (shapes.pipeline - 1),
    )


def hop_class(extent: IntArray, levels: Sequence[Level]) -> IntArray:
    """Index of the level that a message between stages crosses: shape (S,)."""
    sizes = np.array([level.size for level in levels])
    return np.minimum(np.searchsorted(sizes, extent, side="right"), len(sizes) - 1)


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
        columns += [*placed.columns()[:-1], hop_class(placed.hop_extent, tiers)]
    first, _ = distinct(columns)
    return np.sort(first)
