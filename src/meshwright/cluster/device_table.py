"""Devices as TOML tables: the form of the catalogue and of ``[device.NAME]`` in a cluster file.

========================================  =============================================
key                                       meaning
========================================  =============================================
``base``                                  a device whose values stand where none is given
``vendor``, ``family``, ``link``          words
``link_domain_name``                      what a scale-up domain is called
``memory_gib``, ``framework_gib``         GiB
``peak_tflops``                           table: precision to dense TFLOP/s
``*_bandwidth_gb_per_s``                  ``memory``, ``link``, ``host``, ``nic``: GB/s
``*_latency_us``                          ``link``, ``nic``: microseconds per step
``*_ramp_us``                             ``link``, ``nic``: microseconds per chunk
``launch_us``, ``collective_launch_us``   microseconds
``*_efficiency``                          ``attention``, ``attention_backward``,
                                          ``memory``, ``link``, ``link_all_reduce``,
                                          ``link_all_to_all``, ``nic``, ``sustained``:
                                          share, 0 to 1
``link_domain``, ``devices_per_node``     devices
``devices_per_nic``                       devices
``gemm``                                  table: precision to ``limit``, ``m_half``,
                                          ``n_half``, ``k_half``
``source``                                array of tables: ``for`` (keys), ``kind``, ``text``
========================================  =============================================
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from meshwright.cluster.device import Device, GemmCurve
from meshwright.cluster.table import Table, shown
from meshwright.errors import ClusterError
from meshwright.provenance import Source
from meshwright.units import GIB, GIGA, MICROSECOND, TERA

_TEXTS = ("vendor", "family", "link", "link_domain_name")
_COUNTS = ("link_domain", "devices_per_node", "devices_per_nic")
_SHARES = (
    "attention_efficiency",
    "attention_backward_efficiency",
    "memory_efficiency",
    "link_efficiency",
    "link_all_reduce_efficiency",
    "link_all_to_all_efficiency",
    "nic_efficiency",
    "sustained_efficiency",
)
_BYTES = {"memory_gib": "memory_bytes", "framework_gib": "framework_bytes"}
_SCALED = {
    **{
        f"{what}_bandwidth_gb_per_s": (f"{what}_bandwidth_bytes_per_s", float(GIGA))
        for what in ("memory", "link", "host", "nic")
    },
    **{
        f"{what}_us": (f"{what}_s", MICROSECOND)
        for what in (
            "link_latency",
            "link_ramp",
            "nic_latency",
            "nic_ramp",
            "launch",
            "collective_launch",
        )
    },
}
_FIELD_OF_KEY = {
    **{key: key for key in (*_COUNTS, *_SHARES, "gemm")},
    **_BYTES,
    **{key: name for key, (name, _) in _SCALED.items()},
    "peak_tflops": "peak_flops",
}


def device_from_table(
    table: Table, *, name: str, base: Device | None, default_source: Source | None = None
) -> Device:
    """Build a device; ``base`` (already looked up) fills what the table leaves out.

    Args:
        table: the keys above; ``base`` itself has been read by the caller.
        name: of the new device.
        base: the device to inherit from, or ``None``.
        default_source: origin of numbers that no ``source`` entry names.

    Raises:
        ClusterError: a key is unknown, missing or out of range, or a number has no source.
    """
    given = _values(table)
    sources = _sources(table)
    table.finish()
    values: dict[str, Any] = {}
    if base is not None:
        values = {f.name: getattr(base, f.name) for f in fields(Device)}
    values.update(given)
    missing = [
        key for key in (*_TEXTS, *_FIELD_OF_KEY) if _FIELD_OF_KEY.get(key, key) not in values
    ]
    if missing:
        raise ClusterError(
            f"device {name!r} lacks {', '.join(missing)}",
            where=table.where,
            fix='give them, or name a device to start from: base = "H100"',
        )
    values["name"] = name
    values["sources"] = _all_sources(given, sources, base, default_source, where=table.where)
    return Device(**values)


def _values(table: Table) -> dict[str, Any]:
    """What the table gives, by field name and in SI units."""
    values: dict[str, Any] = {key: table.text(key) for key in _TEXTS if key in table}
    values |= {key: table.count(key) for key in _COUNTS if key in table}
    values |= {key: table.number(key) for key in _SHARES if key in table}
    for key, name in _BYTES.items():
        if key in table:
            values[name] = round(min(table.number(key), float(GIB)) * GIB)
    for key, (name, unit) in _SCALED.items():
        if key in table:
            values[name] = table.number(key, zero=unit == MICROSECOND) * unit
    if "peak_tflops" in table:
        peaks = table.table("peak_tflops")
        values["peak_flops"] = {key: peaks.number(key) * TERA for key in peaks.names()}
    if "gemm" in table:
        curves = table.table("gemm")
        values["gemm"] = {key: _curve(curves.table(key)) for key in curves.names()}
    return values


def _curve(table: Table) -> GemmCurve:
    curve = GemmCurve(
        limit=table.number("limit"),
        m_half=table.number("m_half", zero=True),
        n_half=table.number("n_half", zero=True),
        k_half=table.number("k_half", zero=True),
    )
    table.finish()
    return curve


def _sources(table: Table) -> dict[str, Source]:
    """``source`` entries by field name."""
    found: dict[str, Source] = {}
    for entry in table.tables("source") if "source" in table else []:
        source = Source(kind=entry.provenance("kind"), text=entry.text("text"))
        keys = entry.raw("for")
        entry.finish()
        if not isinstance(keys, list):
            raise ClusterError(
                f"{shown(keys)} is no list", where=entry.at("for"), allowed="a list of keys"
            )
        for key in keys:
            if not isinstance(key, str) or key not in _FIELD_OF_KEY:
                raise ClusterError(
                    f"{shown(key)} is no key with a number",
                    where=entry.at("for"),
                    allowed=", ".join(_FIELD_OF_KEY),
                )
            found[_FIELD_OF_KEY[key]] = source
    return found


def _all_sources(
    given: Mapping[str, object],
    sources: Mapping[str, Source],
    base: Device | None,
    default: Source | None,
    *,
    where: str,
) -> dict[str, Source]:
    """One source per numeric field: stated, defaulted, or inherited and said to be so."""
    result: dict[str, Source] = {}
    for name in _FIELD_OF_KEY.values():
        if name in sources:
            result[name] = sources[name]
        elif name not in given and base is not None:
            result[name] = base.sources[name].inherited(base.name)
        elif default is not None:
            result[name] = default
        else:
            raise ClusterError(f"{name!r} has no source", where=where, fix="add it to a [[source]]")
    return result
