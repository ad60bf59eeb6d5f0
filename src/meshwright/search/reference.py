"""The uniform search in plain Python: slow, short, and what the native core must equal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import product

from meshwright.cost.step import (
    GroupCost,
    OverlapFactors,
    PassTime,
    StageTerms,
    StateMode,
    stage_memory,
    stage_time,
    step_cost,
)
from meshwright.search.result import UniformCandidate, UniformResult
from meshwright.search.tables import UniformTables


def stage_terms(
    tables: UniformTables, *, shape: int, row: int, partition: int, mode: int, device: int
) -> tuple[StageTerms, ...]:
    """Terms of every class of a partition, as if devices of one type ran it.

    Only the totals of a pass are known here; they are in ``compute_s``.
    """
    return tuple(
        _class_terms(tables, shape=shape, row=row, index=c, mode=mode, device=device)
        for c in tables.classes_of(partition)
    )


def _class_terms(
    tables: UniformTables, *, shape: int, row: int, index: int, mode: int, device: int
) -> StageTerms:
    base = tables.base[shape]
    counts = tables.class_blocks[index]
    present = counts > 0
    dense, expert = tables.dense_parameters[:, base], tables.expert_parameters[:, base]
    hop = tables.hop_link[shape]
    return StageTerms(
        position=int(tables.class_first[index]),
        multiplicity=int(tables.class_multiplicity[index]),
        blocks=int(counts.sum()),
        forward=PassTime(compute_s=float(counts @ tables.forward_s[device, :, row])),
        backward=PassTime(compute_s=float(counts @ tables.backward_s[device, :, row])),
        hop_s=float(
            tables.hop_latency_s[hop] + tables.boundary_bytes[row] * tables.hop_s_per_byte[hop]
        ),
        activation_bytes=float(counts @ tables.activation_bytes[:, row]),
        transient_bytes=float(tables.transient_bytes[present, row].max(initial=0.0)),
        dense_parameters=float(counts @ dense),
        expert_parameters=float(counts @ expert),
        largest_block_parameters=float((dense + expert)[present].max(initial=0.0)),
        dense_group=_group(
            tables,
            tables.dense_link[shape],
            shards=tables.dense_shards[shape],
            ranks=tables.dense_ranks[shape],
        ),
        expert_group=_group(
            tables,
            tables.expert_link[shape],
            shards=tables.expert_shards[shape],
            ranks=tables.expert_ranks[shape],
        ),
        optimizer_s_per_parameter=float(tables.optimizer_s_per_parameter[device, mode]),
        capacity_bytes=float(tables.capacity_bytes[device]),
        framework_bytes=float(tables.framework_bytes[device]),
    )


def _group(tables: UniformTables, link: int, *, shards: int, ranks: int) -> GroupCost:
    return GroupCost(
        shards=int(shards),
        ranks=int(ranks),
        gather_latency_s=float(tables.gather_latency_s[link]),
        gather_s_per_byte=float(tables.gather_s_per_byte[link]),
        scatter_latency_s=float(tables.scatter_latency_s[link]),
        scatter_s_per_byte=float(tables.scatter_s_per_byte[link]),
        reduce_latency_s=float(tables.reduce_latency_s[link]),
        reduce_s_per_byte=float(tables.reduce_s_per_byte[link]),
    )


def evaluate(
    tables: UniformTables, *, shape: int, row: int, partition: int, mode: int
) -> UniformCandidate:
    """Time and memory of one candidate, whether it fits or not."""
    micro_batches = tables.global_batch // int(tables.data[shape] * tables.micro_batch[row])
    virtual_stages = int(tables.partition_virtual[partition])
    state_mode = tables.modes[mode]

    per_class = [
        [
            _class_terms(tables, shape=shape, row=row, index=c, mode=mode, device=device)
            for device in range(tables.device_types)
            if tables.class_devices[c] >> device & 1
        ]
        for c in tables.classes_of(partition)
    ]
    memories = [
        stage_memory(
            terms,
            state_mode,
            stages=int(tables.partition_pipeline[partition]),
            virtual_stages=virtual_stages,
            micro_batches=micro_batches,
        )
        for types in per_class
        for terms in types
    ]
    stages = [
        terms
        for types in per_class
        for terms in _counting_slowest(types, state_mode, tables.overlap)
    ]
    cost = step_cost(
        stages,
        state_mode,
        tables.overlap,
        virtual_stages=virtual_stages,
        micro_batches=micro_batches,
        fixed_s=tables.fixed_s,
    )
    return UniformCandidate(
        shape=shape,
        row=row,
        partition=partition,
        mode=mode,
        step_s=cost.step_s,
        peak_bytes=max(memory.total_bytes for memory in memories),
        headroom_bytes=min(memory.headroom_bytes for memory in memories),
    )


def _counting_slowest(
    types: list[StageTerms], mode: StateMode, overlap: OverlapFactors
) -> list[StageTerms]:
    """One class on each of its device types; only the slowest lengthens the path.

    The others keep multiplicity 0, for one of them may still end the step last.
    """
    slowest = max(types, key=lambda terms: stage_time(terms, mode, overlap))
    return [terms if terms is slowest else replace(terms, multiplicity=0) for terms in types]


def _excluding_rule(
    tables: UniformTables, *, shape: int, row: int, partition: int, mode: int
) -> int | None:
    """The first rule that excludes a candidate before its memory is looked at."""
    if tables.row_rule[row] >= 0:
        return int(tables.row_rule[row])
    per_round = int(tables.data[shape]) * int(tables.micro_batch[row])
    if tables.global_batch % per_round:
        return tables.rule_batch
    stages = int(tables.partition_pipeline[partition])
    micro_batches = tables.global_batch // per_round
    if tables.partition_virtual[partition] > 1 and (stages == 1 or micro_batches % stages):
        return tables.rule_interleave
    unsharded = tables.dense_shards[shape] == 1 and tables.expert_shards[shape] == 1
    if unsharded and tables.mode_needs_shards[mode]:
        return tables.rule_unsharded
    if stages > tables.mode_max_pipeline[mode]:
        return tables.rule_zero_pipeline
    return None


def search_uniform(tables: UniformTables, *, top_k: int) -> UniformResult:
    """Evaluate every candidate of a uniform space.

    Args:
        tables: the space.
        top_k: how many of the fastest to keep.
    """
    excluded = [0] * tables.rules
    fitting: list[UniformCandidate] = []
    misfits: list[UniformCandidate] = []
    for shape in range(tables.shapes):
        for row, partition, mode in product(
            tables.rows_of(shape), tables.partitions_of(shape), range(len(tables.modes))
        ):
            rule = _excluding_rule(tables, shape=shape, row=row, partition=partition, mode=mode)
            if rule is not None:
                excluded[rule] += 1
                continue
            candidate = evaluate(tables, shape=shape, row=row, partition=partition, mode=mode)
            if candidate.headroom_bytes >= 0:
                fitting.append(candidate)
            else:
                excluded[tables.rule_memory] += 1
                misfits.append(candidate)
    fitting.sort(key=lambda c: (c.step_s, c.peak_bytes, c.index))
    return UniformResult(
        best=tuple(fitting[:top_k]),
        pareto=tuple(_pareto(fitting)),
        excluded=tuple(excluded),
        candidates=tables.candidates,
        evaluated=len(fitting),
        nearest_misfit=min(misfits, key=lambda c: (-c.headroom_bytes, c.index), default=None),
        complete=True,
    )


def _pareto(by_time: Iterable[UniformCandidate]) -> Iterator[UniformCandidate]:
    least_bytes = float("inf")
    for candidate in by_time:
        if candidate.peak_bytes < least_bytes:
            least_bytes = candidate.peak_bytes
            yield candidate
