"""From the terms of each stage to the time and memory of one training step.

This is the closed form that the native core evaluates for every candidate; the core must
equal it to 1e-9. Legend:

====  =========================================================================
p     pipeline stages; i the position of a stage, 0 first
v     virtual stages (chunks) per device; 1 is plain 1F1B
m     micro-batches per data-parallel replica and step
t_i   steady-state time of one micro-batch on stage i, forward + backward
h     one boundary message, there and back counted apart
====  =========================================================================

Pipeline (Narayanan et al., SC21, section 2.2; equal stages give the bubble
``(p - 1) / (v m)``; unequal ones wait for the slowest)::

    T = m max(t_i) + (sum(t_i) - max(t_i)) / v + 2 (p - 1) h w

Activations in flight (same source, section 2.2; Korthikanti et al. 2022, section 4.2.3):
``min(m, p - i)`` micro-batches under 1F1B; under interleaving
``min(m v, 2 (p - i - 1) + (v - 1) p + 1)`` chunks of one v-th of a stage.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

from meshwright.cost.breakdown import CostBreakdown, MemoryBreakdown
from meshwright.cost.collectives import Collective


@dataclass(frozen=True, slots=True, kw_only=True)
class PassTime:
    """One micro-batch through one stage in one direction; communication is what is exposed."""

    compute_s: float = 0.0
    recompute_s: float = 0.0
    launch_s: float = 0.0
    tensor_s: float = 0.0
    context_s: float = 0.0
    expert_s: float = 0.0

    @property
    def total_s(self) -> float:
        """Sum of the parts."""
        return (
            self.compute_s
            + self.recompute_s
            + self.launch_s
            + self.tensor_s
            + self.context_s
            + self.expert_s
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupCost:
    """What a group of ranks that share parameters pays per byte (whole buffer, not shard).

    Under hybrid sharding (Zhao et al., PyTorch FSDP, VLDB 2023, section 3.2.2) a state is
    divided over some of the ranks and the others hold replicas of the shards. Then a gather
    stays among the shards, while a gradient is reduce-scattered over the shards and its shard
    all-reduced over the replicas: the scatter figures are of both together.

    Attributes:
        shards: ranks that a sharded state is divided over.
        ranks: all ranks that share the parameters, shards x replicas.
        gather_latency_s, gather_s_per_byte: all-gather of one buffer over the shards.
        scatter_latency_s, scatter_s_per_byte: reduction of one buffer over all ranks that
            leaves every rank its shard.
        reduce_latency_s, reduce_s_per_byte: all-reduce of one buffer over all ranks.
    """

    shards: int
    ranks: int
    gather_latency_s: float
    gather_s_per_byte: float
    scatter_latency_s: float
    scatter_s_per_byte: float
    reduce_latency_s: float
    reduce_s_per_byte: float

    def time_s(self, kind: Collective, *, calls: int, total_bytes: float) -> float:
        """``total_bytes`` in ``calls`` pieces; nothing where no other rank takes part."""
        if kind is Collective.ALL_GATHER:
            members = self.shards
            latency_s, s_per_byte = self.gather_latency_s, self.gather_s_per_byte
        elif kind is Collective.REDUCE_SCATTER:
            members = self.ranks
            latency_s, s_per_byte = self.scatter_latency_s, self.scatter_s_per_byte
        else:
            assert kind is Collective.ALL_REDUCE, kind
            members = self.ranks
            latency_s, s_per_byte = self.reduce_latency_s, self.reduce_s_per_byte
        return calls * latency_s + total_bytes * s_per_byte if members > 1 else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class StateMode:
    """How parameters, gradients and optimizer state are kept (one ZeRO stage, or offload).

    Attributes:
        parameter_bytes, gradient_bytes, optimizer_bytes: device bytes per local parameter.
        parameter_sharded, gradient_sharded, optimizer_sharded: divided over the group.
        reduce_at_step: all-reduce of the gradients at the end of the step.
        scatter_at_step: reduce-scatter of the gradients at the end of the step.
        gather_at_step: all-gather of the parameters after the optimizer.
        scatter_per_micro_batch: reduce-scatter of the gradients in every backward.
        gather_per_micro_batch: all-gather of every block before its forward and backward.
        gather_bytes: bytes per parameter of a gathered or all-gathered copy.
        reduce_bytes: bytes per parameter of a gradient on the wire.
    """

    parameter_bytes: float
    gradient_bytes: float
    optimizer_bytes: float
    parameter_sharded: bool
    gradient_sharded: bool
    optimizer_sharded: bool
    reduce_at_step: bool
    scatter_at_step: bool
    gather_at_step: bool
    scatter_per_micro_batch: bool
    gather_per_micro_batch: bool
    gather_bytes: float
    reduce_bytes: float


@dataclass(frozen=True, slots=True, kw_only=True)
class OverlapFactors:
    """Shares of compute behind which a kind of communication hides.

    Attributes:
        gather, scatter: share of a pass that hides parameter gathers, gradient reductions.
        p2p: share of a boundary message that is hidden in the steady state.
        tail: least share of any data-parallel communication that stays exposed (the first
            bucket and the last one have nothing to hide behind).
    """

    gather: float
    scatter: float
    p2p: float
    tail: float


@dataclass(frozen=True, slots=True, kw_only=True)
class StageTerms:
    """Everything the step formula needs to know of one stage (or of several equal ones).

    Attributes:
        position: place in the pipeline, 0 first; of equal stages, the first.
        multiplicity: how many stages these terms describe.
        blocks: blocks on the stage, each one gather under full sharding.
        forward, backward: one micro-batch through the whole stage.
        hop_s: one boundary message to the next stage.
        activation_bytes: kept for backward per micro-batch in flight.
        transient_bytes: largest working set while a block runs.
        dense_parameters, expert_parameters: local to one rank before sharding.
        largest_block_parameters: local parameters of the largest block.
        optimizer_s_per_parameter: update time per parameter that a rank owns.
        capacity_bytes, framework_bytes: of the device.
    """

    position: int
    multiplicity: int
    blocks: int
    forward: PassTime
    backward: PassTime
    hop_s: float
    activation_bytes: float
    transient_bytes: float
    dense_parameters: float
    expert_parameters: float
    largest_block_parameters: float
    dense_group: GroupCost
    expert_group: GroupCost
    optimizer_s_per_parameter: float
    capacity_bytes: float
    framework_bytes: float


def in_flight(*, position: int, stages: int, virtual_stages: int, micro_batches: int) -> float:
    """Micro-batches whose activations a stage holds at its peak (may be fractional).

    >>> in_flight(position=0, stages=4, virtual_stages=1, micro_batches=16)
    4.0
    >>> in_flight(position=0, stages=4, virtual_stages=2, micro_batches=16)
    5.5
    """
    if virtual_stages == 1:
        return float(min(micro_batches, stages - position))
    chunks = 2 * (stages - position - 1) + (virtual_stages - 1) * stages + 1
    return min(micro_batches * virtual_stages, chunks) / virtual_stages


def exposed(communication_s: float, *, hidden_behind_s: float, tail: float) -> float:
    """What remains of a communication that runs beside ``hidden_behind_s`` of compute."""
    return max(tail * communication_s, communication_s - hidden_behind_s)


def group_time(stage: StageTerms, kind: Collective, *, bytes_per_parameter: float) -> float:
    """Time of a collective on all parameters of a stage, block by block."""
    return sum(
        group.time_s(kind, calls=stage.blocks, total_bytes=parameters * bytes_per_parameter)
        for parameters, group in (
            (stage.dense_parameters, stage.dense_group),
            (stage.expert_parameters, stage.expert_group),
        )
        if parameters > 0
    )


def _micro_batch_data_s(
    stage: StageTerms, mode: StateMode, overlap: OverlapFactors
) -> tuple[float, float]:
    """Data-parallel communication per micro-batch: (total, exposed)."""
    gather_s = scatter_s = 0.0
    if mode.gather_per_micro_batch:
        gather_s = group_time(stage, Collective.ALL_GATHER, bytes_per_parameter=mode.gather_bytes)
    if mode.scatter_per_micro_batch:
        scatter_s = group_time(
            stage, Collective.REDUCE_SCATTER, bytes_per_parameter=mode.reduce_bytes
        )
    backward_s = gather_s + scatter_s
    exposed_s = exposed(
        gather_s, hidden_behind_s=overlap.gather * stage.forward.total_s, tail=overlap.tail
    ) + exposed(
        backward_s, hidden_behind_s=overlap.scatter * stage.backward.total_s, tail=overlap.tail
    )
    return gather_s + backward_s, exposed_s


def stage_time(stage: StageTerms, mode: StateMode, overlap: OverlapFactors) -> float:
    """Forward and backward of one micro-batch with exposed data-parallel communication."""
    _, exposed_s = _micro_batch_data_s(stage, mode, overlap)
    return stage.forward.total_s + stage.backward.total_s + exposed_s


def _step_data_s(
    stage: StageTerms, mode: StateMode, overlap: OverlapFactors
) -> tuple[float, float]:
    """Data-parallel communication once per step: (total, exposed)."""
    reduce_s = gather_s = 0.0
    if mode.reduce_at_step or mode.scatter_at_step:
        kind = Collective.ALL_REDUCE if mode.reduce_at_step else Collective.REDUCE_SCATTER
        reduce_s = group_time(stage, kind, bytes_per_parameter=mode.reduce_bytes)
    if mode.gather_at_step:
        gather_s = group_time(stage, Collective.ALL_GATHER, bytes_per_parameter=mode.gather_bytes)
    exposed_s = exposed(
        reduce_s, hidden_behind_s=overlap.scatter * stage.backward.total_s, tail=overlap.tail
    ) + exposed(gather_s, hidden_behind_s=overlap.gather * stage.forward.total_s, tail=overlap.tail)
    return reduce_s + gather_s, exposed_s


def _owned(stage: StageTerms, *, sharded: bool) -> float:
    """Local parameters whose state a rank owns."""
    if not sharded:
        return stage.dense_parameters + stage.expert_parameters
    return (
        stage.dense_parameters / stage.dense_group.shards
        + stage.expert_parameters / stage.expert_group.shards
    )


def stage_memory(
    stage: StageTerms,
    mode: StateMode,
    *,
    stages: int,
    virtual_stages: int,
    micro_batches: int,
) -> MemoryBreakdown:
    """Peak memory of one device of a stage."""
    held = in_flight(
        position=stage.position,
        stages=stages,
        virtual_stages=virtual_stages,
        micro_batches=micro_batches,
    )
    buffers = 0.0
    if mode.gather_per_micro_batch:  # the block in use and the one being prefetched
        buffers += 2.0 * stage.largest_block_parameters * mode.gather_bytes
    if mode.scatter_per_micro_batch:
        buffers += stage.largest_block_parameters * mode.reduce_bytes
    return MemoryBreakdown(
        parameters_bytes=mode.parameter_bytes * _owned(stage, sharded=mode.parameter_sharded),
        gradients_bytes=mode.gradient_bytes * _owned(stage, sharded=mode.gradient_sharded),
        optimizer_bytes=mode.optimizer_bytes * _owned(stage, sharded=mode.optimizer_sharded),
        activations_bytes=held * stage.activation_bytes,
        temporaries_bytes=stage.transient_bytes,
        buffers_bytes=buffers,
        framework_bytes=stage.framework_bytes,
        capacity_bytes=stage.capacity_bytes,
    )


def step_cost(
    stages: Sequence[StageTerms],
    mode: StateMode | Sequence[StateMode],
    overlap: OverlapFactors,
    *,
    virtual_stages: int,
    micro_batches: int,
    fixed_s: float = 0.0,
) -> CostBreakdown:
    """Time of one step, by component, along the critical path.

    The components of the slowest stage, times the micro-batches, are the busy time; what
    other stages add while the pipeline fills and drains is the bubble.

    Args:
        stages: in pipeline order; equal neighbours may be merged by ``multiplicity``.
        mode: how states are kept, for all stages or one per entry of ``stages``.
        overlap: what hides behind what.
        virtual_stages: v.
        micro_batches: m.
        fixed_s: host work per step that nothing hides.
    """
    modes = [mode] * len(stages) if isinstance(mode, StateMode) else list(mode)
    p = sum(stage.multiplicity for stage in stages)
    hop_s = max(stage.hop_s for stage in stages) if p > 1 else 0.0
    steady_hop_s = 2.0 * virtual_stages * hop_s * (1.0 - overlap.p2p)

    data = [_micro_batch_data_s(s, z, overlap) for s, z in zip(stages, modes, strict=True)]
    times = [
        stage_time(stage, z, overlap) + steady_hop_s for stage, z in zip(stages, modes, strict=True)
    ]
    slowest = max(range(len(stages)), key=times.__getitem__)
    path_s = sum(t * stage.multiplicity for t, stage in zip(times, stages, strict=True))
    fill_s = (path_s - times[slowest]) / virtual_stages + 2.0 * (p - 1) * hop_s * overlap.p2p

    ends = []
    for stage, z in zip(stages, modes, strict=True):
        total_s, exposed_s = _step_data_s(stage, z, overlap)
        update_s = stage.optimizer_s_per_parameter * _owned(stage, sharded=z.optimizer_sharded)
        ends.append((exposed_s + update_s, total_s, exposed_s, update_s))
    _, end_total_s, end_exposed_s, update_s = max(ends)

    stage = stages[slowest]
    m = float(micro_batches)
    sums = {
        f.name: m * (getattr(stage.forward, f.name) + getattr(stage.backward, f.name))
        for f in fields(PassTime)
    }
    return CostBreakdown(
        **sums,
        pipeline_s=m * steady_hop_s,
        data_s=m * data[slowest][1] + end_exposed_s,
        data_total_s=m * data[slowest][0] + end_total_s,
        bubble_s=fill_s,
        optimizer_s=update_s,
        fixed_s=fixed_s,
    )
