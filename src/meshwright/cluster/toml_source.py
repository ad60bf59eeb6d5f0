"""Clusters as TOML.

::

    name = "my-cluster"                # optional

    [device.MyH100]                    # optional: a device of your own, keys in device_table.py
    base = "H100"
    memory_gib = 94

    [[group]]                          # one or more
    device = "MyH100"                  # a catalogue name, or one defined above
    nodes = 32
    devices_per_node = 8               # optional: as is usual for the device
    name = "fast"                      # optional

    [[group.level]]                    # optional: replaces the default network, innermost first
    name = "leaf"
    size = 256                         # devices in one domain, the levels below included
    bandwidth_gb_per_s = 50            # per device, one direction
    latency_us = 8                     # the rest is optional
    ramp_us = 8
    efficiency = 0.9
    all_reduce_efficiency = 0.9
    all_to_all_efficiency = 0.9
    oversubscription = 1.0
    shared_by = 1                      # devices per port
    source = "measured in May"
    kind = "measured"

    [boundary]                         # optional: what joins the groups; keys as in a level,
    bandwidth_gb_per_s = 25            # without name and size
    latency_us = 20

A level no larger than the scale-up domain (the node, or the rack of an NVL72) replaces it;
otherwise the domain stays as the innermost level. What a level leaves out is taken from the
device: from its link inside the domain, from its network outside.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from meshwright.cluster.catalog import load_device
from meshwright.cluster.catalog.loader import folded
from meshwright.cluster.checks import require_count
from meshwright.cluster.cluster import Cluster
from meshwright.cluster.defaults import (
    boundary_assumptions,
    default_boundary,
    default_levels,
    network_assumption,
    network_level,
    scale_up_level,
    unique_names,
)
from meshwright.cluster.device import Device
from meshwright.cluster.device_table import device_from_table
from meshwright.cluster.group import DeviceGroup
from meshwright.cluster.level import Level
from meshwright.cluster.table import Table
from meshwright.errors import ClusterError
from meshwright.files import read_text
from meshwright.provenance import Provenance, Source
from meshwright.units import GIGA, MIB, MICROSECOND

FILE_LIMIT_BYTES = 10 * MIB


def load_toml_file(path: Path) -> Cluster:
    """Read a cluster from a TOML file of at most 10 MiB.

    Raises:
        FileError: the file is missing, unreadable, too large or not UTF-8.
        ClusterError: its content is wrong.
    """
    text = read_text(path, limit_bytes=FILE_LIMIT_BYTES, kind="cluster description")
    return parse_toml(text, label=path.name, default_name=path.stem)


def parse_toml(text: str, *, label: str = "TOML", default_name: str = "cluster") -> Cluster:
    """Read a cluster from TOML text.

    Args:
        text: the document.
        label: what messages call it.
        default_name: the cluster's name if the text gives none.

    Raises:
        ClusterError: the text is no TOML, or its content is wrong.
        UnknownDeviceError: a device type is neither in the catalogue nor defined in the text.
    """
    root = Table(_parsed(text, label), where=f"{label}:")
    name = root.text("name") if "name" in root else default_name
    given = Source(kind=Provenance.DATASHEET, text=f"as given in {label}")
    devices = _devices(root.table("device"), given) if "device" in root else {}
    tables = root.tables("group")
    boundary_table = root.table("boundary") if "boundary" in root else None
    root.finish()
    groups, assumptions = _groups(tables, devices, given)
    boundary = default_boundary(groups)
    if boundary_table is not None:
        if boundary is None:
            raise ClusterError(
                "a boundary needs two groups or more", where=boundary_table.where, fix="remove it"
            )
        boundary = _level(boundary_table, like=boundary, given=given)
    else:
        assumptions += boundary_assumptions(groups)
    return Cluster(name=name, groups=groups, boundary=boundary, assumptions=assumptions)


def _parsed(text: str, label: str) -> Mapping[str, object]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        what, where = f"not TOML: {error}", label
    except ValueError as error:  # an integer of thousands of digits, a date that is none
        what, where = f"a value cannot be read: {error}", label
    except RecursionError:
        what, where = "values are nested too deep", label
    raise ClusterError(
        what, where=where, allowed="a TOML document with one [[group]] or more"
    ) from None


def _devices(table: Table, given: Source) -> dict[str, Device]:
    """Devices that the text defines, by folded name; a later one may build on an earlier."""
    devices: dict[str, Device] = {}
    for name in table.names():
        entry = table.table(name)
        base = _find(entry.text("base"), devices) if "base" in entry else None
        device = device_from_table(entry, name=name, base=base, default_source=given)
        devices[folded(name)] = device
    return devices


def _find(name: str, devices: Mapping[str, Device]) -> Device:
    return devices.get(folded(name)) or load_device(name)


def _groups(
    tables: list[Table], devices: Mapping[str, Device], given: Source
) -> tuple[tuple[DeviceGroup, ...], tuple[str, ...]]:
    """Groups, and the sentences on what was assumed for them."""
    read = [(table, _find(table.text("device"), devices)) for table in tables]
    names = unique_names(
        [table.text("name") if "name" in table else device.name for table, device in read]
    )
    groups, assumptions = [], []
    for (table, device), name in zip(read, names, strict=True):
        group = _group(table, device, name=name, given=given)
        groups.append(group)
        if "level" not in table:
            assumptions.append(network_assumption(group))
    return tuple(groups), tuple(assumptions)


def _group(table: Table, device: Device, *, name: str, given: Source) -> DeviceGroup:
    nodes = table.count("nodes")
    per_node = device.devices_per_node
    if "devices_per_node" in table:
        per_node = table.count("devices_per_node")
    level_tables = table.tables("level") if "level" in table else []
    table.finish()
    require_count(nodes * per_node, where=f"{table.where}: devices")
    if level_tables:
        levels = _levels(level_tables, device, nodes=nodes, per_node=per_node, given=given)
    else:
        levels = default_levels(device, num_nodes=nodes, devices_per_node=per_node)
    return DeviceGroup(
        name=name, device=device, count=nodes * per_node, num_nodes=nodes, levels=levels
    )


def _levels(
    tables: list[Table], device: Device, *, nodes: int, per_node: int, given: Source
) -> tuple[Level, ...]:
    domain = scale_up_level(device, num_nodes=nodes, devices_per_node=per_node)
    levels = []
    for table in tables:
        name, size = table.text("name"), table.count("size")
        inside = size <= domain.size
        like = domain if inside else network_level("", device, size=1, extra_s=0.0)
        require_count(size, where=table.at("size"))
        levels.append(_level(table, like=replace(like, name=name, size=size), given=given))
    if levels[0].size > domain.size:
        levels.insert(0, domain)
    return tuple(levels)


def _level(table: Table, *, like: Level, given: Source) -> Level:
    """``like`` with everything that the table gives."""
    values: dict[str, Any] = {"bandwidth_bytes_per_s": table.number("bandwidth_gb_per_s") * GIGA}
    for key in ("latency", "ramp"):
        if f"{key}_us" in table:
            values[f"{key}_s"] = table.number(f"{key}_us", zero=True) * MICROSECOND
    for key in ("efficiency", "all_reduce_efficiency", "all_to_all_efficiency"):
        if key in table:
            values[key] = table.number(key)
    if "efficiency" in values:  # the device's own figures no longer belong to this level
        values = {"all_reduce_efficiency": None, "all_to_all_efficiency": None} | values
    if "oversubscription" in table:
        values["oversubscription"] = table.number("oversubscription")
    if "shared_by" in table:
        values["shared_by"] = table.count("shared_by")
    values["source"] = _source(table, given)
    table.finish()
    return replace(like, **values)


def _source(table: Table, given: Source) -> Source:
    return Source(
        kind=table.provenance("kind") if "kind" in table else given.kind,
        text=table.text("source") if "source" in table else given.text,
    )
