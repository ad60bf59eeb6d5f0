"""Clusters from the names that sources give to machines."""

from __future__ import annotations

import pytest

from meshwright.units import GIB, GIGA
from meshwright.validation.clusters import cluster_of, device_of, network_of
from meshwright.validation.inputs import Hardware
from meshwright.validation.skips import RowSkippedError


@pytest.mark.parametrize(
    ("text", "memory_gb", "name"),
    [
        ("A100-SXM4-80GB", 80.0, "A100-80GB"),
        ("A100-SXM4-40GB", 40.0, "A100-40GB"),
        ("A100-SXM-80GB CTS", 80.0, "A100-80GB"),
        ("A100 - PCIe - 80 GB", 80.0, "A100-PCIe"),
        ("A800-SXM-80GB", 80.0, "A800"),
        ("V100-SXM2-16GB (p3.16xlarge)", 16.0, "V100-16GB"),
        ("V100-16GB (p3.8xlarge) [see paper]", None, "V100-16GB"),
        ("V100-SXM2-32GB (inferred; not stated)", 32.0, "V100-32GB"),
        ("T4-16GB (g4dn.12xlarge)", 16.0, "T4"),
        ("H100 80GB HBM3", 80.0, "H100"),
        ("H100-PCIe-80GB", 80.0, "H100-PCIe"),
        ("H200-SXM5-141GB", 141.0, "H200"),
        ("Blackwell GPU (GB200)", None, "GB200"),
        ("Blackwell GPU (B200-SXM-180GB)", 180.0, "B200"),
        ("GB300", 288.0, "GB300"),
        ("Ascend 910B (Atlas 900 A2 PODc / 800T A2) 64GB", 64.0, "Ascend910B"),
        ("MI300X", None, "MI300X"),
    ],
)
def test_names_of_devices(text, memory_gb, name):
    assert device_of(Hardware(device_type=text, device_mem_gb=memory_gb)).name == name


def test_a_part_with_another_memory_keeps_it():
    stated = Hardware(device_type="H100-SXM-96GB-HBM2e-500W", device_mem_gb=96.0)
    device = device_of(stated)
    assert device.memory_bytes == 96 * GIB
    assert device.peak("bf16") == device_of(Hardware(device_type="H100")).peak("bf16")


def test_an_unknown_device_is_a_reason_to_skip():
    with pytest.raises(RowSkippedError) as caught:
        device_of(Hardware(device_type="Cray-1"))
    assert caught.value.key == "unknown_device"


@pytest.mark.parametrize(
    ("text", "per_node", "gigabytes", "shared_by"),
    [
        ("8x400Gb/s NDR IB per node", 8, 50.0, 1),
        ("4x200Gb/s HDR IB per node (800 Gb/s)", 8, 12.5, 2),
        ("4x100Gb/s RoCE per node", 8, 6.25, 2),
        ("RoCE 1600 Gb/s per node", 8, 25.0, 1),
        ("Omni-Path 4x100Gb/s per node (Jean Zay A100 partition)", 8, 6.25, 2),
        ("25 Gb/s Ethernet (p3.16xlarge)", 8, 0.390625, 8),
        ("50 Gb/s Ethernet (g4dn.12xlarge)", 4, 1.5625, 4),
        ("NVL72 rack; ConnectX-8 800Gb/s per GPU", 4, 100.0, 1),
        ("IB 400Gb/s per GPU", 8, 50.0, 1),
        ("4 (of 8) HDR 200Gb/s IB per node", 8, 12.5, 2),
        ("Storage: 2x ConnectX-7 IB NDR 400Gb/s, Compute: 8x ConnectX-7 IB NDR 400Gb/s", 8, 50, 1),
        ("4x ConnectX-7 IB NDR 400Gb/Sec", 4, 50.0, 1),
    ],
)
def test_networks(text, per_node, gigabytes, shared_by):
    rate, shared = network_of(text, devices_per_node=per_node)
    assert rate == pytest.approx(gigabytes * GIGA)
    assert shared == shared_by


@pytest.mark.parametrize("text", ["", "not stated", "Ethernet, Infiniband", "NVL72"])
def test_a_network_without_a_rate_is_the_usual_one(text):
    assert network_of(text, devices_per_node=8) is None


def test_nodes_and_their_network():
    hardware = Hardware(
        device_type="A100-SXM4-80GB",
        num_devices=64,
        devices_per_node=8,
        inter_node_network="4x200Gb/s HDR IB per node (800 Gb/s)",
    )
    (group,) = cluster_of(hardware).groups
    node, leaf = group.levels
    assert (group.num_nodes, node.size, leaf.size) == (8, 8, 64)
    assert node.bandwidth_bytes_per_s == 300 * GIGA
    assert leaf.bandwidth_bytes_per_s == 12.5 * GIGA
    assert leaf.shared_by == 2


def test_part_of_a_node_shares_the_ports_of_the_whole_node():
    hardware = Hardware(device_type="A100", num_devices=4, devices_per_node=8)
    (group,) = cluster_of(hardware).groups
    assert (group.num_nodes, group.count) == (1, 4)


def test_a_rack_joins_its_nodes():
    hardware = Hardware(device_type="GB200", num_devices=128, devices_per_node=4)
    (group,) = cluster_of(hardware).groups
    assert group.levels[0].size == 72


def test_pcie_takes_the_place_of_nvlink_where_the_source_says_so():
    hardware = Hardware(device_type="V100-SXM2-32GB", num_devices=8, intra_node_link="PCIe gen3")
    (group,) = cluster_of(hardware).groups
    assert group.levels[0].bandwidth_bytes_per_s == group.device.host_bandwidth_bytes_per_s


@pytest.mark.parametrize(("count", "per_node"), [(12, 8), (0, 8), (None, 8)])
def test_nodes_must_be_full(count, per_node):
    with pytest.raises(RowSkippedError):
        cluster_of(Hardware(device_type="A100", num_devices=count, devices_per_node=per_node))
