"""The shorthand: ``4x8xH100``, ``256xH100``, ``16x8xH100+16x8xAscend910B``.

Grammar (case, spaces, ``-`` and ``_`` in type names do not matter; ``×`` is ``x``)::

    cluster = part { "+" part }
    part    = nodes "x" devices "x" type | count "x" type
"""

from __future__ import annotations

import re

from meshwright.cluster.catalog import load_device
from meshwright.cluster.checks import MAX_DEVICES
from meshwright.cluster.cluster import Cluster
from meshwright.cluster.defaults import (
    boundary_assumptions,
    default_boundary,
    default_levels,
    network_assumption,
    unique_names,
)
from meshwright.cluster.device import Device
from meshwright.cluster.group import DeviceGroup
from meshwright.cluster.table import shown
from meshwright.errors import ClusterError

FORM = (
    "NODESxDEVICESxTYPE or COUNTxTYPE, such as 4x8xH100 or 16x8xH100+16x8xAscend910B; "
    "or the path of a .toml file"
)
_MAX_LENGTH = 2000
_PART = re.compile(
    r"(\d+)\s*[x×]\s*(?:(\d+)\s*[x×]\s*)?((?!\d+\s*[x×])\w[\w. -]*)",
    re.IGNORECASE | re.ASCII,
)


def parse_shorthand(text: str) -> Cluster:
    """Read a cluster from its shorthand.

    Raises:
        ClusterError: the form is wrong, or a number is out of range.
        UnknownDeviceError: the catalogue has no such device type.
    """
    if len(text) > _MAX_LENGTH:
        raise ClusterError(
            f"{len(text)} characters are no cluster shorthand", where="cluster", allowed=FORM
        )
    parsed = [_parse_part(part.strip(), text) for part in text.split("+")]
    names = unique_names([device.name for device, _, _ in parsed])
    groups = tuple(
        _make_group(name, device, num_nodes=nodes, devices_per_node=per_node)
        for name, (device, nodes, per_node) in zip(names, parsed, strict=True)
    )
    return Cluster(
        name=text.strip(),
        groups=groups,
        boundary=default_boundary(groups),
        assumptions=tuple(network_assumption(group) for group in groups)
        + boundary_assumptions(groups),
    )


def _make_group(name: str, device: Device, *, num_nodes: int, devices_per_node: int) -> DeviceGroup:
    """A group under the default levels."""
    return DeviceGroup(
        name=name,
        device=device,
        count=num_nodes * devices_per_node,
        num_nodes=num_nodes,
        levels=default_levels(device, num_nodes=num_nodes, devices_per_node=devices_per_node),
    )


def _parse_part(part: str, text: str) -> tuple[Device, int, int]:
    """Device, nodes, devices per node of one part."""
    match = _PART.fullmatch(part)
    if match is None:
        raise ClusterError(f"{shown(part)} is no device group", where=_where(text), allowed=FORM)
    first, second, name = match.groups()
    device = load_device(name)
    if second is None:
        return device, *_pack(_number(first, text), device, text)
    nodes, per_node = _number(first, text), _number(second, text)
    most = max(device.link_domain, device.devices_per_node)
    if per_node > most:
        raise ClusterError(
            f"{per_node} {device.name} in one node: its {device.link} joins at most {most}",
            where=_where(text),
            allowed=f"1 to {most} devices per node",
            fix="describe another machine in a TOML file",
        )
    if nodes * per_node > MAX_DEVICES:
        raise _too_many(nodes * per_node, text)
    return device, nodes, per_node


def _pack(count: int, device: Device, text: str) -> tuple[int, int]:
    """Nodes and devices per node for a bare count."""
    per_node = device.devices_per_node
    if count <= per_node:
        return 1, count
    if count % per_node:
        near = sorted({max(1, count // per_node) * per_node, -(-count // per_node) * per_node})
        raise ClusterError(
            f"{count} {device.name} do not fill nodes of {per_node}",
            where=_where(text),
            allowed=f"up to {per_node}, or a multiple of {per_node}: {' or '.join(map(str, near))}",
            fix=f"say how they are divided: NODESxDEVICESx{device.name}",
        )
    return count // per_node, per_node


def _number(digits: str, text: str) -> int:
    significant = digits.lstrip("0")
    if not significant:
        raise ClusterError(
            "0 nodes or devices are no cluster", where=_where(text), allowed="a number from 1 up"
        )
    if len(significant) > len(str(MAX_DEVICES)) or int(significant) > MAX_DEVICES:
        raise _too_many(significant, text)
    return int(significant)


def _too_many(number: int | str, text: str) -> ClusterError:
    amount = str(number) if len(str(number)) <= 20 else f"a number of {len(str(number))} digits"
    return ClusterError(
        f"{amount} is too many", where=_where(text), allowed=f"at most {MAX_DEVICES:,} devices"
    )


def _where(text: str) -> str:
    return f"cluster {shown(text)}"
