"""When nothing fits: by how much, and what would make it fit, tried before it is offered."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from meshwright.cluster import Cluster, DeviceGroup
from meshwright.cluster.defaults import default_levels
from meshwright.errors import InfeasibleError, MeshwrightError, StrategyError
from meshwright.graph import ModelGraph
from meshwright.planning.searching import Searched, search_space
from meshwright.search.rules import RULES
from meshwright.search.shapes import divisors
from meshwright.strategy import DEGREES, Offload, Recompute, Space, Workload
from meshwright.units import format_bytes

#: Changes that are offered at most.
MAX_REMEDIES = 3


def explain_misfit(
    model: ModelGraph, cluster: Cluster, workload: Workload, space: Space, searched: Searched
) -> MeshwrightError:
    """The error to raise when a search found nothing.

    Memory alone stands in the way of some candidate: infeasible. Otherwise the request
    contradicts itself, and the rules that excluded everything say how.
    """
    if not searched.candidates:
        return _no_factorisation(model, cluster, space)
    nearest = searched.result.nearest_misfit
    if nearest is None:
        reasons = [
            f"{rule.reason} ({count:,})"
            for rule, count in zip(RULES, searched.excluded, strict=True)
            if count
        ]
        return StrategyError(
            f"no strategy in the space is valid for {model.name} on {cluster.name} with a batch "
            f"of {workload.global_batch_size}",
            where="space",
            allowed="a space in which at least one strategy passes every rule",
            fix="excluded: " + "; ".join(reasons),
        )
    strategy = searched.space.strategy(nearest)
    stage = strategy.stages[0]
    remedies = list(_remedies(model, cluster, workload, space, searched))
    return InfeasibleError(
        f"{model.name} does not fit on {cluster.name}: the nearest strategy needs "
        f"{format_bytes(nearest.peak_bytes)} per device, {format_bytes(-nearest.headroom_bytes)} "
        "more than there is",
        where=f"tensor {stage.tensor}, context {stage.context}, pipeline {strategy.pipeline}, "
        f"data {strategy.data}, ZeRO-{stage.zero_stage}, micro-batch "
        f"{strategy.micro_batch_size}, recompute {stage.recompute[0].mode.value}",
        allowed=f"{format_bytes(min(g.device.memory_bytes for g in cluster.groups))} per device, "
        "framework and allocator reserve included",
        fix="; or ".join(remedies)
        if remedies
        else "none of: wider space, optimizer offload, up to 64 times the nodes, half the sequence",
    )


def _no_factorisation(model: ModelGraph, cluster: Cluster, space: Space) -> StrategyError:
    """The fixed degrees cannot be factors of the device count."""
    devices = cluster.num_devices
    fixed = {
        name: values
        for name in DEGREES
        if (values := getattr(space, name)) is not None and values != (1,)
    }
    named = ", ".join(f"{name} {'/'.join(map(str, values))}" for name, values in fixed.items())
    return StrategyError(
        f"{named or 'the space'} cannot be laid out on {devices:,} devices",
        where="space." + (next(iter(fixed)) if fixed else "tensor"),
        allowed=f"tensor × context × pipeline × data = {devices:,}, and at most "
        f"{model.num_layers} stages (one layer each)",
        fix="choose factors of the device count: "
        + ", ".join(str(d) for d in divisors(devices)[:24]),
    )


def _remedies(
    model: ModelGraph, cluster: Cluster, workload: Workload, space: Space, searched: Searched
) -> Iterator[str]:
    """Changes after which something fits, each tried by a search."""
    found = 0
    grown = False
    for text, tried in _changes(cluster, workload, space):
        larger = tried[0] is not cluster
        if found == MAX_REMEDIES:
            return
        if larger and grown:
            continue
        try:
            result = search_space(
                model, *tried, coefficients=searched.space.coefficients, top=1
            ).result
        except MeshwrightError:
            continue
        if result.best:
            found += 1
            grown = grown or larger
            yield f"{text} (then {format_bytes(result.best[0].peak_bytes)} per device)"


def scaled(cluster: Cluster, factor: int) -> Cluster:
    """The same cluster with ``factor`` times the nodes in every group."""

    def more(group: DeviceGroup) -> DeviceGroup:
        *inner, outer = group.levels
        if not inner:  # a single scale-up domain grows a network, as the shorthand gives it
            levels = default_levels(
                group.device,
                num_nodes=group.num_nodes * factor,
                devices_per_node=group.devices_per_node,
            )
        else:
            levels = (*inner, replace(outer, size=outer.size * factor))
        return replace(
            group, count=group.count * factor, num_nodes=group.num_nodes * factor, levels=levels
        )

    groups = tuple(more(group) for group in cluster.groups)
    boundary = cluster.boundary
    if boundary is not None:
        boundary = replace(boundary, size=boundary.size * factor)
    return replace(cluster, groups=groups, boundary=boundary)


def _changes(
    cluster: Cluster, workload: Workload, space: Space
) -> Iterator[tuple[str, tuple[Cluster, Workload, Space]]]:
    widest = Space(target=space.target, zero_with_pipeline=space.zero_with_pipeline)
    if Recompute.FULL not in space.recompute:
        changed = replace(space, recompute=tuple(Recompute))
        yield "allow full recomputation", (cluster, workload, changed)
    if space.target is None and replace(space, offload=widest.offload) != widest:
        yield "free the degrees that were fixed", (cluster, workload, widest)
    if Offload.OPTIMIZER not in space.offload:
        changed = replace(space, offload=tuple(Offload))
        yield (
            "keep the optimizer state in host memory (--offload optimizer)",
            (
                cluster,
                workload,
                changed,
            ),
        )
    for factor in (2, 4, 8, 16, 32, 64):
        larger = scaled(cluster, factor)
        text = f"use {larger.num_nodes:,} nodes instead of {cluster.num_nodes:,}"
        yield text, (larger, workload, space)
    if workload.seq_length >= 1024:
        shorter = replace(workload, seq_length=workload.seq_length // 2)
        yield f"halve the sequence to {shorter.seq_length:,} tokens", (cluster, shorter, space)
