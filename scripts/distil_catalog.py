"""Print the catalogue coefficients that measured tables give, device by device.

Usage: ``python scripts/distil_catalog.py TRUTH_FOLDER``, where the folder holds ``gemm.csv`` and
``collectives.csv``. The figures go into ``src/meshwright/cluster/catalog/*.toml`` by hand, with
kind "fitted". Fits minimise the relative error (squares of logarithms).
"""

from __future__ import annotations

import csv
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
SMALL_BYTES = 4096
MIN_HEADS = 32  # fewer leave a large device idle: a property of the shape, not of the device
# Its groups of 4 and 8 ran at 1 to 5 GB/s: a PCIe path that was set up wrongly.
TRUSTED_DEVICES = {"NVIDIA L40S": 2.0}
Row = tuple[str, float, float, float]


def rows(path: Path) -> Iterable[dict[str, str]]:
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


def mean_error(predicted: Array, measured: Array) -> float:
    """Mean absolute relative error."""
    return float(np.mean(np.abs(predicted / measured - 1.0)))


def distil_gemm(path: Path) -> None:
    """Limit and half sizes per device and precision."""
    shapes: dict[tuple[str, str, str], list[list[float]]] = defaultdict(list)
    for row in rows(path):
        if row["op"] == "gemm" and row["m"] and row["efficiency"]:
            key = (row["device"], row["dtype"], row["peak_tflops"])
            shapes[key].append([float(row[c]) for c in ("m", "n", "k", "efficiency")])
    print("GEMM: limit m/(m + m_half) n/(n + n_half) k/(k + k_half)")
    for (device, dtype, peak), table in sorted(shapes.items()):
        m, n, k, efficiency = np.array(table).T
        sizes = np.stack([m, n, k])

        def log_efficiency(x: Array, sizes: Array = sizes) -> Array:
            halves = np.exp(x[1:, None])
            return x[0] - np.log1p(halves / sizes).sum(axis=0)

        bounds = (np.array([-5.0, 0, 0, 0]), np.array([0.0, 9, 9, 9]))
        start = np.log(np.array([0.75, 100.0, 300.0, 300.0]))
        x = least_squares(log_efficiency, np.log(efficiency), start, *bounds)
        limit, m_half, n_half, k_half = np.exp(x)
        error = mean_error(np.exp(log_efficiency(x)), efficiency)
        print(
            f"  {device:24} {dtype:5} of {peak:>6} TFLOP/s: limit = {limit:.3f}, "
            f"m_half = {m_half:.0f}, n_half = {n_half:.0f}, k_half = {k_half:.0f}"
            f"   ({len(table)} shapes, error {error:.1%})"
        )


def distil_attention(path: Path) -> None:
    """Median share of the peak of fused attention, of the FLOPs that a causal mask leaves."""
    shares: dict[tuple[str, str], list[float]] = defaultdict(list)
    for row in rows(path):
        if row["op"].startswith("flash_attention"):
            heads = int(row["layout_or_stage"].split("heads=")[1].split(";")[0])
            if heads >= MIN_HEADS:
                shares[row["device"], row["op"]].append(float(row["efficiency"]) / 2.0)
    print(f"Attention, causal, {MIN_HEADS} heads or more: median share of the peak")
    for (device, op), values in sorted(shares.items()):
        print(f"  {device:24} {op:20} {np.median(values):.2f}   ({len(values)} shapes)")


def distil_collectives(path: Path) -> None:
    """Launch, latency per step, ramp and bandwidth per device and library."""
    tables: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in rows(path):
        if row["source"].startswith("NVIDIA aiconfigurator"):
            values = (row["num_devices"], row["message_bytes_per_rank"], row["time_us"])
            n, size, time = (float(value) for value in values)
            tables[row["device"], row["library"]].append((row["op"], n, size, time))
    print("Collectives: T = launch + steps latency + w/B + 2 sqrt(ramp w/B); µs and GB/s")
    for (device, library), table in sorted(tables.items()):
        print(f"  {device} {library}")
        most = TRUSTED_DEVICES.get(device, max(n for _, n, *_ in table))
        _distil_library(table, most=most)


def _distil_library(table: list[Row], *, most: float) -> None:
    ops = np.array([op for op, *_ in table])
    n, size, time = np.array([values for _, *values in table]).T
    passes = np.where(ops == "all_reduce", 2.0, 1.0)
    # An all-to-all starts all its messages at once: one step whatever the number of devices.
    steps = np.where(ops == "alltoall", 1.0, passes * (n - 1))
    small = (ops != "alltoall") & (size <= SMALL_BYTES)
    latency, launch = np.polyfit(steps[small], time[small], 1)

    chosen = (n == most) & (size > SMALL_BYTES)
    kind = np.select([ops == "all_reduce", ops == "alltoall"], [1, 2], 0)[chosen]
    wire_kb = (passes * size * (n - 1) / n)[chosen] / 1e3
    fixed, measured = (launch + steps * latency)[chosen], time[chosen]

    def log_time(x: Array) -> Array:
        wire_us = wire_kb / np.exp(x[kind])
        return np.log(fixed + wire_us + 2 * np.sqrt(np.exp(x[3]) * wire_us))

    def log_plain(x: Array) -> Array:
        return np.log(fixed + wire_kb / np.exp(x[kind]))

    start = np.log(np.array([300.0, 300.0, 300.0, 3.0]))
    bounds = (np.log(np.full(4, 0.1)), np.log(np.full(4, 1e4)))
    x = least_squares(log_time, np.log(measured), start, *bounds)
    plain = least_squares(log_plain, np.log(measured), start[:3], bounds[0][:3], bounds[1][:3])
    ring, all_reduce, all_to_all, ramp = np.exp(x)
    print(
        f"    launch = {launch:.2f}, latency = {latency:.2f}, ramp = {ramp:.2f}; B of {most:.0f}: "
        f"ring = {ring:.1f}, all-reduce = {all_reduce:.1f}, all-to-all = {all_to_all:.1f}   "
        f"(error {mean_error(np.exp(log_time(x)), measured):.1%}; "
        f"best without ramp {mean_error(np.exp(log_plain(plain)), measured):.1%})"
    )


def main() -> None:
    """Print everything."""
    if len(sys.argv) != 2:
        sys.exit("usage: python scripts/distil_catalog.py TRUTH_FOLDER")
    folder = Path(sys.argv[1])
    distil_gemm(folder / "gemm.csv")
    distil_attention(folder / "gemm.csv")
    distil_collectives(folder / "collectives.csv")


if __name__ == "__main__":
    main()
