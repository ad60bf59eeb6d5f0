"""Strategies in words."""

from __future__ import annotations

from meshwright.planning.plan_types import Plan
from meshwright.strategy import ContextAlgorithm, Offload, Recompute, Stage, Strategy
from meshwright.units import format_bytes, format_percent, format_seconds

ALGORITHM_WORDS = {
    ContextAlgorithm.RING: "ring",
    ContextAlgorithm.ALL_GATHER: "all-gather",
    ContextAlgorithm.ULYSSES: "Ulysses",
}


def short_degrees(strategy: Strategy) -> str:
    """Degrees as training logs write them; degree 1 is left out.

    Data is always there, so that the text is never empty.
    """
    stage = strategy.stages[0]
    chunks = f"×{strategy.virtual_stages}" if strategy.virtual_stages > 1 else ""
    parts = [
        ("tp", stage.tensor, ""),
        ("cp", stage.context, ""),
        ("pp", strategy.pipeline, chunks),
        ("dp", strategy.data, ""),
        ("ep", stage.expert, ""),
        ("etp", stage.expert_tensor, ""),
    ]
    return " ".join(
        f"{name}{degree}{more}" for name, degree, more in parts if degree > 1 or name == "dp"
    )


def recompute_mode(strategy: Strategy) -> str:
    """The recomputation of all layers: a mode, or ``"mixed"``."""
    modes = {mode for stage in strategy.stages for mode in stage.recompute_of_layers()}
    return next(iter(modes)).value if len(modes) == 1 else "mixed" if modes else "none"


def short_choices(strategy: Strategy) -> str:
    """What goes with the degrees: micro-batch, ZeRO, recomputation, in few characters."""
    stage = strategy.stages[0]
    shards = f"/{stage.data_shard}" if _is_hybrid(stage) else ""
    found = [f"mb{strategy.micro_batch_size}", f"ZeRO-{stage.zero_stage}{shards}"]
    if stage.sequence_parallel:
        found.append("sp")
    if stage.context > 1 and stage.context_algorithm is not ContextAlgorithm.RING:
        found.append(ALGORITHM_WORDS[stage.context_algorithm])
    mode = recompute_mode(strategy)
    if mode != Recompute.NONE.value:
        found.append(f"{mode} recompute")
    if stage.offload is Offload.OPTIMIZER:
        found.append("offload")
    return " ".join(found)


def _is_hybrid(stage: Stage) -> bool:
    """Whether states are shared by a part of the data ranks only."""
    return stage.zero_stage > 0 and stage.data_shard < stage.data


def long_strategy(strategy: Strategy) -> str:
    """The strategy in words: "tensor 8 with sequence parallelism, pipeline 4, …"."""
    stage = strategy.stages[0]
    found = []
    if stage.tensor > 1:
        split = " with sequence parallelism" if stage.sequence_parallel else ""
        found.append(f"tensor {stage.tensor}{split}")
    if stage.context > 1:
        found.append(f"context {stage.context} ({ALGORITHM_WORDS[stage.context_algorithm]})")
    if strategy.pipeline > 1:
        chunks = strategy.virtual_stages
        more = f" × {chunks} virtual stages" if chunks > 1 else ""
        found.append(f"pipeline {strategy.pipeline}{more}")
    if stage.expert > 1:
        found.append(f"expert {stage.expert}")
    if stage.expert_tensor > 1:
        found.append(f"expert-tensor {stage.expert_tensor}")
    shards = f" over {stage.data_shard} ranks" if _is_hybrid(stage) else ""
    found.append(f"data {strategy.data} with ZeRO-{stage.zero_stage}{shards}")
    found.append(f"micro-batch {strategy.micro_batch_size} × {strategy.micro_batches:,}")
    mode = recompute_mode(strategy)
    found.append("no recomputation" if mode == Recompute.NONE.value else f"{mode} recomputation")
    if stage.offload is Offload.OPTIMIZER:
        found.append("optimizer state in host memory")
    return ", ".join(found)


def plan_sentence(plan: Plan) -> str:
    """The plan and what it is predicted to do, in one sentence."""
    p = plan.prediction
    room = format_bytes(abs(p.headroom_bytes))
    fit = f"with {room} per device to spare" if p.fits else f"but {room} per device are lacking"
    return (
        f"{plan.model.name} on {plan.cluster.name}: {long_strategy(plan.strategy)}; "
        f"{format_seconds(p.step_time_s)} per step, {p.tokens_per_s_per_device:,.0f} tokens/s per "
        f"device, {format_percent(p.mfu)} MFU, {fit}."
    )
