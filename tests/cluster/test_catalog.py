"""The catalogue: complete, sourced, within what is physically sane."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import numpy as np
import pytest

from meshwright.cluster import Device, device_names, device_rows, load_device
from meshwright.cluster.catalog import device_aliases
from meshwright.cluster.catalog import loader as catalog_loader
from meshwright.errors import ClusterError, UnknownDeviceError
from meshwright.provenance import Provenance

FOLDER = Path(catalog_loader.__file__).parent
PROMISED = frozenset(
    {
        "V100-16GB",
        "V100-32GB",
        "A100-40GB",
        "A100-80GB",
        "A100-PCIe",
        "A800",
        "H100",
        "H100-PCIe",
        "H200",
        "H800",
        "H20",
        "B200",
        "GB200",
        "B300",
        "GB300",
        "L40S",
        "A10",
        "T4",
        "L4",
        "RTX4090",
        "MI250X",
        "MI300X",
        "MI325X",
        "MI355X",
        "Ascend910A",
        "Ascend910B",
        "Ascend910C",
        "TPU-v4",
        "TPU-v5p",
        "CPU",
    }
)


@pytest.fixture(params=device_names())
def device(request) -> Device:
    return load_device(request.param)


def test_every_promised_device_is_there():
    assert set(device_names()) >= PROMISED


def test_the_index_names_what_the_files_hold():
    index = tomllib.loads((FOLDER / "index.toml").read_text(encoding="utf-8"))
    files = {path.stem for path in FOLDER.glob("*.toml")} - {"index"}
    assert set(index) == files
    for stem in files:
        held = tomllib.loads((FOLDER / f"{stem}.toml").read_text(encoding="utf-8"))
        assert set(held) == set(index[stem])


def test_no_name_means_two_devices():
    words = [word for name in device_names() for word in (name, *device_aliases(name))]
    folded = [catalog_loader.folded(word) for word in words]
    assert len(folded) == len(set(folded))


def test_aliases_reach_their_device():
    for name in device_names():
        for alias in device_aliases(name):
            assert load_device(alias.upper()).name == name


def test_every_number_has_a_source(device):
    texts = {"name", "vendor", "family", "link", "link_domain_name", "sources"}
    numeric = set(Device.__dataclass_fields__) - texts
    assert set(device.sources) == numeric
    for source in device.sources.values():
        assert source.kind in list(Provenance)
        assert len(source.text) > 10
        assert "TODO" not in source.text


def test_inherited_numbers_say_from_whom():
    source = load_device("A800").sources["memory_bytes"]
    assert source.kind is Provenance.ANALYTIC
    assert source.text.startswith("as A100-80GB")
    own = load_device("A800").sources["link_bandwidth_bytes_per_s"]
    assert own.kind is Provenance.DATASHEET


def test_rates_are_sane(device):
    assert 8 * 2**30 <= device.memory_bytes <= 2**40
    assert 1e12 <= device.peak("bf16") <= 1e16
    assert 1e11 <= device.memory_bandwidth_bytes_per_s <= 2e13
    assert 1e9 <= device.nic_bandwidth_bytes_per_s <= 2e11
    assert device.nic_bandwidth_bytes_per_s <= device.link_bandwidth_bytes_per_s
    assert device.framework_bytes < device.memory_bytes / 4
    assert 1e-7 <= device.link_latency_s <= device.nic_latency_s <= 1e-4
    assert device.attention_backward_efficiency <= device.attention_efficiency


def test_narrower_formats_are_never_slower(device):
    peaks = device.peak_flops
    order = [p for p in ("fp32", "tf32", "bf16", "fp8", "fp4") if p in peaks]
    assert [peaks[p] for p in order] == sorted(peaks[p] for p in order)
    if "bf16" in peaks and "fp16" in peaks:
        assert peaks["bf16"] == peaks["fp16"]


def test_big_products_run_below_the_peak_and_above_a_third(device):
    efficiency = device.gemm_curve("bf16").efficiency(8192.0, 8192.0, 8192.0)
    assert 1 / 3 < efficiency < 0.95


@pytest.mark.parametrize(
    ("name", "precision", "tflops", "computed_in"),
    [
        ("H100", "bf16", 989.4, "bf16"),
        ("H100", "fp32", 494.7, "tf32"),
        ("H100", "fp4", 1978.9, "fp8"),
        ("A100-80GB", "bf16", 312, "bf16"),
        ("A100-80GB", "fp8", 312, "bf16"),
        ("A100-80GB", "fp32", 156, "tf32"),
        ("V100-32GB", "bf16", 125, "fp16"),
        ("V100-32GB", "fp32", 15.7, "fp32"),
        ("B200", "fp4", 9000, "fp4"),
        ("L40S", "bf16", 362, "bf16"),
        ("MI250X", "bf16", 191.5, "bf16"),
        ("TPU-v5p", "fp16", 459, "bf16"),
        ("H20", "bf16", 148, "bf16"),
    ],
)
def test_printed_peaks(name, precision, tflops, computed_in):
    device = load_device(name)
    assert device.peak(precision) == pytest.approx(tflops * 1e12)
    assert device.effective_precision(precision) == computed_in


def test_an_unknown_precision_is_refused():
    with pytest.raises(ClusterError, match="fp7"):
        load_device("H100").peak("fp7")


def test_the_gemm_curve_by_hand():
    curve = load_device("H100").gemm_curve("bf16")
    # limit 0.834, halves 129, 51, 162
    expected = 0.834 * 4096 / 4225 * 8192 / 8243 * 1024 / 1186
    assert curve.efficiency(4096.0, 8192.0, 1024.0) == pytest.approx(expected)
    both = curve.efficiency(np.array([4096.0, 129.0]), np.array([8192.0]), np.array([1024.0]))
    assert both[0] == pytest.approx(expected)
    assert both[1] == pytest.approx(expected * 4225 / 4096 / 2)


def test_the_gemm_curve_of_a_missing_precision_is_that_of_what_runs():
    device = load_device("A100-80GB")
    assert device.gemm_curve("fp8") == device.gemm_curve("bf16") == device.gemm["bf16"]
    h100 = load_device("H100")
    assert h100.gemm_curve("fp8") == h100.gemm["fp8"] != h100.gemm["bf16"]


@pytest.mark.parametrize(
    ("name", "mib"),
    [("H100", 81559), ("H200", 143771), ("B200", 183359), ("GB300", 284208), ("L40S", 46068)],
)
def test_memory_is_what_the_driver_prints(name, mib):
    assert load_device(name).memory_bytes / 2**20 == pytest.approx(mib, abs=1)


def test_devices_can_be_hashed_and_compared():
    assert load_device("H100") is load_device("h100-sxm")
    assert hash(load_device("H100")) != hash(load_device("H200"))


def test_only_the_files_needed_are_read():
    catalog_loader._read.cache_clear()
    catalog_loader._build.cache_clear()
    catalog_loader._index.cache_clear()
    load_device("TPU-v4")
    assert catalog_loader._read.cache_info().currsize == 3  # index, google, the base's file


def test_an_unknown_device_does_not_echo_a_whole_file():
    with pytest.raises(UnknownDeviceError) as caught:
        load_device("q" * 100_000)
    assert len(str(caught.value)) < 800


def test_rows_for_inspection_cover_every_number(device):
    rows = device_rows(device)
    expected = len(device.sources) - 2 + len(device.peak_flops) + len(device.gemm)
    assert len(rows) == expected
    units = {row.name: row.unit for row in rows}
    assert units["memory"] == "B"
    assert units["memory bandwidth"] == "B/s"
    assert units["link latency"] == "s"
    assert units["link domain"] == "devices"


def test_the_files_hold_no_leftovers():
    for path in FOLDER.glob("*.toml"):
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"TODO|FIXME|https?://", text)
