"""Coefficients of a software stack: what it overlaps, fuses, launches and keeps.

Values per stack are data, in ``cost/stacks.toml``; every number carries its origin.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields

from meshwright.cost.step import OverlapFactors
from meshwright.errors import WorkloadError
from meshwright.provenance import Source

#: Fields that are tables, by device family or by precision; what they lack has its default.
TABLES = ("family_efficiency", "family_half_scale", "gradient_bytes", "state_bytes")


@dataclass(frozen=True, slots=True, kw_only=True)
class Coefficients:
    """What the stack does with compute, communication and memory.

    Attributes:
        matrix_efficiency: share of the speed of a tuned kernel that the stack's contractions
            reach, besides what the device keeps up.
        family_efficiency: the same once more for some devices: by family, or by family and
            precision as in ``"H100:fp8"``.
        family_half_scale: the same for ``gemm_half_scale``, by family.
        gemm_half_scale: of the dimensions at which a contraction has half its speed, against
            those of kernels timed alone.
        score_traffic: passes of an unfused attention's matrices through memory, against one
            read and one write of each.
        overlap: data-parallel and boundary traffic behind compute.
        tensor_scale: tensor-parallel traffic takes this many times what it takes alone.
        tensor_hidden: share of tensor-parallel traffic hidden by pipelined contractions
            when sequence parallelism is on; all-reduces hide nothing.
        context_hidden: share of attention time behind which ring steps hide.
        expert_hidden: share of the all-to-all that is hidden.
        pointwise_traffic: bytes of memory-bound ops that remain after kernel fusion.
        scan_efficiency: of a chunked recurrence relative to a large contraction.
        attention_extra: contractions that a fused attention backward repeats, relative to
            the forward.
        attention_half: queries per kernel call at which fused attention has half its speed.
        expert_imbalance: tokens of the busiest expert rank over the mean.
        launch_s: host time to launch one op's kernels in forward, and again for each of the
            two parts of its backward; the device waits where that takes longer than its work.
        skew_s: wait for the latest host per tensor-parallel collective and further rank, where
            the host is slower than the device.
        optimizer_traffic: bytes of the optimizer step against one pass over all states.
        step_fixed_s: host work per step.
        bucket_bytes: size of a gradient bucket, at which collectives are tuned.
        memory_reserve: share of the device memory lost to allocator fragmentation.
        gradient_bytes: bytes per parameter that gradients take, by precision, where that is
            not what the recipe says; with whatever else no rank divides.
        state_bytes: the same for optimizer state, which ZeRO divides.
        gradient_stage: ZeRO stage from which a rank keeps a part of the gradients only.
        sharded_master: 1 where the divided parameters of ZeRO-3 are the fp32 master copy.
        step_copy_bytes: of each parameter that a rank owns, allocated by the optimizer's step.
        activation_scale: memory of what a layer keeps for its backward, against its tensors:
            more where blocks are rounded and pipelines copy, less where a compiler recomputes.
        loss_extra_bytes: per logit at the peak of the loss, beyond the logits, their gradient
            and one fp32 copy.
        sources: origin of every number, by field name.
    """

    matrix_efficiency: float
    family_efficiency: Mapping[str, float] = field(hash=False)
    family_half_scale: Mapping[str, float] = field(hash=False)
    gemm_half_scale: float
    score_traffic: float
    overlap: OverlapFactors
    tensor_scale: float
    tensor_hidden: float
    context_hidden: float
    expert_hidden: float
    pointwise_traffic: float
    scan_efficiency: float
    attention_extra: float
    attention_half: float
    expert_imbalance: float
    launch_s: float
    skew_s: float
    optimizer_traffic: float
    step_fixed_s: float
    bucket_bytes: float
    memory_reserve: float
    gradient_bytes: Mapping[str, float] = field(hash=False)
    state_bytes: Mapping[str, float] = field(hash=False)
    gradient_stage: float
    sharded_master: float
    step_copy_bytes: float
    activation_scale: float
    loss_extra_bytes: float
    sources: Mapping[str, Source] = field(hash=False, repr=False)

    def __post_init__(self) -> None:
        explained = set(self.sources) | {"sources", "family_efficiency", "family_half_scale"}
        missing = {f.name for f in fields(self)} - explained
        if missing:
            raise WorkloadError(
                f"coefficients without a source: {', '.join(sorted(missing))}",
                where="stack.coefficients.sources",
                allowed="a kind and a text for every number",
                fix="say where each number comes from",
            )
