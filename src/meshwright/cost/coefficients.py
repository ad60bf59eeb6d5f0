"""Coefficients of the software stack: what it overlaps, fuses and keeps.

One value: a modern stack (Megatron-Core with Transformer Engine, or torchtitan). Every number
carries its origin; ``plan`` prints those that decide.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields

from meshwright.cost.step import OverlapFactors
from meshwright.provenance import Provenance, Source
from meshwright.units import MIB, MICROSECOND


@dataclass(frozen=True, slots=True, kw_only=True)
class Coefficients:
    """What the stack does with compute, communication and memory.

    Attributes:
        overlap: data-parallel and boundary traffic behind compute.
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
        step_fixed_s: host work per step.
        bucket_bytes: size of a gradient bucket, at which collectives are tuned.
        memory_reserve: share of the device memory lost to allocator fragmentation.
        sources: origin of every number, by field name.
    """

    overlap: OverlapFactors
    tensor_hidden: float
    context_hidden: float
    expert_hidden: float
    pointwise_traffic: float
    scan_efficiency: float
    attention_extra: float
    attention_half: float
    expert_imbalance: float
    launch_s: float
    step_fixed_s: float
    bucket_bytes: float
    memory_reserve: float
    sources: Mapping[str, Source] = field(hash=False, repr=False)

    def __post_init__(self) -> None:
        missing = {f.name for f in fields(self)} - set(self.sources) - {"sources"}
        assert not missing, f"coefficients without a source: {sorted(missing)}"


def _analytic(text: str) -> Source:
    return Source(kind=Provenance.ANALYTIC, text=text)


MODERN = Coefficients(
    overlap=OverlapFactors(gather=0.8, scatter=0.8, p2p=0.8, tail=0.15),
    tensor_hidden=0.5,
    context_hidden=0.8,
    expert_hidden=0.4,
    pointwise_traffic=0.7,
    scan_efficiency=0.35,
    attention_extra=0.5,
    attention_half=200.0,
    expert_imbalance=1.1,
    launch_s=15 * MICROSECOND,
    step_fixed_s=0.01,
    bucket_bytes=64 * MIB,
    memory_reserve=0.06,
    sources={
        "overlap": _analytic(
            "reductions and gathers run beside four fifths of a pass; kernels beside them run "
            "1.1 to 1.3 times slower, as if a seventh of the traffic were exposed"
        ),
        "tensor_hidden": _analytic("tp-comm-overlap of Megatron-Core hides bulk gathers only"),
        "context_hidden": _analytic("ring steps run beside the attention of the step before"),
        "expert_hidden": _analytic(
            "a token goes once to each node, and shared experts run beside the exchange"
        ),
        "pointwise_traffic": _analytic("bias, dropout and residual are one kernel"),
        "scan_efficiency": _analytic("chunked state-space kernels (Dao and Gu 2024, figure 10)"),
        "attention_extra": _analytic(
            "a fused backward computes the scores again (FlashAttention-2, Dao 2023, section 3.2)"
        ),
        "attention_half": _analytic("FlashAttention-3 (Shah et al. 2024), figure 5, 0.5k to 16k"),
        "expert_imbalance": _analytic("auxiliary losses keep the busiest rank near 1.1 times"),
        "launch_s": _analytic("a Python op that launches two or three kernels, some captured"),
        "step_fixed_s": _analytic("data loading, logging and clipping on the host"),
        "bucket_bytes": _analytic("order of magnitude of the buckets of distributed optimizers"),
        "memory_reserve": _analytic("fragmentation of a caching allocator"),
    },
)
