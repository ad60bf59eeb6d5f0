"""The cluster of a row, from the names that its source gives."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache

from meshwright.cluster import Cluster, Device, DeviceGroup, Level, load_device
from meshwright.cluster.defaults import default_levels
from meshwright.errors import ClusterError
from meshwright.provenance import Provenance, Source
from meshwright.units import GIB, GIGA
from meshwright.validation.inputs import Hardware
from meshwright.validation.skips import RowSkippedError

#: Parts of a device's name to the catalogue's, most special first. ``{gb}`` is the memory.
_DEVICES = (
    (r"gb300", "GB300"),
    (r"gb200", "GB200"),
    (r"b300", "B300"),
    (r"b200", "B200"),
    (r"h100.*pcie", "H100-PCIe"),
    (r"h100", "H100"),
    (r"h200", "H200"),
    (r"h800", "H800"),
    (r"h20", "H20"),
    (r"a100.*pcie", "A100-PCIe"),
    (r"a100", "A100-{gb}GB"),
    (r"a800", "A800"),
    (r"v100", "V100-{gb}GB"),
    (r"t4", "T4"),
    (r"l40s", "L40S"),
    (r"910c", "Ascend910C"),
    (r"910b3", "Ascend910B3"),
    (r"910b", "Ascend910B"),
    (r"910", "Ascend910A"),
)
_SIZED = {"A100": (40, 80), "V100": (16, 32)}
_DEFAULT_GB = {"A100": 80, "V100": 32}

#: Beyond this a stated memory is another part, not another way of counting.
_MEMORY_TOLERANCE = 0.12

_RATE = re.compile(r"(\d+(?:\.\d+)?)\s*(?:Gb\s*/\s*s|Gb\s*/\s*sec|Gbps|Gbit/s)", re.IGNORECASE)


@cache
def cluster_of(hardware: Hardware) -> Cluster:
    """The cluster that the hardware columns describe.

    Levels are those of the usual machine of the device; where the network column states a
    rate, that rate takes the place of the usual one.

    Raises:
        RowSkippedError: the device is unknown, or the nodes are not full.
    """
    count = hardware.num_devices or 0
    if count < 1:
        raise RowSkippedError("degrees_disagree", "the number of devices is not stated")
    device = device_of(hardware)
    stated = hardware.devices_per_node or device.devices_per_node
    per_node = min(stated, count)
    if count % per_node:
        raise RowSkippedError("uneven_nodes", f"{count} devices in nodes of {per_node}")
    nodes = count // per_node
    try:
        return _cluster(device, hardware, num_nodes=nodes, devices_per_node=per_node)
    except ClusterError as error:
        raise RowSkippedError("uneven_nodes", error.what) from None


def _cluster(
    device: Device, hardware: Hardware, *, num_nodes: int, devices_per_node: int
) -> Cluster:
    """Full nodes under the levels of the usual machine, at the stated rate."""
    levels = default_levels(
        _linked(device, hardware), num_nodes=num_nodes, devices_per_node=devices_per_node
    )
    network = network_of(
        hardware.inter_node_network,
        devices_per_node=hardware.devices_per_node or device.devices_per_node,
    )
    if network is not None:
        levels = (levels[0], *(_at_rate(level, *network) for level in levels[1:]))
    group = DeviceGroup(
        name=device.name,
        device=device,
        count=num_nodes * devices_per_node,
        num_nodes=num_nodes,
        levels=levels,
    )
    return Cluster(name=f"{num_nodes}x{devices_per_node}x{device.name}", groups=(group,))


@cache
def device_of(hardware: Hardware) -> Device:
    """The device type, with the stated memory where that differs from the catalogue's.

    Raises:
        RowSkippedError: the catalogue has no such device, or its memory is no memory.
    """
    device = _catalogue_device(hardware)
    stated_gb = hardware.device_mem_gb
    if stated_gb and abs(stated_gb * GIB / device.memory_bytes - 1.0) > _MEMORY_TOLERANCE:
        name = f"{device.name} with {stated_gb:g} GB"
        try:
            return replace(device, name=name, memory_bytes=round(stated_gb * GIB))
        except ClusterError as error:
            raise RowSkippedError("unknown_device", error.what) from None
    return device


def _catalogue_device(hardware: Hardware) -> Device:
    text = hardware.device_type.casefold()
    plain = re.sub(r"\(.*?\)|\[.*?\]", " ", text)
    for spelled in (plain, text):
        compact = re.sub(r"[\s_-]+", "", spelled)
        for pattern, name in _DEVICES:
            if re.search(pattern, compact):
                return load_device(_sized(name, hardware))
    try:
        return load_device(plain.strip())
    except ClusterError:
        raise RowSkippedError("unknown_device", f"no device {hardware.device_type!r}") from None


def _sized(name: str, hardware: Hardware) -> str:
    """Choose between the sizes in which a device is built."""
    family = name.partition("-")[0]
    if "{gb}" not in name:
        return name
    written = re.search(r"(?<!\d)(\d+)\s*gb", hardware.device_type, re.IGNORECASE)
    stated = hardware.device_mem_gb or (float(written[1]) if written else _DEFAULT_GB[family])
    return name.format(gb=min(_SIZED[family], key=lambda size: abs(size - stated)))


def _linked(device: Device, hardware: Hardware) -> Device:
    """The device behind the stated scale-up link: PCIe where the source says so."""
    text = hardware.intra_node_link.casefold()
    if "pcie" not in text or "nvlink" in text or not device.link.startswith("NVLink"):
        return device
    return replace(device, link_bandwidth_bytes_per_s=device.host_bandwidth_bytes_per_s)


def network_of(text: str, *, devices_per_node: int) -> tuple[float, int] | None:
    """Bytes per second and device, and devices that share a port, from a network's description.

    ``None`` when no rate is stated. Rates are decimal bits in one direction.

    >>> network_of("8x400Gb/s NDR IB per node", devices_per_node=8)
    (50000000000.0, 1)
    >>> network_of("25 Gb/s Ethernet (p3.16xlarge)", devices_per_node=8)
    (390625000.0, 8)
    """
    segment = _segment(text)
    rate = _RATE.search(segment)
    if rate is None:
        return None
    bits = float(rate[1]) * GIGA
    if "per gpu" in segment.casefold():
        return bits / 8, 1
    ports = _port_count(segment, rate)
    per_device = bits * max(ports, 1) / 8 / devices_per_node
    lone = ports == 0 and "per node" in segment.casefold()
    return per_device, 1 if lone else max(1, devices_per_node // max(ports, 1))


def _segment(text: str) -> str:
    """The part of a description that is about training traffic."""
    parts = [part for part in re.split(r"[;,]", text) if _RATE.search(part)]
    named = [part for part in parts if "compute" in part.casefold() or "per gpu" in part.casefold()]
    other = [part for part in parts if not re.search("management|storage", part, re.IGNORECASE)]
    return next(iter(named or other), "")


def _port_count(segment: str, rate: re.Match[str]) -> int:
    """Ports of a node; 0 when no number stands before the rate."""
    before = re.search(r"(\d+)\s*(?:\(of\s*\d+\)|x|×)", segment[: rate.end()], re.IGNORECASE)
    return int(before[1]) if before else 0


def _at_rate(level: Level, bandwidth_bytes_per_s: float, shared_by: int) -> Level:
    return replace(
        level,
        bandwidth_bytes_per_s=bandwidth_bytes_per_s,
        shared_by=shared_by,
        source=Source(kind=Provenance.DATASHEET, text="the network that the row's source names"),
    )
