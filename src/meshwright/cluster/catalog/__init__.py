"""The catalogue of device types: data files, and the look-up by name."""

from __future__ import annotations

from meshwright.cluster.catalog.loader import device_aliases, device_names, load_device

__all__ = ["device_aliases", "device_names", "load_device"]
