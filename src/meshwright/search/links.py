"""Links: what groups that share parameters, and messages between stages, pay per byte."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from meshwright.cost.collectives import Collective, Network
from meshwright.cost.device_models import DeviceModel
from meshwright.cost.local import FloatArray, IntArray
from meshwright.search.placements import Placements, SharedGroup


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """``latency_s + bytes * s_per_byte``: shapes (S,)."""

    latency_s: FloatArray
    s_per_byte: FloatArray

    def then(self, other: Line, *, share: FloatArray) -> Line:
        """This, followed by another on ``share`` of the bytes."""
        return Line(
            latency_s=self.latency_s + other.latency_s,
            s_per_byte=self.s_per_byte + share * other.s_per_byte,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupLinks:
    """Collectives of a group that shares parameters (see ``cost.step.GroupCost``)."""

    gather: Line
    scatter: Line
    reduce: Line


def _slowest(
    models: Sequence[DeviceModel], line: Callable[[int, Network], tuple[FloatArray, FloatArray]]
) -> Line:
    """The slowest of several networks: the largest latency and the largest time per byte."""
    pairs = [line(index, model.network) for index, model in enumerate(models)]
    return Line(
        latency_s=np.max(np.stack([pair[0] for pair in pairs]), axis=0),
        s_per_byte=np.max(np.stack([pair[1] for pair in pairs]), axis=0),
    )


def group_links(
    models: Sequence[DeviceModel], groups: Sequence[SharedGroup], *, bucket_bytes: float
) -> GroupLinks:
    """Price the collectives of S groups.

    Args:
        models: one per device group of the cluster; the slowest network counts.
        groups: where the groups lie under each of them.
        bucket_bytes: size of a call, around which the lines are true.
    """
    shards = groups[0].shards[:, -1].astype(np.float64)

    def collective(kind: Collective, part: str) -> Line:
        return _slowest(
            models,
            lambda index, network: network.linear(
                kind, getattr(groups[index], part), reference_bytes=bucket_bytes
            ),
        )

    across = collective(Collective.ALL_REDUCE, "replicas")
    return GroupLinks(
        gather=collective(Collective.ALL_GATHER, "shards"),
        scatter=collective(Collective.REDUCE_SCATTER, "shards").then(across, share=1.0 / shards),
        reduce=collective(Collective.ALL_REDUCE, "ranks"),
    )


def hop_links(models: Sequence[DeviceModel], extents: Sequence[IntArray]) -> Line:
    """Price the messages between stages that are ``extents`` ranks apart at most."""
    return _slowest(models, lambda index, network: network.hop(extents[index]))


def link_arrays(
    models: Sequence[DeviceModel],
    placements: Sequence[Placements],
    *,
    has_experts: bool,
    bucket_bytes: float,
) -> dict[str, Any]:
    """Links of S shapes as columns of ``UniformTables``.

    Entries 0 to S - 1 are the dense groups and the messages of the shapes, S to 2 S - 1 their
    expert groups.
    """
    dense = [placed.dense for placed in placements]
    experts = [placed.experts for placed in placements]
    pairs = [group_links(models, found, bucket_bytes=bucket_bytes) for found in (dense, experts)]
    hop = hop_links(models, [placed.hop_extent for placed in placements])
    index = np.arange(len(placements[0].hop_extent), dtype=np.int32)
    links: dict[str, Any] = {
        f"{name}_{part}": np.concatenate([getattr(getattr(pair, name), part) for pair in pairs])
        for name in ("gather", "scatter", "reduce")
        for part in ("latency_s", "s_per_byte")
    }
    # Without experts nobody shares any, so nothing there can be sharded.
    nobody = np.ones_like(index)
    return links | {
        "hop_latency_s": np.tile(hop.latency_s, 2),
        "hop_s_per_byte": np.tile(hop.s_per_byte, 2),
        "dense_link": index,
        "expert_link": index + np.int32(len(index)),
        "hop_link": index,
        "dense_ranks": dense[0].ranks[:, -1],
        "dense_shards": dense[0].shards[:, -1],
        "expert_ranks": experts[0].ranks[:, -1] if has_experts else nobody,
        "expert_shards": experts[0].shards[:, -1] if has_experts else nobody,
    }
