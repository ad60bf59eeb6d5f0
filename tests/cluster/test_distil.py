"""The script that distils the catalogue: it finds what tables were made with, and the
catalogue holds what it finds in the real tables."""

from __future__ import annotations

import importlib.util
import sys

import pytest

from meshwright.cluster import load_device


@pytest.fixture(scope="module")
def distil(repository):
    spec = importlib.util.spec_from_file_location(
        "distil_catalog", repository / "scripts" / "distil_catalog.py"
    )
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


def gemm_rows():
    """Shapes of a device that follows the curve: limit 0.8, halves 100, 200, 400."""
    sizes = (512, 1024, 4096, 16384)
    for m in sizes:
        for n in sizes:
            for k in sizes:
                efficiency = 0.8 * m / (m + 100) * n / (n + 200) * k / (k + 400)
                shape = {"m": str(m), "n": str(n), "k": str(k), "efficiency": str(efficiency)}
                yield {"device": "D", "op": "gemm", "dtype": "bf16", "peak_tflops": "100"} | shape


def test_a_known_curve_is_found(distil):
    (fit,) = distil.fit_gemm(gemm_rows())
    found = (fit.limit, fit.m_half, fit.n_half, fit.k_half)
    assert found == pytest.approx((0.8, 100, 200, 400), rel=1e-4)
    assert fit.shapes == 64
    assert fit.error < 1e-4


def collective_rows():
    """A device with launch 5, step 1, ramp 3 µs and 400, 450, 300 GB/s."""
    rates = {"all_gather": 400, "reduce_scatter": 400, "all_reduce": 450, "alltoall": 300}
    for op, rate in rates.items():
        for n in (2, 4, 8):
            for exponent in range(9, 30):
                passes = 2 if op == "all_reduce" else 1
                steps = 1 if op == "alltoall" else passes * (n - 1)
                seconds = passes * 2**exponent * (n - 1) / n / rate / 1e3
                time = 5 + steps + seconds + 2 * (3 * seconds) ** 0.5
                yield {
                    "source": "NVIDIA aiconfigurator",
                    "device": "D",
                    "library": "L",
                    "op": op,
                    "num_devices": str(n),
                    "message_bytes_per_rank": str(2**exponent),
                    "time_us": str(time),
                }


def test_known_link_coefficients_are_found(distil):
    (fit,) = distil.fit_collectives(collective_rows())
    # The smallest messages still carry a little transfer time, which goes into the launch.
    assert fit.latency_us == pytest.approx(1, abs=0.05)
    assert fit.launch_us == pytest.approx(5, abs=0.3)
    assert fit.ramp_us == pytest.approx(3, rel=0.15)
    rates = (fit.ring_gb_per_s, fit.all_reduce_gb_per_s, fit.all_to_all_gb_per_s)
    assert rates == pytest.approx((400, 450, 300), rel=0.03)
    assert fit.error < 0.01 < fit.error_without_ramp


def test_attention_counts_the_half_that_a_causal_mask_leaves(distil):
    table = [
        {"device": "D", "op": "flash_attention_fwd", "layout_or_stage": shape, "efficiency": share}
        for shape, share in (
            ("seq=1;heads=64;kv=8", "1.0"),
            ("seq=1;heads=32;kv=8", "0.8"),
            ("seq=1;heads=128;kv=8", "1.2"),
            ("seq=1;heads=4;kv=1", "0.1"),
        )
    ]
    (fit,) = distil.fit_attention(table)
    assert (fit.share, fit.shapes) == (pytest.approx(0.5), 3)


GEMM = {
    "NVIDIA A100-SXM4-80GB": ("A100-80GB", "bf16"),
    "A100-PCIe-80GB": ("A100-PCIe", "bf16"),
    "NVIDIA H100 80GB HBM3": ("H100", "bf16"),
    "B200-SXM": ("B200", "bf16"),
    "NVIDIA L40S": ("L40S", "bf16"),
}
COLLECTIVES = {
    "NVIDIA A100-SXM4-80GB NCCL 2.27.3": "A100-80GB",
    "NVIDIA H100 80GB HBM3 NCCL 2.29.2": "H100",
    "NVIDIA H200 NCCL 2.29.2": "H200",
    "NVIDIA B200 NCCL 2.29.2": "B200",
    "NVIDIA B300 SXM6 AC NCCL 2.29.2": "B300",
    "NVIDIA GB200 NCCL 2.29.2": "GB200",
    "NVIDIA GB300 NCCL 2.29.2": "GB300",
    "NVIDIA L40S NCCL 2.27.3": "L40S",
}


def test_the_catalogue_holds_the_gemm_fits(distil, shared):
    table = gemm_rows() if shared is None else distil.rows(shared / "truth" / "gemm.csv")
    fits = {(fit.device, fit.dtype): fit for fit in distil.fit_gemm(table)}
    assert fits
    for device, (name, dtype) in GEMM.items():
        fit = fits.get((device, dtype))
        if fit is not None:
            curve = load_device(name).gemm[dtype]
            assert curve.limit == pytest.approx(fit.limit, abs=1e-3)
            halves = (curve.m_half, curve.n_half, curve.k_half)
            assert halves == pytest.approx((fit.m_half, fit.n_half, fit.k_half), abs=0.51)
    assert shared is None or {device for device, _ in fits} >= set(GEMM)


def test_the_catalogue_holds_the_link_fits(distil, shared):
    truth = None if shared is None else shared / "truth" / "collectives.csv"
    fits = distil.fit_collectives(collective_rows() if truth is None else distil.rows(truth))
    by_name = {f"{fit.device} {fit.library}": fit for fit in fits}
    assert by_name
    for label, name in COLLECTIVES.items():
        fit, device = by_name.get(label), load_device(name)
        if fit is not None:
            rate = device.link_bandwidth_bytes_per_s / 1e9
            assert device.collective_launch_s * 1e6 == pytest.approx(fit.launch_us, abs=0.01)
            assert device.link_latency_s * 1e6 == pytest.approx(fit.latency_us, abs=0.01)
            assert device.link_ramp_s * 1e6 == pytest.approx(fit.ramp_us, abs=0.01)
            for share, found in (
                (device.link_efficiency, fit.ring_gb_per_s),
                (device.link_all_reduce_efficiency, fit.all_reduce_gb_per_s),
                (device.link_all_to_all_efficiency, fit.all_to_all_gb_per_s),
            ):
                assert share == pytest.approx(found / rate, abs=1.5e-3)
    assert truth is None or set(by_name) >= set(COLLECTIVES)
