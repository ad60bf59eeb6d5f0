"""The strategy of a row: degrees, sharding, recomputation, schedule."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import groupby

from meshwright.errors import StrategyError
from meshwright.strategy import (
    ContextAlgorithm,
    Offload,
    Recompute,
    RecomputeRun,
    Schedule,
    Stage,
    Strategy,
    balanced_chunks,
    stage_ranges,
)
from meshwright.validation.inputs import Parallel, RunInputs
from meshwright.validation.skips import RowSkippedError

_Ranges = tuple[tuple[int, int], ...]

#: How keys travel between context ranks by default; elsewhere in a ring.
_CONTEXT_ALGORITHMS = (
    ("torchtitan", ContextAlgorithm.ALL_GATHER),
    ("deepspeed", ContextAlgorithm.ULYSSES),
)


def strategy_of(inputs: RunInputs, *, num_layers: int) -> Strategy:
    """How the row ran.

    Raises:
        RowSkippedError: the degrees do not agree with one another.
    """
    inputs = _sharded_by_size(inputs)
    p = inputs.parallel
    tensor, pipeline, context = p.tp or 1, p.pp or 1, p.cp or 1
    data = _data(inputs, tensor * pipeline * context)
    # A stated number of virtual stages is idle where there is no pipeline.
    virtual = (p.vpp or 1) if pipeline > 1 else 1
    # The embedding and the loss may take the place of a layer: then two chunks have none.
    if pipeline * virtual > num_layers + 2:
        raise RowSkippedError(
            "strategy_not_expressible", f"{pipeline * virtual} chunks of {num_layers} layers"
        )
    zero, shard = _sharding(p, data)
    experts = bool(inputs.architecture.moe_experts)
    modes = _Modes(p.recompute)
    micro_batch, micro_batches = _batches(inputs, data)
    try:
        stages = tuple(
            Stage(
                layers=ranges,
                tensor=tensor,
                sequence_parallel=tensor > 1 and (bool(p.sequence_parallel) or experts),
                context=context,
                context_algorithm=_context_algorithm(inputs.software.framework),
                expert=(p.ep or 1) if experts else 1,
                expert_tensor=_expert_tensor(inputs, tensor * context * data) if experts else 1,
                data_replicate=data // shard,
                data_shard=shard,
                zero_stage=zero,
                recompute=modes.runs(ranges),
                offload=Offload.OPTIMIZER if "full" in p.offload else Offload.NONE,
            )
            for ranges in stage_ranges(
                _chunks(inputs, num_layers, pipeline * virtual), pipeline=pipeline
            )
        )
        return Strategy(
            stages=stages,
            micro_batch_size=micro_batch,
            micro_batches=micro_batches,
            schedule=Schedule.INTERLEAVED if virtual > 1 else Schedule.ONE_F_ONE_B,
        )
    except StrategyError as error:
        raise RowSkippedError("strategy_not_expressible", error.what) from None


def _sharded_by_size(inputs: RunInputs) -> RunInputs:
    """Alpa's heuristic divides the largest dimension of every tensor over all devices.

    That is a weight's or the vocabulary's, whatever the mesh: one tensor group, and the batch
    whole on it (``force_simple_heuristic = "largest"`` in Alpa's intra-operator ablation).
    """
    p = inputs.parallel
    if "heuristic" not in inputs.software.framework.casefold() or (p.pp or 1) > 1:
        return inputs
    size = (p.micro_batch or 1) * (p.dp or 1)
    parallel = replace(p, tp=inputs.hardware.num_devices, dp=1, micro_batch=size)
    return replace(inputs, parallel=parallel)


def _chunks(inputs: RunInputs, num_layers: int, chunks: int) -> tuple[int, ...]:
    """Layers of every chunk.

    DeepSpeed's partition by layers fills stages from the first: 78 layers on 12 stages are
    eleven times 7 and a last 1 (BigScience's chronicles), unless embedding and loss stand for
    a layer each and make the cut even.
    """
    most = -(-num_layers // chunks)
    fills = "megatron-deepspeed" in inputs.software.framework.casefold()
    if not fills or not (num_layers + 2) % chunks or most * (chunks - 1) >= num_layers:
        return balanced_chunks(num_layers, chunks)
    return (*(most,) * (chunks - 1), num_layers - most * (chunks - 1))


def _data(inputs: RunInputs, other: int) -> int:
    """The data degree; derived when it is not stated.

    Raises:
        RowSkippedError: the degrees do not multiply to the devices.
    """
    devices = inputs.hardware.num_devices or 0
    data = inputs.parallel.dp or max(1, devices // other)
    if data * other != devices:
        raise RowSkippedError(
            "degrees_disagree", f"degrees of {data * other} ranks on {devices} devices"
        )
    return data


def _batches(inputs: RunInputs, data: int) -> tuple[int, int]:
    """Sequences per micro-batch, and micro-batches.

    Raises:
        RowSkippedError: they are not stated, or do not multiply to the global batch.
    """
    micro_batch, stated = inputs.parallel.micro_batch, inputs.parallel.num_microbatches
    batch = inputs.global_batch or 0
    if not micro_batch:
        if not stated or batch % (data * stated):
            raise RowSkippedError("batch_missing", "the micro-batch is not stated")
        micro_batch = batch // (data * stated)
    if micro_batch < 1 or batch % (data * micro_batch):
        raise RowSkippedError(
            "degrees_disagree", f"a batch of {batch} on {data} replicas of {micro_batch}"
        )
    return micro_batch, batch // (data * micro_batch)


def _sharding(p: Parallel, data: int) -> tuple[int, int]:
    """ZeRO stage, and ranks that a replica's states are divided over.

    Texts such as ``3 (FSDP axis)``, ``1 (shard group 8)``, and those of a solver that may
    reduce-scatter (Alpa), which shards what a reduce-scatter leaves sharded: stage 2.
    """
    text = p.zero_stage.casefold()
    number = re.match(r"\s*([0-3])", text)
    if number is not None:
        zero = int(number[1])
    elif "reduce-scatter" in text:
        zero = 2
    else:
        zero = 3 if p.fsdp else 0
    if not zero:
        return 0, 1
    group = re.search(r"shard group\s*(\d+)", text)
    shard = min(int(group[1]), data) if group else data
    return (zero, shard) if shard and data % shard == 0 else (zero, data)


def _expert_tensor(inputs: RunInputs, ranks: int) -> int:
    """The stated degree, else what the software takes when nobody says it.

    NeMo splits an expert over the tensor group (``expert_tensor_parallel_size`` is the tensor
    degree unless it is set); the recipes of Megatron-Bridge keep experts whole.
    """
    p = inputs.parallel
    degree = p.etp or (p.tp or 1 if "nemo" in inputs.software.framework.casefold() else 1)
    return degree if ranks % ((p.ep or 1) * degree) == 0 else 1


def _context_algorithm(framework: str) -> ContextAlgorithm:
    """The algorithm of the software."""
    known = (kind for word, kind in _CONTEXT_ALGORITHMS if word in framework.casefold())
    return next(known, ContextAlgorithm.RING)


class _Modes:
    """What every layer recomputes, from a text.

    ``full``; ``full:block:N`` (the first N layers of a stage); ``selective...`` with the
    modules that are repeated. We know three modes, so the others become the nearest mix:
    every other layer whole for "every other layer", for per-op choices that keep every other
    product, and for recomputing the feed-forward part; nothing for cheap modules (norms,
    activations, latent up-projections).
    """

    def __init__(self, text: str) -> None:
        folded = text.casefold()
        block = re.match(r"full:block:(\d+)", folded)
        self._first = int(block[1]) if block else None
        self._every_other = False
        self._mode = Recompute.NONE
        if folded.startswith("full"):
            self._mode = Recompute.FULL
        elif folded.startswith("selective"):
            modules = set(re.split(r"[+,]", folded.partition(":")[2])) - {""}
            if not modules or modules & {"mlp", "moe"}:
                self._mode, self._every_other = Recompute.FULL, True
            elif modules & {"core_attention", "core_attn"}:
                self._mode = Recompute.SELECTIVE
        if folded == "selective":
            self._mode, self._every_other = Recompute.SELECTIVE, False

    def runs(self, ranges: _Ranges) -> tuple[RecomputeRun, ...]:
        """Runs of equal modes over the layers of a stage."""
        layers = [layer for start, stop in ranges for layer in range(start, stop)]
        modes = [self._of(position, layer) for position, layer in enumerate(layers)]
        return tuple(
            RecomputeRun(count=sum(1 for _ in same), mode=mode) for mode, same in groupby(modes)
        )

    def _of(self, position: int, layer: int) -> Recompute:
        if self._first is not None:
            return self._mode if position < self._first else Recompute.NONE
        if self._every_other:
            return self._mode if layer % 2 else Recompute.NONE
        return self._mode
