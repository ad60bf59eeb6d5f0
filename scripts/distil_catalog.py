"""Print the catalogue coefficients that measured tables give, device by device.

Usage: ``python scripts/distil_catalog.py TRUTH_FOLDER``, where the folder holds ``gemm.csv`` and
``collectives.csv``. The figures go into ``src/meshwright/cluster/catalog/*.toml`` by hand, with
kind "fitted". Fits minimise the relative error (squares of logarithms). Times are in
microseconds and rates in GB/s, as in the tables and the catalogue.
"""

from __future__ import annotations

import csv
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
CollectiveRow = tuple[str, float, float, float]

SMALL_BYTES = 4096
KILOBYTE = 1e3  # kB over GB/s is µs
MIN_HEADS = 32  # fewer leave a large device idle: a property of the shape, not of the device
# Its groups of 4 and 8 ran at 1 to 5 GB/s: a PCIe path that was set up wrongly.
TRUSTED_DEVICES = {"NVIDIA L40S": 2.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class GemmFit:
    """``limit m/(m + m_half) n/(n + n_half) k/(k + k_half)`` on ``shapes`` rows."""

    device: str
    dtype: str
    peak_tflops: float
    limit: float
    m_half: float
    n_half: float
    k_half: float
    shapes: int
    error: float

    def __str__(self) -> str:
        halves = ", ".join(f"{d}_half = {getattr(self, f'{d}_half'):.0f}" for d in "mnk")
        return (
            f"{self.device:24} {self.dtype:5} of {self.peak_tflops:6.0f} TFLOP/s: "
            f"limit = {self.limit:.3f}, {halves}   ({self.shapes} shapes, error {self.error:.1%})"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionFit:
    """Median share of the peak of one direction of fused attention."""

    device: str
    op: str
    share: float
    shapes: int

    def __str__(self) -> str:
        return f"{self.device:24} {self.op:20} {self.share:.2f}   ({self.shapes} shapes)"


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectiveFit:
    """``T = launch + steps latency + w/B + 2 sqrt(ramp w/B)``, B by kind of collective."""

    device: str
    library: str
    num_devices: float
    launch_us: float
    latency_us: float
    ramp_us: float
    ring_gb_per_s: float
    all_reduce_gb_per_s: float
    all_to_all_gb_per_s: float
    error: float
    error_without_ramp: float

    def __str__(self) -> str:
        return (
            f"{self.device} {self.library}: launch = {self.launch_us:.2f}, "
            f"latency = {self.latency_us:.2f}, ramp = {self.ramp_us:.2f}; "
            f"of {self.num_devices:.0f}: ring = {self.ring_gb_per_s:.1f}, "
            f"all-reduce = {self.all_reduce_gb_per_s:.1f}, "
            f"all-to-all = {self.all_to_all_gb_per_s:.1f}   "
            f"(error {self.error:.1%}; without ramp {self.error_without_ramp:.1%})"
        )


def rows(path: Path) -> Iterator[dict[str, str]]:
    """The lines of a CSV file."""
    with path.open(encoding="utf-8", newline="") as stream:
        yield from csv.DictReader(stream)


def least_squares(
    model: Callable[[Array], Array], target: Array, start: Array, low: Array, high: Array
) -> Array:
    """Levenberg-Marquardt within a box; ``model`` maps parameters to predictions."""
    x, damping = start, 1e-2
    cost = float(np.sum((model(x) - target) ** 2))
    for _ in range(300):
        step = 1e-6 * np.maximum(np.abs(x), 1e-3)
        jacobian = np.stack([(model(x + d) - model(x)) / d.sum() for d in np.diag(step)], axis=1)
        residual = target - model(x)
        normal = jacobian.T @ jacobian + damping * np.eye(x.size)
        trial = np.clip(x + np.linalg.solve(normal, jacobian.T @ residual), low, high)
        trial_cost = float(np.sum((model(trial) - target) ** 2))
        if trial_cost < cost:
            x, cost, damping = trial, trial_cost, damping / 3
        else:
            damping *= 4
        if damping > 1e12:
            break
    return x


def mean_error(log_predicted: Array, measured: Array) -> float:
    """Mean absolute relative error."""
    return float(np.mean(np.abs(np.exp(log_predicted) / measured - 1.0)))


def fit_gemm(table: Iterable[dict[str, str]]) -> list[GemmFit]:
    """Limit and half sizes per device and precision, from rows of ``gemm.csv``."""
    shapes: dict[tuple[str, str, str], list[list[float]]] = defaultdict(list)
    for row in table:
        if row["op"] == "gemm" and row["m"] and row["efficiency"]:
            key = (row["device"], row["dtype"], row["peak_tflops"])
            shapes[key].append([float(row[c]) for c in ("m", "n", "k", "efficiency")])
    return [_fit_shapes(*key, np.array(found)) for key, found in sorted(shapes.items())]


def _fit_shapes(device: str, dtype: str, peak: str, shapes: Array) -> GemmFit:
    sizes, efficiency = shapes.T[:3], shapes.T[3]

    def log_efficiency(x: Array) -> Array:
        result: Array = x[0] - np.log1p(np.exp(x[1:, None]) / sizes).sum(axis=0)
        return result

    low, high = np.array([-5.0, 0, 0, 0]), np.array([0.0, 9, 9, 9])
    start = np.log(np.array([0.75, 100.0, 300.0, 300.0]))
    x = least_squares(log_efficiency, np.log(efficiency), start, low, high)
    limit, m_half, n_half, k_half = (float(value) for value in np.exp(x))
    return GemmFit(
        device=device,
        dtype=dtype,
        peak_tflops=float(peak),
        limit=limit,
        m_half=m_half,
        n_half=n_half,
        k_half=k_half,
        shapes=len(shapes),
        error=mean_error(log_efficiency(x), efficiency),
    )


def fit_attention(table: Iterable[dict[str, str]]) -> list[AttentionFit]:
    """Median share of the peak, of the half of the FLOPs that a causal mask leaves."""
    shares: dict[tuple[str, str], list[float]] = defaultdict(list)
    for row in table:
        if row["op"].startswith("flash_attention"):
            heads = int(row["layout_or_stage"].split("heads=")[1].split(";")[0])
            if heads >= MIN_HEADS:
                shares[row["device"], row["op"]].append(float(row["efficiency"]) / 2.0)
    return [
        AttentionFit(device=device, op=op, share=float(np.median(found)), shapes=len(found))
        for (device, op), found in sorted(shares.items())
    ]


def fit_collectives(table: Iterable[dict[str, str]]) -> list[CollectiveFit]:
    """Launch, latency, ramp and bandwidths per device and library, from ``collectives.csv``."""
    found: dict[tuple[str, str], list[CollectiveRow]] = defaultdict(list)
    for row in table:
        if row["source"].startswith("NVIDIA aiconfigurator"):
            columns = (row["num_devices"], row["message_bytes_per_rank"], row["time_us"])
            n, size, time = (float(value) for value in columns)
            found[row["device"], row["library"]].append((row["op"], n, size, time))
    return [_fit_library(*key, measured) for key, measured in sorted(found.items())]


def _fit_library(device: str, library: str, table: list[CollectiveRow]) -> CollectiveFit:
    ops = np.array([op for op, *_ in table])
    n, size, time = np.array([values for _, *values in table]).T
    passes = np.where(ops == "all_reduce", 2.0, 1.0)
    # An all-to-all starts all its messages at once: one step whatever the number of devices.
    steps = np.where(ops == "alltoall", 1.0, passes * (n - 1))
    small = (ops != "alltoall") & (size <= SMALL_BYTES)
    latency, launch = np.polyfit(steps[small], time[small], 1)

    most = TRUSTED_DEVICES.get(device, float(n.max()))
    chosen = (n == most) & (size > SMALL_BYTES)
    kind = np.select([ops == "all_reduce", ops == "alltoall"], [1, 2], 0)[chosen]
    wire = (passes * size * (n - 1) / n)[chosen] / KILOBYTE
    fixed, measured = (launch + steps * latency)[chosen], time[chosen]

    def log_time(x: Array) -> Array:
        seconds = wire / np.exp(x[kind])
        result: Array = np.log(fixed + seconds + 2 * np.sqrt(np.exp(x[3]) * seconds))
        return result

    def log_plain(x: Array) -> Array:
        result: Array = np.log(fixed + wire / np.exp(x[kind]))
        return result

    start, low, high = (np.log(np.array(v)) for v in ([300.0] * 3 + [3.0], [0.1] * 4, [1e4] * 4))
    x = least_squares(log_time, np.log(measured), start, low, high)
    plain = least_squares(log_plain, np.log(measured), start[:3], low[:3], high[:3])
    ring, all_reduce, all_to_all, ramp = (float(value) for value in np.exp(x))
    return CollectiveFit(
        device=device,
        library=library,
        num_devices=most,
        launch_us=float(launch),
        latency_us=float(latency),
        ramp_us=ramp,
        ring_gb_per_s=ring,
        all_reduce_gb_per_s=all_reduce,
        all_to_all_gb_per_s=all_to_all,
        error=mean_error(log_time(x), measured),
        error_without_ramp=mean_error(log_plain(plain), measured),
    )


def main() -> None:
    """Print everything."""
    if len(sys.argv) != 2:
        sys.exit("usage: python scripts/distil_catalog.py TRUTH_FOLDER")
    folder = Path(sys.argv[1])
    gemm = list(rows(folder / "gemm.csv"))
    print("GEMM", *fit_gemm(gemm), sep="\n  ")
    print("Attention", *fit_attention(gemm), sep="\n  ")
    print("Collectives", *fit_collectives(rows(folder / "collectives.csv")), sep="\n  ")


if __name__ == "__main__":
    main()
