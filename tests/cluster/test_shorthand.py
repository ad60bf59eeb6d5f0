"""The shorthand: grammar, packing, default levels, and bad input at its edges."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from meshwright.cluster import device_names, load_cluster
from meshwright.errors import ClusterError, FileError, UnknownDeviceError
from meshwright.provenance import Provenance


def levels_of(text: str) -> list[tuple[str, int]]:
    (group,) = load_cluster(text).groups
    return [(level.name, level.size) for level in group.levels]


@pytest.mark.parametrize(
    ("text", "devices", "nodes", "device"),
    [
        ("4x8xH100", 32, 4, "H100"),
        ("256xH100", 256, 32, "H100"),
        ("3xH100", 3, 1, "H100"),
        ("1x1xT4", 1, 1, "T4"),
        ("2048x8xH800", 16384, 2048, "H800"),
        ("128X8Xa100_80gb", 1024, 128, "A100-80GB"),
        (" 4 x 8 x a100-sxm4-80gb ", 32, 4, "A100-80GB"),
        ("4×8×MI300X", 32, 4, "MI300X"),
        ("16xMI300X", 16, 2, "MI300X"),
        ("4x8x910B", 32, 4, "Ascend910B"),
        ("8x4090", 8, 1, "RTX4090"),
        ("2x8xRTX 4090", 16, 2, "RTX4090"),
        ("004x8xH100", 32, 4, "H100"),
        ("4x4xH100", 16, 4, "H100"),
        ("1x16xascend-910c", 16, 1, "Ascend910C"),
    ],
)
def test_one_group_is_read(text, devices, nodes, device):
    cluster = load_cluster(text)
    (group,) = cluster.groups
    assert (cluster.num_devices, group.num_nodes, group.device.name) == (devices, nodes, device)
    assert cluster.is_uniform
    assert cluster.boundary is None
    assert group.devices_per_node * nodes == devices


@pytest.mark.parametrize(
    ("text", "levels"),
    [
        ("1x8xH100", [("node", 8)]),
        ("2x8xH100", [("node", 8), ("leaf", 16)]),
        ("32x8xH100", [("node", 8), ("leaf", 256)]),
        ("33x8xH100", [("node", 8), ("leaf", 256), ("spine", 512)]),
        ("2048x8xH100", [("node", 8), ("leaf", 256), ("spine", 16384)]),
        ("2x4xH100", [("node", 4), ("leaf", 8)]),
        ("18x4xGB200", [("nvl72", 72)]),
        ("1x72xGB200", [("nvl72", 72)]),
        ("2x4xGB200", [("nvl72", 8)]),
        ("4x72xGB200", [("nvl72", 72), ("leaf", 288)]),
        ("72x4xGB300", [("nvl72", 72), ("leaf", 288)]),
        ("1024x4xTPU-v4", [("pod", 4096)]),
    ],
)
def test_default_levels_by_hand(text, levels):
    assert levels_of(text) == levels


def test_rates_of_the_default_levels_are_those_of_the_device():
    (group,) = load_cluster("64x8xH100").groups
    node, leaf, spine = group.levels
    assert node.bandwidth_bytes_per_s == pytest.approx(450e9)
    assert node.effective_bandwidth_bytes_per_s == pytest.approx(450e9 * 0.936)
    assert leaf.bandwidth_bytes_per_s == spine.bandwidth_bytes_per_s == pytest.approx(50e9)
    assert leaf.oversubscription == spine.oversubscription == 1.0
    assert node.latency_s < leaf.latency_s < spine.latency_s


def test_levels_are_found_by_extent():
    (group,) = load_cluster("64x8xH100").groups
    found = [group.level_spanning(extent).name for extent in (1, 8, 9, 256, 257, 512)]
    assert found == ["node", "node", "leaf", "leaf", "spine", "spine"]


def test_mixed_vendors_are_joined_by_a_staged_boundary():
    cluster = load_cluster("16x8xH100+16x8xAscend910B")
    assert [group.name for group in cluster.groups] == ["H100", "Ascend910B"]
    assert not cluster.is_uniform
    assert cluster.num_devices == 256
    boundary = cluster.boundary
    assert boundary is not None
    assert boundary.bandwidth_bytes_per_s == pytest.approx(25e9)  # the slower of 50 and 25
    assert boundary.efficiency == 0.5
    assert boundary.latency_s == pytest.approx(30e-6)
    assert boundary.source.kind is Provenance.ANALYTIC
    assert any("differ" in sentence for sentence in cluster.assumptions)


def test_one_vendor_needs_no_staging():
    boundary = load_cluster("2x8xH100+2x8xA100").boundary
    assert boundary is not None
    assert boundary.bandwidth_bytes_per_s == pytest.approx(25e9)
    assert boundary.efficiency == pytest.approx(0.88)


def test_equal_groups_get_names_of_their_own():
    cluster = load_cluster("2x8xH100+4x8xH100")
    assert [group.name for group in cluster.groups] == ["H100-1", "H100-2"]
    assert len(cluster.devices) == 1


def test_every_made_up_network_is_an_assumption():
    (sentence,) = load_cluster("4x8xH100").assumptions
    assert "50 GB/s" in sentence
    assert "non-blocking" in sentence


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("", "device group"),
        ("H100", "device group"),
        ("x8xH100", "device group"),
        ("4x8x", "device group"),
        ("-4x8xH100", "device group"),
        ("4.5x8xH100", "device group"),
        ("nanx8xH100", "device group"),
        ("1e3x8xH100", "device group"),
        ("2x4x8xH100+", "device group"),
        ("4x8xH100++4x8xH100", "device group"),
        ("٤x8xH100", "device group"),
        ("0x8xH100", "0 nodes or devices"),
        ("4x0xH100", "0 nodes or devices"),
        ("0xH100", "0 nodes or devices"),
        ("12xH100", "do not fill"),
        ("4x9xH100", "joins at most 8"),
        ("1x73xGB200", "joins at most 72"),
        ("10000001xH100", "too many"),
        ("10000000x8xH100", "too many"),
        ("5000000x1xH100+5000001x1xH100", "10,000,000"),
        ("9" * 1000 + "x8xH100", "too many"),
    ],
)
def test_bad_shorthand_is_explained(text, part):
    with pytest.raises(ClusterError) as caught:
        load_cluster(text)
    message = str(caught.value)
    assert part in message
    assert caught.value.where
    assert caught.value.allowed
    assert len(message) < 800


def test_the_allowed_counts_that_a_message_names_are_allowed():
    with pytest.raises(ClusterError) as caught:
        load_cluster("12xH100")
    assert "8 or 16" in caught.value.allowed
    assert load_cluster("8xH100").num_devices == 8
    assert load_cluster("16xH100").num_devices == 16


def test_unknown_devices_get_near_names():
    with pytest.raises(UnknownDeviceError) as caught:
        load_cluster("4x8xH1000")
    assert "H100" in caught.value.fix
    assert caught.value.allowed == ", ".join(device_names())


@pytest.mark.parametrize("text", ["9" * 10_000_000 + "xH100", "x" * 1_000_000, "1x" * 500 + "H100"])
def test_absurd_lengths_do_not_hang(text):
    start = time.perf_counter()
    with pytest.raises(ClusterError):
        load_cluster(text)
    assert time.perf_counter() - start < 5  # a guard against hanging, not a measurement


@given(st.text(max_size=40))
def test_any_text_is_read_or_refused_cleanly(text):
    try:
        cluster = load_cluster(text)
    except (ClusterError, FileError):
        return
    assert cluster.num_devices >= 1


@given(
    st.integers(0, 2000),
    st.integers(0, 100),
    st.sampled_from((*device_names(), "H10", "")),
    st.sampled_from(["x", "X", "*", " x "]),
)
def test_near_shorthand_is_read_or_refused_cleanly(nodes, per_node, name, times):
    text = f"{nodes}{times}{per_node}{times}{name}"
    try:
        cluster = load_cluster(text)
    except ClusterError as error:
        where = error.where
    else:
        where = None
    if where is not None:
        assert where
        return
    assert cluster.num_devices == nodes * per_node
    (group,) = cluster.groups
    assert group.levels[-1].size >= group.count
