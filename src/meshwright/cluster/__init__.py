"""Clusters: device types, groups of them, and the levels of the network."""

from __future__ import annotations

from meshwright.cluster.catalog import device_names, load_device
from meshwright.cluster.cluster import Cluster
from meshwright.cluster.describe import DeviceRow, LevelRow, device_rows, level_rows
from meshwright.cluster.device import PRECISIONS, Device, GemmCurve
from meshwright.cluster.group import DeviceGroup
from meshwright.cluster.level import Level
from meshwright.cluster.load import load_cluster

__all__ = [
    "PRECISIONS",
    "Cluster",
    "Device",
    "DeviceGroup",
    "DeviceRow",
    "GemmCurve",
    "Level",
    "LevelRow",
    "device_names",
    "device_rows",
    "level_rows",
    "load_cluster",
    "load_device",
]
