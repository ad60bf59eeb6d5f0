"""From a strategy to the terms of its stages: any strategy, stages need not be equal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from meshwright.cost.coefficients import Coefficients
from meshwright.cost.device_models import DeviceModel
from meshwright.cost.local import IntArray, LocalConfigs
from meshwright.cost.states import optimizer_s_per_parameter, state_mode
from meshwright.cost.step import GroupCost, PassTime, StageTerms, StateMode, stage_time
from meshwright.cost.table import BlockCosts, Rows, cost_table
from meshwright.graph import BlockRole
from meshwright.search.links import group_links, hop_links
from meshwright.search.partitions import BlockCatalog
from meshwright.search.placements import Placements, SharedGroup, place
from meshwright.search.shapes import Shapes
from meshwright.strategy import ContextAlgorithm, Recompute, Space, Stage, Strategy, Workload

#: Block costs that strategies of one catalogue and one set of device models share.
CostCache: TypeAlias = dict[tuple[object, ...], tuple[BlockCosts, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Common:
    """What stages with the same degrees on the same devices have in common."""

    costs: tuple[BlockCosts, ...]
    hop_s: float
    dense_group: GroupCost
    expert_group: GroupCost


class StageModel:
    """Evaluates stages of one strategy; stages that look alike share one cost table."""

    def __init__(
        self,
        catalog: BlockCatalog,
        strategy: Strategy,
        workload: Workload,
        models: Sequence[DeviceModel],
        coefficients: Coefficients,
        cache: CostCache | None = None,
    ) -> None:
        self._cache = {} if cache is None else cache
        self._catalog = catalog
        self._strategy = strategy
        self._workload = workload
        self._models = models
        self._coefficients = coefficients
        self._space = Space(axis_orders=(strategy.axis_order,))
        self._found: dict[tuple[object, ...], _Common] = {}

    def stages(self) -> tuple[list[StageTerms], list[StateMode]]:
        """Terms and state modes of all stages, in pipeline order.

        A stage that several device groups run counts once, as its slowest group; the others
        follow with multiplicity 0, so that their memory and their end of step still count.
        """
        terms: list[StageTerms] = []
        modes: list[StateMode] = []
        for position, stage in enumerate(self._strategy.stages):
            mode = state_mode(
                self._workload,
                zero_stage=stage.zero_stage,
                offload=stage.offload,
                coefficients=self._coefficients,
            )
            found = [self._terms(position, stage, group) for group in stage.groups]
            found.sort(key=lambda t: -stage_time(t, mode, self._coefficients.overlap))
            terms += [found[0], *(replace(t, multiplicity=0) for t in found[1:])]
            modes += [mode] * len(found)
        return terms, modes

    def _shapes(self, stage: Stage) -> Shapes:
        def one(value: int) -> IntArray:
            return np.array([value], dtype=np.int64)

        return Shapes(
            tensor=one(stage.tensor),
            sequence_parallel=one(int(stage.sequence_parallel)),
            context=one(stage.context),
            context_algorithm=one(list(ContextAlgorithm).index(stage.context_algorithm)),
            pipeline=one(self._strategy.pipeline),
            data=one(stage.data),
            data_shard=one(stage.data_shard if stage.zero_stage else stage.data),
            expert=one(stage.expert),
            expert_tensor=one(stage.expert_tensor),
            order=one(0),
        )

    def _common(self, stage: Stage, group: int) -> _Common:
        """Costs and links of a stage, worked out once for all that look alike."""
        key = (group, replace(stage, layers=(), recompute=(), groups=(group,)))
        if key not in self._found:
            shapes = self._shapes(stage)
            placed = [place(shapes, self._space, m.network.levels) for m in self._models]
            costs = self._costs(stage, group, placed[group])
            hop = hop_links(self._models, [p.hop_extent for p in placed])
            boundary_bytes = self._boundary_bytes(costs)
            self._found[key] = _Common(
                costs=costs,
                hop_s=float(hop.latency_s[0] + boundary_bytes * hop.s_per_byte[0]),
                dense_group=self._group([p.dense for p in placed]),
                expert_group=self._group([p.experts for p in placed]),
            )
        return self._found[key]

    def _costs(self, stage: Stage, group: int, placed: Placements) -> tuple[BlockCosts, ...]:
        """Block costs with one row per recomputation mode."""
        micro_batch = self._strategy.micro_batch_size
        members = (placed.tensor, placed.context, placed.expert)
        key = (
            *(group, micro_batch, stage.tensor, stage.sequence_parallel, stage.context),
            *(stage.context_algorithm, stage.expert, stage.expert_tensor),
            replace(self._workload, global_batch_size=1),  # costs are of one micro-batch
            tuple(array.tobytes() for array in members),
        )
        if key not in self._cache:
            self._cache[key] = self._new_costs(stage, group, placed)
        return self._cache[key]

    def _new_costs(self, stage: Stage, group: int, placed: Placements) -> tuple[BlockCosts, ...]:
        count = len(Recompute)

        def every(value: int) -> IntArray:
            return np.full(count, value, dtype=np.int64)

        rows = Rows(
            configs=LocalConfigs(
                micro_batch=every(self._strategy.micro_batch_size),
                tensor=every(stage.tensor),
                sequence_parallel=every(int(stage.sequence_parallel)),
                context=every(stage.context),
                context_algorithm=every(list(ContextAlgorithm).index(stage.context_algorithm)),
                expert=every(stage.expert),
                expert_tensor=every(stage.expert_tensor),
            ),
            recompute=np.arange(count, dtype=np.int64),
            tensor_members=np.repeat(placed.tensor, count, axis=0),
            context_members=np.repeat(placed.context, count, axis=0),
            expert_members=np.repeat(placed.expert, count, axis=0),
        )
        return cost_table(
            self._catalog.blocks, rows, workload=self._workload, model=self._models[group]
        )

    def _composition(self, position: int, stage: Stage) -> Counter[tuple[int, int]]:
        """How many of each (variant, recomputation mode) the stage has."""
        modes = iter(stage.recompute_of_layers())
        index = list(Recompute).index
        found: Counter[tuple[int, int]] = Counter()
        for start, stop in stage.layers:
            for layer in range(start, stop):
                found[self._catalog.layer_block(layer), index(next(modes))] += 1
        for variant in self._catalog.end_variants(position, pipeline=self._strategy.pipeline):
            found[variant, index(Recompute.NONE)] += 1
        return found

    def _terms(self, position: int, stage: Stage, group: int) -> StageTerms:
        model = self._models[group]
        common = self._common(stage, group)
        composition = self._composition(position, stage)
        entries = [
            (common.costs[self._catalog.variants[v].block], self._catalog.variants[v], row, count)
            for (v, row), count in sorted(composition.items())
        ]

        def total(name: str) -> float:
            return float(sum(n * getattr(cost, name)[row] for cost, _, row, n in entries))

        def passes(direction: str) -> PassTime:
            return PassTime(
                compute_s=total(f"{direction}_compute_s"),
                recompute_s=total("recompute_s") if direction == "backward" else 0.0,
                launch_s=total(f"{direction}_launch_s"),
                tensor_s=total(f"{direction}_tensor_s"),
                context_s=total(f"{direction}_context_s"),
                expert_s=total(f"{direction}_expert_s"),
            )

        dense = [
            float(c.dense_parameters[row] + (c.tied_parameters[row] if v.copies_tied else 0.0))
            for c, v, row, _ in entries
        ]
        experts = [float(c.expert_parameters[row]) for c, _, row, _ in entries]
        counts = [n for _, _, _, n in entries]
        device = model.device
        reserve = self._coefficients.memory_reserve * device.memory_bytes
        return StageTerms(
            position=position,
            multiplicity=1,
            blocks=sum(counts),
            forward=passes("forward"),
            backward=passes("backward"),
            hop_s=common.hop_s,
            activation_bytes=total("activation_bytes"),
            transient_bytes=max(float(c.transient_bytes[row]) for c, _, row, _ in entries),
            dense_parameters=sum(n * d for n, d in zip(counts, dense, strict=True)),
            expert_parameters=sum(n * e for n, e in zip(counts, experts, strict=True)),
            largest_block_parameters=max(d + e for d, e in zip(dense, experts, strict=True)),
            dense_group=common.dense_group,
            expert_group=common.expert_group,
            optimizer_s_per_parameter=optimizer_s_per_parameter(
                self._workload, model, offload=stage.offload
            ),
            capacity_bytes=float(device.memory_bytes),
            framework_bytes=device.framework_bytes + reserve,
        )

    def _boundary_bytes(self, costs: Sequence[BlockCosts]) -> float:
        layers = [i for i, b in enumerate(self._catalog.blocks) if b.role is BlockRole.LAYER]
        return max(float(costs[i].output_bytes[0]) for i in layers)

    def _group(self, placed: Sequence[SharedGroup]) -> GroupCost:
        """What a group that shares parameters pays."""
        bucket = self._coefficients.bucket_bytes
        links = group_links(self._models, placed, bucket_bytes=bucket)
        return GroupCost(
            shards=int(placed[0].shards[0, -1]),
            ranks=int(placed[0].ranks[0, -1]),
            gather_latency_s=float(links.gather.latency_s[0]),
            gather_s_per_byte=float(links.gather.s_per_byte[0]),
            scatter_latency_s=float(links.scatter.latency_s[0]),
            scatter_s_per_byte=float(links.scatter.s_per_byte[0]),
            reduce_latency_s=float(links.reduce.latency_s[0]),
            reduce_s_per_byte=float(links.reduce.s_per_byte[0]),
        )
