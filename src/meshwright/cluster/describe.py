"""What a cluster is, as rows of data; rendering is done elsewhere."""

from __future__ import annotations

from dataclasses import dataclass

from meshwright.cluster.cluster import Cluster
from meshwright.cluster.device import Device
from meshwright.cluster.level import Level
from meshwright.provenance import Source


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelRow:
    """One level of one group, or the boundary (whose ``group`` is empty).

    Attributes:
        group, level: names.
        size: devices in one domain.
        domains: how many domains the group fills, the last perhaps in part.
        bandwidth_bytes_per_s: per device, one direction, as printed by the vendor.
        effective_bandwidth_bytes_per_s: what large ring collectives get under full load.
        latency_s: of one step.
        oversubscription: at least 1.
        source: of the bandwidth.
    """

    group: str
    level: str
    size: int
    domains: int
    bandwidth_bytes_per_s: float
    effective_bandwidth_bytes_per_s: float
    latency_s: float
    oversubscription: float
    source: Source


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceRow:
    """One number of a device.

    Attributes:
        name: in words, e.g. ``"peak bf16"``.
        value: in ``unit``.
        unit: ``"B"``, ``"B/s"``, ``"s"``, ``"FLOP/s"``, ``"share"`` or ``"devices"``.
        source: its origin.
    """

    name: str
    value: float
    unit: str
    source: Source


def level_rows(cluster: Cluster) -> tuple[LevelRow, ...]:
    """Every level of every group, innermost first, then the boundary."""
    rows = [
        _level_row(group.name, level, count=group.count)
        for group in cluster.groups
        for level in group.levels
    ]
    if cluster.boundary is not None:
        rows.append(_level_row("", cluster.boundary, count=cluster.num_devices))
    return tuple(rows)


def _level_row(group: str, level: Level, *, count: int) -> LevelRow:
    return LevelRow(
        group=group,
        level=level.name,
        size=level.size,
        domains=-(-count // level.size),
        bandwidth_bytes_per_s=level.bandwidth_bytes_per_s,
        effective_bandwidth_bytes_per_s=level.effective_bandwidth_bytes_per_s,
        latency_s=level.latency_s,
        oversubscription=level.oversubscription,
        source=level.source,
    )


def device_rows(device: Device) -> tuple[DeviceRow, ...]:
    """Every number of a device with its origin, in the order of its fields."""
    rows: list[DeviceRow] = []
    for name, source in device.sources.items():
        if name == "peak_flops":
            rows += [
                DeviceRow(name=f"peak {precision}", value=peak, unit="FLOP/s", source=source)
                for precision, peak in device.peak_flops.items()
            ]
        elif name == "gemm":
            rows += [
                DeviceRow(name=f"GEMM limit {key}", value=curve.limit, unit="share", source=source)
                for key, curve in device.gemm.items()
            ]
        else:
            label, unit = _label(name)
            value = float(getattr(device, name))
            rows.append(DeviceRow(name=label, value=value, unit=unit, source=source))
    return tuple(rows)


def _label(name: str) -> tuple[str, str]:
    """Words and unit of a field name."""
    units = {"_bytes_per_s": "B/s", "_bytes": "B", "_s": "s"}
    for suffix, unit in units.items():
        if name.endswith(suffix):
            return name.removesuffix(suffix).replace("_", " "), unit
    unit = "share" if name.endswith("_efficiency") else "devices"
    return name.replace("_", " "), unit
