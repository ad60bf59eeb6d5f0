"""The uniform space of a model, a cluster and a workload: tables in, strategies out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from meshwright.cluster import Cluster
from meshwright.cost.coefficients import Coefficients
from meshwright.cost.device_models import device_models
from meshwright.cost.local import FloatArray, LocalConfigs, distinct
from meshwright.cost.states import optimizer_s_per_parameter, state_mode
from meshwright.cost.table import BlockCosts, Rows, cost_table
from meshwright.graph import BlockRole, ModelGraph
from meshwright.search.facts import ModelFacts, model_facts
from meshwright.search.links import link_arrays
from meshwright.search.partitions import (
    BlockCatalog,
    enumerate_partitions,
    partition_arrays,
    stage_groups,
)
from meshwright.search.placements import equivalent, place
from meshwright.search.result import UniformCandidate
from meshwright.search.rules import RULE_INDEX, RULES
from meshwright.search.shapes import enumerate_shapes, shape_rules
from meshwright.search.tables import NO_PIPELINE_LIMIT, UniformTables
from meshwright.strategy import (
    ContextAlgorithm,
    Offload,
    Recompute,
    Schedule,
    Space,
    Stage,
    Strategy,
    Workload,
    equal_stages,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalChoice:
    """What varies under one base: one of the K rows."""

    micro_batch: int
    recompute: Recompute


@dataclass(frozen=True, slots=True, kw_only=True)
class StateChoice:
    """How states are kept: one of the Z modes."""

    zero_stage: int
    offload: Offload


class UniformSpace:
    """Every uniform strategy of a model on a cluster, as tables for the search.

    Args:
        model: what is trained.
        cluster: on what.
        workload: how much per step.
        space: what may vary.
        coefficients: of the software stack.
    """

    def __init__(
        self,
        model: ModelGraph,
        cluster: Cluster,
        workload: Workload,
        space: Space,
        coefficients: Coefficients,
    ) -> None:
        self.cluster = cluster
        self.workload = workload
        self.space = space
        self.coefficients = coefficients
        self.catalog = BlockCatalog(model)
        self.models = device_models(cluster, coefficients)
        self.excluded = [0] * len(RULES)
        self.locals = [
            LocalChoice(micro_batch=size, recompute=mode)
            for size in space.micro_batch_sizes
            if size <= workload.global_batch_size
            for mode in space.recompute
        ]
        self.states = [
            StateChoice(zero_stage=stage, offload=offload)
            for stage in space.zero_stages
            for offload in space.offload
        ]
        facts = model_facts(model, workload)
        self._has_experts = facts.has_experts
        self._enumerate(facts)
        self._make_rows()

    def _enumerate(self, facts: ModelFacts) -> None:
        """Shapes that no rule excludes, their partitions, and the counts of the others."""
        space, cluster = self.space, self.cluster
        levels = [model.network.levels for model in self.models]
        spans = sorted({level.size for tiers in levels for level in tiers[:-1]})
        shapes = enumerate_shapes(
            space, num_devices=cluster.num_devices, facts=facts, shard_spans=spans
        )
        pipelines = sorted({int(p) for p in shapes.pipeline})
        self.partitions = enumerate_partitions(
            space,
            layers=facts.layers,
            pipelines=pipelines,
            cluster=cluster,
            workload=self.workload,
        )
        cuts = {p: sum(part.pipeline == p for part in self.partitions) for p in pipelines}
        below = len(self.locals) * len(self.states)
        sizes = np.array([cuts[int(p)] * below for p in shapes.pipeline], dtype=np.int64)
        self.candidates = int(sizes.sum())

        rule = shape_rules(shapes, facts, space, cluster)
        for index in np.unique(rule[rule >= 0]):
            self.excluded[int(index)] += int(sizes[rule == index].sum())
        keep = np.flatnonzero((rule < 0) & (sizes > 0))
        shapes, sizes = shapes.take(keep), sizes[keep]
        placements = [place(shapes, space, tiers) for tiers in levels]
        keep = equivalent(shapes, placements, levels)
        self.excluded[RULE_INDEX["equivalent_order"]] += int(sizes.sum() - sizes[keep].sum())
        self.shapes = shapes.take(keep)
        self.placements = [placed.take(keep) for placed in placements]

    def _make_rows(self) -> None:
        """Distinct bases of the shapes, and K rows under each."""
        shapes = self.shapes
        local = (
            shapes.tensor,
            shapes.sequence_parallel,
            shapes.context,
            shapes.context_algorithm,
            shapes.expert,
            shapes.expert_tensor,
        )
        placed = [
            column
            for placement in self.placements
            for table in (placement.tensor, placement.context, placement.expert)
            for column in table.T
        ]
        if not len(shapes):
            self._first = self.base = np.zeros(0, dtype=np.int64)
        else:
            self._first, self.base = distinct([*local, *placed])
        bases, k = len(self._first), len(self.locals)
        tile = {
            "micro_batch": [choice.micro_batch for choice in self.locals],
            "recompute": [list(Recompute).index(choice.recompute) for choice in self.locals],
        }
        tiled = {name: np.tile(np.array(v, dtype=np.int64), bases) for name, v in tile.items()}
        self._recompute = tiled.pop("recompute")
        names = (
            "tensor",
            "sequence_parallel",
            "context",
            "context_algorithm",
            "expert",
            "expert_tensor",
        )
        self.configs = LocalConfigs(
            **tiled,
            **{n: np.repeat(c[self._first], k) for n, c in zip(names, local, strict=True)},
        )

    def costs(self) -> list[tuple[BlockCosts, ...]]:
        """Cost table of every device group: per block, R rows."""
        k = len(self.locals)
        tables = []
        for model, placed in zip(self.models, self.placements, strict=True):
            base = placed.take(self._first)
            rows = Rows(
                configs=self.configs,
                recompute=self._recompute,
                tensor_members=np.repeat(base.tensor, k, axis=0),
                context_members=np.repeat(base.context, k, axis=0),
                expert_members=np.repeat(base.expert, k, axis=0),
            )
            tables.append(
                cost_table(self.catalog.blocks, rows, workload=self.workload, model=model)
            )
        return tables

    def tables(self) -> UniformTables:
        """The numbers that the search sees."""
        costs = self.costs()
        blocks = [variant.block for variant in self.catalog.variants]
        k = len(self.locals)

        def column(name: str, device: int = 0) -> FloatArray:
            return np.stack([getattr(costs[device][b], name) for b in blocks])

        def per_device(name: str) -> FloatArray:
            return np.stack([column(name, device) for device in range(len(costs))])

        copies = np.array([[float(variant.copies_tied)] for variant in self.catalog.variants])
        dense = column("dense_parameters") + copies * column("tied_parameters")
        modes = [
            state_mode(
                self.workload,
                zero_stage=s.zero_stage,
                offload=s.offload,
                coefficients=self.coefficients,
            )
            for s in self.states
        ]
        devices = [model.device for model in self.models]
        reserve = self.coefficients.memory_reserve
        return UniformTables(
            micro_batch=self.configs.micro_batch.astype(np.int32),
            row_rule=np.full(len(self.configs), -1, dtype=np.int32),
            forward_s=per_device("forward_s"),
            backward_s=per_device("backward_s"),
            activation_bytes=column("activation_bytes"),
            transient_bytes=column("transient_bytes"),
            boundary_bytes=self._boundary_bytes(costs[0]),
            dense_parameters=dense[:, ::k],
            expert_parameters=column("expert_parameters")[:, ::k],
            base=self.base.astype(np.int32),
            pipeline=self.shapes.pipeline.astype(np.int32),
            data=self.shapes.data.astype(np.int32),
            **link_arrays(
                self.models,
                self.placements,
                has_experts=self._has_experts,
                bucket_bytes=self.coefficients.bucket_bytes,
            ),
            **partition_arrays(self.partitions, self.catalog, self.cluster),
            modes=tuple(modes),
            mode_needs_shards=np.array([s.zero_stage > 0 for s in self.states], dtype=np.uint8),
            mode_max_pipeline=np.array(
                [
                    1 if s.zero_stage > self.space.zero_with_pipeline else NO_PIPELINE_LIMIT
                    for s in self.states
                ],
                dtype=np.int32,
            ),
            optimizer_s_per_parameter=np.array(
                [
                    [
                        optimizer_s_per_parameter(self.workload, model, offload=s.offload)
                        for s in self.states
                    ]
                    for model in self.models
                ]
            ),
            capacity_bytes=np.array([float(device.memory_bytes) for device in devices]),
            framework_bytes=np.array(
                [device.framework_bytes + reserve * device.memory_bytes for device in devices]
            ),
            overlap=self.coefficients.overlap,
            fixed_s=self.coefficients.step_fixed_s,
            global_batch=self.workload.global_batch_size,
            rules=len(RULES),
            rule_batch=RULE_INDEX["batch_divides"],
            rule_interleave=RULE_INDEX["interleave"],
            rule_unsharded=RULE_INDEX["unsharded"],
            rule_zero_pipeline=RULE_INDEX["zero_pipeline"],
            rule_memory=RULE_INDEX["memory"],
        )

    def _boundary_bytes(self, costs: Sequence[BlockCosts]) -> FloatArray:
        """What one stage hands to the next: the largest output of any layer, per row."""
        layers = [b for b, block in enumerate(self.catalog.blocks) if block.role is BlockRole.LAYER]
        largest: FloatArray = np.max(np.stack([costs[b].output_bytes for b in layers]), axis=0)
        return largest

    def strategy(self, candidate: UniformCandidate) -> Strategy:
        """The strategy that a candidate of the tables stands for."""
        s = candidate.shape
        local = self.locals[candidate.row % len(self.locals)]
        state = self.states[candidate.mode]
        partition = self.partitions[candidate.partition]
        data = int(self.shapes.data[s])
        shard = int(self.shapes.data_shard[s]) if state.zero_stage else 1
        template = Stage(
            layers=(),
            tensor=int(self.shapes.tensor[s]),
            sequence_parallel=bool(self.shapes.sequence_parallel[s]),
            context=int(self.shapes.context[s]),
            context_algorithm=list(ContextAlgorithm)[int(self.shapes.context_algorithm[s])],
            expert=int(self.shapes.expert[s]),
            expert_tensor=int(self.shapes.expert_tensor[s]),
            data_replicate=data // shard,
            data_shard=shard,
            zero_stage=state.zero_stage,
            offload=state.offload,
        )
        groups = stage_groups(self.cluster, pipeline=partition.pipeline)
        stages = equal_stages(template, partition.ranges(), groups, recompute=local.recompute)
        interleaved = partition.virtual_stages > 1
        return Strategy(
            stages=stages,
            micro_batch_size=local.micro_batch,
            micro_batches=self.workload.global_batch_size // (data * local.micro_batch),
            schedule=Schedule.INTERLEAVED if interleaved else Schedule.ONE_F_ONE_B,
            axis_order=self.space.axis_orders[int(self.shapes.order[s])],
        )
