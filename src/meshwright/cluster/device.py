"""Devices: what one accelerator can do, and how much of it software reaches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, TypeAlias

from meshwright.cluster.checks import require_count, require_latency, require_rate
from meshwright.errors import ClusterError
from meshwright.provenance import Figure, Provenance, Source

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Number: TypeAlias = float | NDArray[np.float64]

# What stands in for a precision that the hardware lacks, in order.
_STAND_INS: Mapping[str, tuple[str, ...]] = {
    "fp32": ("tf32", "fp32", "bf16", "fp16"),
    "tf32": ("tf32", "fp32", "bf16", "fp16"),
    "bf16": ("bf16", "fp16", "tf32", "fp32"),
    "fp16": ("fp16", "bf16", "tf32", "fp32"),
    "int8": ("int8", "fp8", "bf16", "fp16", "tf32", "fp32"),
    "fp8": ("fp8", "bf16", "fp16", "tf32", "fp32"),
    "fp4": ("fp4", "fp8", "bf16", "fp16", "tf32", "fp32"),
}
PRECISIONS = tuple(_STAND_INS)


@dataclass(frozen=True, slots=True, kw_only=True)
class GemmCurve:
    """Share of the peak that a matrix product of shape (m, n, k) reaches.

    ``limit * m/(m + m_half) * n/(n + n_half) * k/(k + k_half)``: a dimension of the half size
    costs a factor two. The form is ours; the coefficients are least squares on measured times
    (``scripts/distil_catalog.py``).

    Attributes:
        limit: share that very large products reach, in (0, 1].
        m_half, n_half, k_half: rows, columns and reduction at which half the limit is reached.
    """

    limit: float
    m_half: float
    n_half: float
    k_half: float

    def efficiency(self, m: Number, n: Number, k: Number) -> Number:
        """Share of the peak, elementwise on floats or on numpy arrays that broadcast."""
        rows, columns, depth = m / (m + self.m_half), n / (n + self.n_half), k / (k + self.k_half)
        return self.limit * rows * columns * depth


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """One device as a framework sees it (a GCD of an MI250X, a die of an Ascend 910C).

    All rates are per device; link, host and network rates are in one direction.

    Attributes:
        name, vendor, family: devices of one family share an architecture.
        memory_bytes: what the driver offers to programs.
        peak_flops: FLOP/s by precision, dense, as the vendor prints it.
        memory_bandwidth_bytes_per_s: of the device's own memory.
        link, link_domain_name: scale-up link, and what a domain of it is called.
        link_bandwidth_bytes_per_s: sum over all scale-up links of the device.
        link_latency_s: cost of one more step of a collective on the scale-up link.
        link_ramp_s: cost of one chunk of a transfer over it (see ``level``).
        link_domain: most devices that the scale-up link joins.
        devices_per_node: devices under one host in the usual machine.
        host_bandwidth_bytes_per_s: to host memory.
        nic_bandwidth_bytes_per_s, nic_latency_s, nic_ramp_s: usual scale-out network, per
            device; latency and ramp as for the link.
        devices_per_nic: devices that share one network port.
        gemm: efficiency curve by precision.
        attention_efficiency, attention_backward_efficiency: share of the 16-bit peak that
            fused attention reaches, of the FLOPs that the mask leaves.
        memory_efficiency: share of the memory bandwidth that elementwise kernels reach.
        link_efficiency, nic_efficiency: bus bandwidth of large all-gathers and
            reduce-scatters over the rate.
        link_all_reduce_efficiency, link_all_to_all_efficiency: the same for these; all-reduce
            may pass 1 where the switch adds.
        sustained_efficiency: share of the speed of kernels timed alone that a whole training
            step reaches: clocks under sustained power, kernels that no op stands for.
        launch_s: least time of one kernel.
        collective_launch_s: least time of one collective call, before its steps.
        framework_bytes: context, communicators, workspaces, allocator reserve.
        sources: origin of each number, by field name.
    """

    name: str
    vendor: str
    family: str
    memory_bytes: int
    peak_flops: Mapping[str, float] = field(hash=False)
    memory_bandwidth_bytes_per_s: float
    link: str
    link_domain_name: str
    link_bandwidth_bytes_per_s: float
    link_latency_s: float
    link_ramp_s: float
    link_domain: int
    devices_per_node: int
    host_bandwidth_bytes_per_s: float
    nic_bandwidth_bytes_per_s: float
    nic_latency_s: float
    nic_ramp_s: float
    devices_per_nic: int
    gemm: Mapping[str, GemmCurve] = field(hash=False)
    attention_efficiency: float
    attention_backward_efficiency: float
    memory_efficiency: float
    link_efficiency: float
    link_all_reduce_efficiency: float
    link_all_to_all_efficiency: float
    nic_efficiency: float
    sustained_efficiency: float
    launch_s: float
    collective_launch_s: float
    framework_bytes: int
    sources: Mapping[str, Source] = field(hash=False, repr=False)

    def __post_init__(self) -> None:
        for f in fields(self):
            value, where = getattr(self, f.name), f"{self.name}.{f.name}"
            if f.name.endswith("_bytes_per_s"):
                require_rate(value, where=where)
            elif f.name.endswith("_efficiency"):
                require_rate(value, where=where, most=most_efficiency(f.name))
            elif f.name.endswith("_s"):
                require_latency(value, where=where)
            elif f.name.endswith("_bytes"):
                require_count(value, where=where, most=2**50)
        require_count(self.link_domain, where=f"{self.name}.link_domain")
        require_count(self.devices_per_node, where=f"{self.name}.devices_per_node")
        require_count(self.devices_per_nic, where=f"{self.name}.devices_per_nic")
        self._check_compute()

    def _check_compute(self) -> None:
        for mapping in (self.peak_flops, self.gemm):
            where = f"{self.name}.{'gemm' if mapping is self.gemm else 'peak_flops'}"
            unknown = sorted(set(mapping) - set(PRECISIONS))
            if unknown or not mapping:
                what = f"unknown precision {unknown[0]!r}" if unknown else "no precision is given"
                raise ClusterError(what, where=where, allowed=", ".join(PRECISIONS))
        for precision, value in self.peak_flops.items():
            require_rate(value, where=f"{self.name}.peak_flops.{precision}")
        for precision, curve in self.gemm.items():
            where = f"{self.name}.gemm.{precision}"
            require_rate(curve.limit, where=f"{where}.limit", most=1.0)
            for key in ("m_half", "n_half", "k_half"):
                require_rate(getattr(curve, key), where=f"{where}.{key}", least=-1e-9)

    def effective_precision(self, precision: str) -> str:
        """The precision that the hardware computes in when asked for ``precision``.

        Differs from ``precision`` where the hardware lacks it: bf16 on a V100 runs as fp16,
        fp8 on an A100 as bf16; fp32 products run as TF32 where that exists.

        Raises:
            ClusterError: no such precision.
        """
        return _first(self.peak_flops, precision, where=self.name)

    def peak(self, precision: str) -> float:
        """Dense FLOP/s in ``effective_precision(precision)``."""
        return self.peak_flops[self.effective_precision(precision)]

    def gemm_curve(self, precision: str) -> GemmCurve:
        """The curve of that precision, or of the nearest one that was measured."""
        chain = _first(self.peak_flops, precision, where=self.name)
        return self.gemm[_first(self.gemm, chain, where=self.name)]

    def figure(self, name: str) -> Figure:
        """A numeric field with its origin."""
        unknown = Source(kind=Provenance.ANALYTIC, text="no source is given")
        return Figure(value=float(getattr(self, name)), source=self.sources.get(name, unknown))


def most_efficiency(name: str) -> float:
    """Upper limit of an efficiency: 2 for all-reduce, which a switch that adds may halve."""
    return 2.0 if "all_reduce" in name else 1.0


def _first(mapping: Mapping[str, object], precision: str, *, where: str) -> str:
    chain = _STAND_INS.get(precision)
    if chain is None:
        raise ClusterError(
            f"unknown precision {precision!r}", where=where, allowed=", ".join(PRECISIONS)
        )
    return next((p for p in chain if p in mapping), next(iter(mapping)))
