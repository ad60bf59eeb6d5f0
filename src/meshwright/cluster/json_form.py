"""Clusters as JSON objects: everything that is needed to plan on them again."""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import Any

from meshwright.cluster.cluster import Cluster
from meshwright.cluster.device import Device, GemmCurve
from meshwright.cluster.group import DeviceGroup
from meshwright.cluster.level import Level
from meshwright.cluster.table import Table, shown
from meshwright.errors import ClusterError
from meshwright.provenance import Source

_DEVICE_TEXTS = ("name", "vendor", "family", "link", "link_domain_name")


def cluster_to_dict(cluster: Cluster) -> dict[str, Any]:
    """Plain data for ``json.dumps``; each device type once."""
    return {
        "name": cluster.name,
        "devices": [asdict(device) for device in cluster.devices],
        "groups": [
            {
                "name": group.name,
                "device": group.device.name,
                "count": group.count,
                "num_nodes": group.num_nodes,
                "levels": [asdict(level) for level in group.levels],
            }
            for group in cluster.groups
        ],
        "boundary": None if cluster.boundary is None else asdict(cluster.boundary),
        "assumptions": list(cluster.assumptions),
    }


def cluster_from_dict(content: object) -> Cluster:
    """The cluster that ``cluster_to_dict`` described; equal to it.

    Raises:
        ClusterError: a key is missing, unknown or of the wrong type, or a value out of range.
    """
    table = Table(content, where="cluster")
    devices = {
        device.name: device for device in (_device(entry) for entry in table.tables("devices"))
    }
    groups = tuple(_group(entry, devices) for entry in table.tables("groups"))
    boundary = None if table.raw("boundary") is None else _level(table.table("boundary"))
    assumptions = table.raw("assumptions")
    if not isinstance(assumptions, (list, tuple)) or not all(
        isinstance(sentence, str) for sentence in assumptions
    ):
        raise ClusterError(
            f"{shown(assumptions)} is no list of sentences", where=table.at("assumptions")
        )
    name = table.text("name")
    table.finish()
    return Cluster(name=name, groups=groups, boundary=boundary, assumptions=tuple(assumptions))


def _group(table: Table, devices: dict[str, Device]) -> DeviceGroup:
    device = devices.get(table.text("device"))
    if device is None:
        raise ClusterError(
            f"device {table.text('device')!r} is not described",
            where=table.at("device"),
            allowed=", ".join(devices),
        )
    group = DeviceGroup(
        name=table.text("name"),
        device=device,
        count=table.count("count"),
        num_nodes=table.count("num_nodes"),
        levels=tuple(_level(entry) for entry in table.tables("levels")),
    )
    table.finish()
    return group


def _level(table: Table) -> Level:
    values: dict[str, Any] = {f.name: table.raw(f.name) for f in fields(Level)}
    values |= {"name": table.text("name"), "source": _source(table.table("source"))}
    table.finish()
    return Level(**values)


def _device(table: Table) -> Device:
    values: dict[str, Any] = {f.name: table.raw(f.name) for f in fields(Device)}
    values |= {key: table.text(key) for key in _DEVICE_TEXTS}
    peaks, curves, sources = (table.table(k) for k in ("peak_flops", "gemm", "sources"))
    values["peak_flops"] = {key: peaks.number(key) for key in peaks.names()}
    values["gemm"] = {key: _curve(curves.table(key)) for key in curves.names()}
    values["sources"] = {key: _source(sources.table(key)) for key in sources.names()}
    table.finish()
    return Device(**values)


def _curve(table: Table) -> GemmCurve:
    curve = GemmCurve(**{f.name: table.number(f.name, zero=True) for f in fields(GemmCurve)})
    table.finish()
    return curve


def _source(table: Table) -> Source:
    source = Source(kind=table.provenance("kind"), text=table.text("text"))
    table.finish()
    return source
