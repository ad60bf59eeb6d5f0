"""The network that is assumed when the user names only nodes and devices.

Inside a scale-up domain the device's own link; above it one rail-optimised, non-blocking
Clos network: a leaf tier that joins 32 scale-up domains (a 64-port switch has 32 ports down),
then a spine. The rate is that of the usual machine with that device.
"""

from __future__ import annotations

from collections import Counter

from meshwright.cluster.device import Device
from meshwright.cluster.group import DeviceGroup
from meshwright.cluster.level import Level
from meshwright.provenance import Provenance, Source
from meshwright.units import GIGA, MICROSECOND

LEAF_DOMAINS = 32
# Leaf to spine to leaf: two more switches and their cables, about 0.3 µs each.
SPINE_EXTRA_S = 0.6 * MICROSECOND
# Different vendors share no collective library: messages pass through host memory.
STAGED_LATENCY_S = 30 * MICROSECOND
STAGED_EFFICIENCY = 0.5


def scale_up_level(device: Device, *, num_nodes: int, devices_per_node: int) -> Level:
    """The innermost level: a node, or a rack whose scale-up link joins several nodes."""
    nodes = 1
    if device.link_domain > device.devices_per_node:
        nodes = max(1, min(num_nodes, device.link_domain // devices_per_node))
    return Level(
        name=device.link_domain_name,
        size=devices_per_node * nodes,
        bandwidth_bytes_per_s=device.link_bandwidth_bytes_per_s,
        latency_s=device.link_latency_s,
        ramp_s=device.link_ramp_s,
        efficiency=device.link_efficiency,
        all_reduce_efficiency=device.link_all_reduce_efficiency,
        all_to_all_efficiency=device.link_all_to_all_efficiency,
        source=device.sources["link_bandwidth_bytes_per_s"],
    )


def default_levels(device: Device, *, num_nodes: int, devices_per_node: int) -> tuple[Level, ...]:
    """Scale-up domain, then leaf and spine as far as the count needs them."""
    count = num_nodes * devices_per_node
    inner = scale_up_level(device, num_nodes=num_nodes, devices_per_node=devices_per_node)
    levels = [inner]
    domains = -(-count // inner.size)
    if domains > 1:
        leaf_size = inner.size * min(domains, LEAF_DOMAINS)
        levels.append(network_level("leaf", device, size=leaf_size, extra_s=0.0))
        if leaf_size < count:
            spine_size = leaf_size * -(-count // leaf_size)
            levels.append(network_level("spine", device, size=spine_size, extra_s=SPINE_EXTRA_S))
    return tuple(levels)


def network_level(name: str, device: Device, *, size: int, extra_s: float) -> Level:
    """A tier of the usual scale-out network of a device."""
    return Level(
        name=name,
        size=size,
        bandwidth_bytes_per_s=device.nic_bandwidth_bytes_per_s,
        latency_s=device.nic_latency_s + extra_s,
        ramp_s=device.nic_ramp_s,
        efficiency=device.nic_efficiency,
        shared_by=device.devices_per_nic,
        source=device.sources["nic_bandwidth_bytes_per_s"],
    )


def default_boundary(groups: tuple[DeviceGroup, ...]) -> Level | None:
    """What joins the groups when nothing is said; ``None`` for one group."""
    if len(groups) == 1:
        return None
    devices = [group.device for group in groups]
    staged = len({device.vendor for device in devices}) > 1
    efficiency = min(device.nic_efficiency for device in devices)
    latency_s = max(device.nic_latency_s for device in devices) + SPINE_EXTRA_S
    text = "the slower network of the groups" + (
        ", staged through host memory as the vendors differ" if staged else ""
    )
    return Level(
        name="boundary",
        size=sum(group.count for group in groups),
        bandwidth_bytes_per_s=min(device.nic_bandwidth_bytes_per_s for device in devices),
        latency_s=max(latency_s, STAGED_LATENCY_S) if staged else latency_s,
        ramp_s=max(device.nic_ramp_s for device in devices),
        efficiency=min(efficiency, STAGED_EFFICIENCY) if staged else efficiency,
        source=Source(kind=Provenance.ANALYTIC, text=text),
    )


def network_assumption(group: DeviceGroup) -> str:
    """One sentence on the levels that ``default_levels`` made up."""
    inner, *outer = group.levels
    text = (
        f"{group.name}: {inner.name} of {inner.size} over {group.device.link} at "
        f"{inner.bandwidth_bytes_per_s / GIGA:g} GB/s per device and direction"
    )
    if outer:
        text += (
            f"; network of {outer[0].bandwidth_bytes_per_s / GIGA:g} GB/s per device, "
            f"rail-optimised and non-blocking ({' and '.join(level.name for level in outer)})"
        )
    return text + "."


def boundary_assumptions(groups: tuple[DeviceGroup, ...]) -> tuple[str, ...]:
    """The sentence on the default boundary, when there is one."""
    boundary = default_boundary(groups)
    return () if boundary is None else (f"Between the groups: {boundary.source.text}.",)


def unique_names(names: list[str]) -> list[str]:
    """Names in order; the second of equal ones gets ``-2``."""
    total, seen, result = Counter(names), Counter[str](), []
    for name in names:
        seen[name] += 1
        result.append(f"{name}-{seen[name]}" if total[name] > 1 else name)
    return result
