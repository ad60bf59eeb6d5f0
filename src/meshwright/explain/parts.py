"""Parts of a step and of a device's memory, in words."""

from __future__ import annotations

from dataclasses import dataclass

from meshwright.cost.breakdown import CostBreakdown, MemoryBreakdown

_TIME_PARTS = {
    "compute_s": "compute",
    "recompute_s": "recomputation",
    "launch_s": "waiting for kernel launches",
    "tensor_s": "exposed tensor communication",
    "context_s": "exposed context communication",
    "expert_s": "exposed expert communication",
    "pipeline_s": "exposed stage-to-stage messages",
    "data_s": "exposed gradient and parameter traffic",
    "bubble_s": "pipeline bubble",
    "optimizer_s": "optimizer step",
    "fixed_s": "host work per step",
}
_MEMORY_PARTS = {
    "parameters_bytes": "parameters",
    "gradients_bytes": "gradients",
    "optimizer_bytes": "optimizer state",
    "activations_bytes": "activations",
    "temporaries_bytes": "temporaries",
    "buffers_bytes": "communication buffers",
    "framework_bytes": "framework and reserve",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One part of a sum.

    Attributes:
        field: its name in the breakdown.
        name: in words.
        value: in the unit of the breakdown.
        share: of the sum.
    """

    field: str
    name: str
    value: float
    share: float


def time_parts(time: CostBreakdown) -> tuple[Part, ...]:
    """Every part of the step, in order of the breakdown."""
    return _parts(time, _TIME_PARTS, total=time.step_s)


def memory_parts(memory: MemoryBreakdown) -> tuple[Part, ...]:
    """Every part of the memory of one device, in order of the breakdown."""
    return _parts(memory, _MEMORY_PARTS, total=memory.total_bytes)


def _parts(breakdown: object, names: dict[str, str], *, total: float) -> tuple[Part, ...]:
    values = {field: float(getattr(breakdown, field)) for field in names}
    return tuple(
        Part(field=field, name=names[field], value=value, share=value / total)
        for field, value in values.items()
    )
