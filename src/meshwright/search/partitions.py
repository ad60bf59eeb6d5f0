"""Partitions: how the layers are cut into stages, as classes of equal stages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np

from meshwright.cluster import Cluster
from meshwright.graph import Block, BlockRole, ModelGraph
from meshwright.strategy import Space, Workload, balanced_chunks, stage_ranges, weighted_chunks


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """One cut of the layers.

    Attributes:
        pipeline, virtual_stages: stages, and chunks per stage.
        chunk_layers: layers of every chunk, in order of execution.
    """

    pipeline: int
    virtual_stages: int
    chunk_layers: tuple[int, ...]

    def ranges(self) -> tuple[tuple[tuple[int, int], ...], ...]:
        """Layer ranges of every stage."""
        return stage_ranges(self.chunk_layers, pipeline=self.pipeline)


@dataclass(frozen=True, slots=True, kw_only=True)
class StageClass:
    """Equal neighbouring stages.

    Attributes:
        blocks: how many of each variant one stage has.
        first, multiplicity: position of the first stage; how many there are.
        devices: bit t is set when a device of group t runs one of them.
    """

    blocks: tuple[int, ...]
    first: int
    multiplicity: int
    devices: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """A block as a stage has it.

    Attributes:
        block: index into the distinct blocks.
        copies_tied: whether the stage holds its own copy of parameters that are tied to
            another block's: it must, unless it holds that block too.
    """

    block: int
    copies_tied: bool


class BlockCatalog:
    """Distinct blocks of a model, and the variants in which stages have them."""

    def __init__(self, model: ModelGraph) -> None:
        self.blocks: tuple[Block, ...] = model.blocks
        self._embedding = model.sequence(BlockRole.EMBEDDING)
        layers = np.array(model.sequence(BlockRole.LAYER), dtype=np.int64)
        self._head = model.sequence(BlockRole.HEAD)
        variants = [Variant(block=i, copies_tied=True) for i in range(len(self.blocks))]
        self._head_alone: list[int] = []
        for index in self._head:
            if any(tensor.tied_to for tensor in self.blocks[index].parameters):
                variants.append(Variant(block=index, copies_tied=False))
                self._head_alone.append(len(variants) - 1)
            else:
                self._head_alone.append(index)
        self.variants: tuple[Variant, ...] = tuple(variants)
        one_hot = np.eye(len(variants), dtype=np.int64)[layers]
        zero = np.zeros((1, len(variants)), dtype=np.int64)
        self._prefix = np.concatenate([zero, np.cumsum(one_hot, axis=0)])
        self._layers = layers

    def layer_block(self, layer: int) -> int:
        """Index of the block of one layer."""
        return int(self._layers[layer])

    def end_variants(self, stage: int, *, pipeline: int) -> list[int]:
        """Indices of the variants that a stage has besides its layers."""
        first = list(self._embedding) if stage == 0 else []
        head = self._head_alone if pipeline == 1 else list(self._head)
        return first + (head if stage == pipeline - 1 else [])

    def counts(
        self, ranges: Sequence[tuple[int, int]], stage: int, *, pipeline: int
    ) -> tuple[int, ...]:
        """How many of each variant a stage with these layer ranges has."""
        total = np.zeros(len(self.variants), dtype=np.int64)
        for start, stop in ranges:
            total += self._prefix[stop] - self._prefix[start]
        for index in self.end_variants(stage, pipeline=pipeline):
            total[index] += 1
        return tuple(int(n) for n in total)


def enumerate_partitions(
    space: Space, *, layers: int, pipelines: Sequence[int], cluster: Cluster, workload: Workload
) -> tuple[Partition, ...]:
    """Every cut for these pipeline degrees, by ascending degree, then virtual stages.

    Even cuts for equal devices; for mixed ones also cuts in proportion to their speed.
    """
    found: dict[Partition, None] = {}
    for p in sorted(set(pipelines)):
        for v in space.virtual_stages:
            chunks = p * v
            if chunks > layers or (v > 1 and p == 1):
                continue
            if layers % chunks and not space.uneven_layers:
                continue
            cuts = [balanced_chunks(layers, chunks)]
            if not cluster.is_uniform and p > 1:
                speeds = stage_speeds(cluster, pipeline=p, precision=workload.recipe.peak)
                cuts.append(weighted_chunks(layers, speeds * v))
            for cut in cuts:
                found[Partition(pipeline=p, virtual_stages=v, chunk_layers=cut)] = None
    return tuple(found)


def stage_devices(cluster: Cluster, *, pipeline: int) -> list[int]:
    """For every stage, the groups whose devices run it, as a bit mask."""
    bounds = np.cumsum([0, *(group.count for group in cluster.groups)])
    per_stage = cluster.num_devices // pipeline
    masks = []
    for stage in range(pipeline):
        start, stop = stage * per_stage, (stage + 1) * per_stage
        masks.append(
            sum(
                1 << t
                for t in range(len(cluster.groups))
                if start < bounds[t + 1] and stop > bounds[t]
            )
        )
    return masks


def stage_groups(cluster: Cluster, *, pipeline: int) -> list[tuple[int, ...]]:
    """For every stage, the groups whose devices run it."""
    return [
        tuple(t for t in range(len(cluster.groups)) if mask >> t & 1)
        for mask in stage_devices(cluster, pipeline=pipeline)
    ]


def stage_speeds(cluster: Cluster, *, pipeline: int, precision: str) -> list[float]:
    """Speed of every stage: that of the slowest device that runs it."""
    speeds = [
        group.device.peak(precision) * group.device.gemm_curve(precision).limit
        for group in cluster.groups
    ]
    return [
        min(speeds[t] for t in range(len(speeds)) if mask >> t & 1)
        for mask in stage_devices(cluster, pipeline=pipeline)
    ]


def stage_classes(
    partition: Partition, catalog: BlockCatalog, cluster: Cluster
) -> tuple[StageClass, ...]:
    """The stages of a partition, equal neighbours merged."""
    devices = stage_devices(cluster, pipeline=partition.pipeline)
    keys = [
        (catalog.counts(ranges, stage, pipeline=partition.pipeline), devices[stage])
        for stage, ranges in enumerate(partition.ranges())
    ]
    classes = []
    position = 0
    for (blocks, mask), same in groupby(keys):
        count = sum(1 for _ in same)
        classes.append(StageClass(blocks=blocks, first=position, multiplicity=count, devices=mask))
        position += count
    return tuple(classes)


def partition_arrays(
    partitions: Sequence[Partition], catalog: BlockCatalog, cluster: Cluster
) -> dict[str, Any]:
    """Partitions and their classes as columns of ``UniformTables``."""
    classes = [stage_classes(partition, catalog, cluster) for partition in partitions]
    flat = [c for found in classes for c in found]
    return {
        "partition_pipeline": np.array([p.pipeline for p in partitions], dtype=np.int32),
        "partition_virtual": np.array([p.virtual_stages for p in partitions], dtype=np.int32),
        "partition_classes": np.cumsum([0, *map(len, classes)]),
        "class_blocks": np.array([c.blocks for c in flat], dtype=np.float64),
        "class_first": np.array([c.first for c in flat], dtype=np.int32),
        "class_multiplicity": np.array([c.multiplicity for c in flat], dtype=np.int32),
        "class_devices": np.array([c.devices for c in flat], dtype=np.uint32),
    }
