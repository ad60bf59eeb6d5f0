"""Breakdowns: what the time of a step and the memory of a device are made of."""

from __future__ import annotations

from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True, kw_only=True)
class CostBreakdown:
    """Seconds of one step along the critical path; the parts add up to ``step_s``.

    Attributes:
        compute_s: forward and backward of the slowest stage, all micro-batches.
        recompute_s: forward work repeated in the backward.
        launch_s: the device waits for the host to launch its kernels.
        tensor_s, context_s, expert_s: exposed communication inside the layers.
        pipeline_s: exposed boundary messages in the steady state.
        data_s: exposed gradient reduction and parameter gathering.
        bubble_s: the slowest stage waits while the pipeline fills and drains.
        optimizer_s: the update of the states that a rank owns.
        fixed_s: host work per step.
        data_total_s: gradient and parameter communication, hidden or not (not in the sum).
    """

    compute_s: float
    recompute_s: float
    launch_s: float
    tensor_s: float
    context_s: float
    expert_s: float
    pipeline_s: float
    data_s: float
    bubble_s: float
    optimizer_s: float
    fixed_s: float
    data_total_s: float

    @property
    def communication_s(self) -> float:
        """All exposed communication."""
        return self.tensor_s + self.context_s + self.expert_s + self.pipeline_s + self.data_s

    @property
    def step_s(self) -> float:
        """Time of one step."""
        return (
            self.compute_s
            + self.recompute_s
            + self.launch_s
            + self.communication_s
            + self.bubble_s
            + self.optimizer_s
            + self.fixed_s
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryBreakdown:
    """Peak bytes on one device; the parts add up to ``total_bytes``.

    Attributes:
        parameters_bytes, gradients_bytes, optimizer_bytes: states that the rank holds.
        activations_bytes: kept for backward, all micro-batches in flight.
        temporaries_bytes: largest working set while one block runs.
        buffers_bytes: gathered parameters and gradients on the wire.
        framework_bytes: device context, communicators, workspaces, allocator reserve.
        capacity_bytes: memory of the device (not in the sum).
    """

    parameters_bytes: float
    gradients_bytes: float
    optimizer_bytes: float
    activations_bytes: float
    temporaries_bytes: float
    buffers_bytes: float
    framework_bytes: float
    capacity_bytes: float

    @property
    def total_bytes(self) -> float:
        """Peak memory."""
        return float(sum(getattr(self, f.name) for f in fields(self) if f.name != "capacity_bytes"))

    @property
    def headroom_bytes(self) -> float:
        """What is left; negative when the stage does not fit."""
        return self.capacity_bytes - self.total_bytes

    @property
    def fits(self) -> bool:
        """Whether the device holds it."""
        return self.headroom_bytes >= 0.0
