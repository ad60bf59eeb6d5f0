"""Shapes: every way to factor the devices into degrees and lay them out, as columns."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from meshwright.cluster import Cluster
from meshwright.cost.local import BoolArray, IntArray
from meshwright.search.facts import ModelFacts
from meshwright.search.rules import MIN_CONTEXT_CHUNK, RULE_INDEX
from meshwright.strategy import ContextAlgorithm, Space

#: A tensor group beyond the scale-up domain is tried up to this degree (small nodes).
MIN_TENSOR_SPAN = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Shapes:
    """Degree tuples with an axis order, as columns of equal length S.

    Attributes:
        tensor, sequence_parallel, context, pipeline, data, expert, expert_tensor: degrees
            (``sequence_parallel`` is 0 or 1).
        data_shard: ranks of the data axis that shard one replica's states; divides ``data``.
        context_algorithm: index into ``list(ContextAlgorithm)``.
        order: index into the space's axis orders.
    """

    tensor: IntArray
    sequence_parallel: IntArray
    context: IntArray
    context_algorithm: IntArray
    pipeline: IntArray
    data: IntArray
    data_shard: IntArray
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

    @property
    def stage_ranks(self) -> IntArray:
        """Ranks of one stage: shape (S,)."""
        return self.tensor * self.context * self.data

    @property
    def expert_ranks(self) -> IntArray:
        """Ranks that hold the same experts: shape (S,)."""
        return self.stage_ranks // (self.expert * self.expert_tensor)

    @property
    def replicas(self) -> IntArray:
        """Replicas of every shard: shape (S,)."""
        return self.data // self.data_shard


def divisors(n: int) -> IntArray:
    """Divisors of ``n``, ascending.

    >>> divisors(12).tolist()
    [1, 2, 3, 4, 6, 12]
    """
    low = [d for d in range(1, int(n**0.5) + 1) if n % d == 0]
    return np.array(sorted({*low, *(n // d for d in low)}), dtype=np.int64)


def _allowed(values: IntArray, allowed: tuple[int, ...] | None) -> IntArray:
    return values if allowed is None else values[np.isin(values, np.array(allowed))]


class _Grid:
    """Named columns that grow by crossing every row with more values."""

    def __init__(self, name: str, values: IntArray) -> None:
        self.columns = {name: values.astype(np.int64)}

    def __getitem__(self, name: str) -> IntArray:
        return self.columns[name]

    def cross(self, name: str, values: IntArray) -> None:
        """Every row with every value."""
        rows = len(next(iter(self.columns.values())))
        self.columns = {n: np.repeat(c, len(values)) for n, c in self.columns.items()}
        self.columns[name] = np.tile(values.astype(np.int64), rows)

    def keep(self, where: BoolArray) -> None:
        """Drop the other rows."""
        self.columns = {n: c[where] for n, c in self.columns.items()}


def enumerate_shapes(
    space: Space, *, num_devices: int, facts: ModelFacts, shard_spans: Sequence[int]
) -> Shapes:
    """All factorisations of the device count that the space allows, with every axis order.

    Pipelines longer than the model has layers are not formed, neither are expert degrees for
    a model without experts, nor a context algorithm where no context is split.

    Args:
        space: what may vary.
        num_devices: product of the degrees.
        facts: lengths of the model's axes.
        shard_spans: devices of each inner network level: hybrid sharding may stay inside one.
    """
    all_divisors = divisors(num_devices)
    grid = _Grid("pipeline", _allowed(all_divisors[all_divisors <= facts.layers], space.pipeline))
    for name in ("tensor", "context"):
        grid.cross(name, _allowed(all_divisors, getattr(space, name)))
        used = np.prod(np.stack([c.astype(float) for c in grid.columns.values()]), axis=0)
        grid.keep((used <= num_devices) & (num_devices % np.maximum(used, 1) == 0))
    grid.columns["data"] = num_devices // (grid["pipeline"] * grid["tensor"] * grid["context"])
    if space.data is not None:
        grid.keep(np.isin(grid["data"], space.data))
    grid.cross("sequence_parallel", np.array(sorted(map(int, space.sequence_parallel))))
    _cross_context(grid, space)
    _cross_experts(grid, space, facts, all_divisors)
    _cross_shards(grid, space, shard_spans)
    grid.cross("order", np.arange(len(space.axis_orders)))
    return Shapes(**grid.columns)


def _cross_context(grid: _Grid, space: Space) -> None:
    index = list(ContextAlgorithm).index
    algorithms = np.array([index(algorithm) for algorithm in space.context_algorithms])
    grid.cross("context_algorithm", algorithms)
    grid.keep((grid["context"] > 1) | (grid["context_algorithm"] == algorithms[0]))


def _cross_experts(grid: _Grid, space: Space, facts: ModelFacts, all_divisors: IntArray) -> None:
    one = np.array([1], dtype=np.int64)
    experts = divisors(math.gcd(*facts.expert_lengths)) if facts.has_experts else one
    grid.cross("expert", _allowed(experts, space.expert))
    widths = all_divisors if facts.has_experts else one
    grid.cross("expert_tensor", _allowed(widths, space.expert_tensor))
    whole = (grid["expert_tensor"] == 1) | (grid["expert_tensor"] == grid["tensor"])
    if space.expert_tensor is not None:
        whole = grid["tensor"] % grid["expert_tensor"] == 0
    grid.keep(whole)


def _cross_shards(grid: _Grid, space: Space, shard_spans: Sequence[int]) -> None:
    """Full sharding, and sharding inside each network level that holds several data ranks."""
    data, inner = grid["data"], grid["tensor"] * grid["context"]
    if space.data_shard is not None:
        grid.cross("data_shard", np.array(space.data_shard))
        grid.keep(grid["data"] % grid["data_shard"] == 0)
        return
    choices = [data] + [np.gcd(data, np.maximum(1, span // inner)) for span in shard_spans]
    table = np.stack(choices, axis=1)
    fresh = np.ones(table.shape, dtype=bool)
    for j in range(1, len(choices)):
        repeated = (table[:, :j] == table[:, j : j + 1]).any(axis=1)
        fresh[:, j] = ~repeated & (table[:, j] > 1)
    grid.cross("data_shard", np.arange(len(choices)))
    grid.columns["data_shard"] = table.reshape(-1)
    grid.keep(fresh.reshape(-1))


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
    exclude("expert_ranks", shapes.stage_ranks % (ep * etp) != 0)
    exclude("expert_ranks", shapes.expert_ranks % shapes.replicas != 0)
    split = shapes.sequence_parallel > 0
    exclude("sequence_parallel", split & (t == 1))
    exclude("sequence_parallel", ~split & (t > 1) & np.bool_(facts.has_experts))
    exclude(
        "sequence_divides", _any(no, [split & (n % (c * t) != 0) for n in facts.sequence_lengths])
    )
    if not cluster.is_uniform:
        outermost = np.array([order[-1] == "pipeline" for order in space.axis_orders])
        exclude("mixed_order", ~outermost[shapes.order])
    return rule


def _any(no: BoolArray, conditions: Sequence[BoolArray]) -> BoolArray:
    found = no
    for condition in conditions:
        found = found | condition
    return found
