"""Why a plan is as fast as it is, what binds it, and what would change the choice."""

from __future__ import annotations

from collections.abc import Iterator

from meshwright.explain.pace import stage_paces_s
from meshwright.explain.parts import Part, memory_parts, time_parts
from meshwright.planning import Plan, PlanResult
from meshwright.planning.words import recompute_mode
from meshwright.strategy import Strategy
from meshwright.units import MIB, format_bytes, format_percent, format_seconds

#: With less of the device memory left than this share, memory binds: one more micro-batch in
#: flight or one step less of sharding does not fit.
TIGHT_SHARE = 0.10
#: Stages whose times differ by less than this share are called equal.
EQUAL_PACE = 0.01
#: A thriftier plan is told when it saves this share of the memory and is not slower than that.
WORTH_SAVING, MUCH_SLOWER = 0.10, 0.15


def binding_sentences(plan: Plan) -> tuple[str, ...]:
    """Which stage and resource bind: time first, then memory."""
    return (*_time_binding(plan), *_pace(plan), _memory_binding(plan))


def _time_binding(plan: Plan) -> Iterator[str]:
    time = plan.prediction.time
    parts = sorted(time_parts(time), key=lambda part: -part.value)
    first, others = parts[0], [part for part in parts[1:] if part.share >= 0.005]
    yield (
        f"Time: bound by {first.name}, {format_seconds(first.value)} of "
        f"{format_seconds(time.step_s)} ({format_percent(first.share)})"
        + (f"; then {_listed(others[:3])}." if others else ".")
    )
    hidden_s = time.data_total_s - time.data_s
    if time.data_total_s > 0.0 and hidden_s > 0.05 * time.step_s:
        yield (
            f"Of {format_seconds(time.data_total_s)} of gradient and parameter traffic, "
            f"{format_seconds(hidden_s)} are hidden behind compute: a slower network shows first "
            "there."
        )


def _listed(parts: list[Part]) -> str:
    return ", ".join(
        f"{part.name} {format_seconds(part.value)} ({format_percent(part.share)})" for part in parts
    )


def _pace(plan: Plan) -> Iterator[str]:
    """The stage that the others wait for."""
    paces = stage_paces_s(plan)
    slowest, fastest = max(paces), min(paces)
    if len(paces) > 1 and slowest > (1.0 + EQUAL_PACE) * fastest:
        stage = paces.index(slowest)
        yield (
            f"Stage {stage + 1} of {len(paces)} ({plan.strategy.stages[stage].num_layers} layers) "
            f"sets the pace: {format_seconds(slowest)} per micro-batch, "
            f"{format_percent(slowest / fastest - 1.0)} more than the fastest stage."
        )


def _memory_binding(plan: Plan) -> str:
    memory = plan.prediction.tightest
    share = memory.headroom_bytes / memory.capacity_bytes
    largest = max(memory_parts(memory), key=lambda part: part.value)
    state = "does not fit" if share < 0 else "binds" if share < TIGHT_SHARE else "does not bind"
    left = (
        f"{format_bytes(-memory.headroom_bytes)} are lacking"
        if share < 0
        else f"{format_percent(share)} is left"
    )
    return (
        f"Memory {state}: {memory_places(plan)[tightest(plan)]} needs "
        f"{format_bytes(memory.total_bytes)} of {format_bytes(memory.capacity_bytes)} per device, "
        f"{left}; the largest part is {largest.name}, {format_bytes(largest.value)}."
    )


def tightest(plan: Plan) -> int:
    """Index into ``Prediction.memory`` of the entry with least headroom."""
    memory = plan.prediction.memory
    return min(range(len(memory)), key=lambda i: memory[i].headroom_bytes)


def memory_places(plan: Plan) -> tuple[str, ...]:
    """What each entry of ``Prediction.memory`` is the memory of.

    There is one per stage and device group that runs it, so several of a stage in a mixed
    cluster; the group is named where the capacity tells it.
    """
    places = []
    memory = iter(plan.prediction.memory)
    stages = plan.strategy.stages
    for index, stage in enumerate(stages):
        for _ in stage.groups:
            capacity = next(memory).capacity_bytes
            groups = [plan.cluster.groups[g] for g in stage.groups]
            alike = [g.name for g in groups if g.device.memory_bytes == capacity]
            name = f", {alike[0]}" if len(alike) == 1 and not plan.cluster.is_uniform else ""
            place = f"stage {index + 1} of {len(stages)}" if len(stages) > 1 else "the stage"
            places.append(f"{place}{name}")
    return tuple(places)


def alternative_sentences(result: PlanResult) -> tuple[str, ...]:
    """The nearest alternative, what it trades, and where the choice would turn."""
    if not result.alternatives:
        return ("No other strategy in the space fits.",)
    best, other = result.best, result.alternatives[0]
    slower_s = other.prediction.step_time_s - best.prediction.step_time_s
    nearest = (
        f"Nearest alternative: {differences(best.strategy, other.strategy)}; "
        f"{format_percent(slower_s / best.prediction.step_time_s)} slower, "
        f"{_memory_change(best, other)}."
    )
    return (nearest, *_turning_point(best, other, slower_s), *_thrift(result))


def differences(a: Strategy, b: Strategy) -> str:
    """What ``b`` does otherwise than ``a``."""
    one, two = _choices(a), _choices(b)
    found = [f"{name} {two[name]} instead of {one[name]}" for name in one if one[name] != two[name]]
    return ", ".join(found) or "the same degrees in another arrangement"


def _choices(strategy: Strategy) -> dict[str, str]:
    stage = strategy.stages[0]
    return {
        "tensor": str(stage.tensor),
        "context": str(stage.context),
        "pipeline": str(strategy.pipeline),
        "virtual stages": str(strategy.virtual_stages),
        "data": str(strategy.data),
        "data shards": str(stage.data_shard)
        if stage.zero_stage and stage.data_replicate > 1
        else "all",
        "expert": str(stage.expert),
        "expert-tensor": str(stage.expert_tensor),
        "micro-batch": str(strategy.micro_batch_size),
        "ZeRO": str(stage.zero_stage),
        "recomputation": recompute_mode(strategy),
        "sequence parallelism": "on" if stage.sequence_parallel else "off",
        "offload": stage.offload.value,
    }


def _memory_change(best: Plan, other: Plan) -> str:
    change = other.prediction.peak_memory_bytes - best.prediction.peak_memory_bytes
    word = "more" if change > 0 else "less"
    if abs(change) < MIB:
        return "the same peak memory"
    return f"{format_bytes(abs(change))} {word} peak memory"


def _turning_point(best: Plan, other: Plan, slower_s: float) -> Iterator[str]:
    """How much better the alternative's worst part would have to be for it to win."""
    pairs = zip(time_parts(best.prediction.time), time_parts(other.prediction.time), strict=True)
    excess, part = max(((b.value - a.value, b) for a, b in pairs), key=lambda pair: pair[0])
    if 0.0 < slower_s <= excess:
        yield (
            f"It would win if its {part.name} ({format_seconds(part.value)}) were "
            f"{format_percent(slower_s / part.value)} less than predicted."
        )


def _thrift(result: PlanResult) -> Iterator[str]:
    """The plan of least memory that is not much slower, where it saves something."""
    best = result.best.prediction
    near = [p for p in result.pareto if p.step_time_s <= (1.0 + MUCH_SLOWER) * best.step_time_s]
    if not near:
        return
    least = min(near, key=lambda point: point.peak_memory_bytes)
    if least.peak_memory_bytes < (1.0 - WORTH_SAVING) * best.peak_memory_bytes:
        slower = least.step_time_s / best.step_time_s - 1.0
        yield (
            f"Less memory: {format_bytes(least.peak_memory_bytes)} per device, "
            f"{format_percent(slower)} slower, with "
            f"{differences(result.best.strategy, least.strategy)}."
        )


def bound_sentence(result: PlanResult) -> str:
    """How good the answer is proved to be."""
    found = (
        f"{result.candidates:,} candidates, {result.evaluated:,} evaluated in "
        f"{format_seconds(result.search_s)}"
    )
    if result.complete:
        return f"{found}: under this cost model no strategy of the space is faster."
    least_s = result.lower_bound_s
    less = format_percent(1.0 - 1.0 / (1.0 + result.gap))
    return (
        f"{found}, then stopped: no strategy takes less than {format_seconds(least_s)} (roofline), "
        f"{less} less than the best found."
    )
