"""Clusters: groups of devices and what lies between the groups."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from meshwright.cluster.checks import require_count
from meshwright.cluster.device import Device
from meshwright.cluster.group import DeviceGroup
from meshwright.cluster.level import Level
from meshwright.errors import ClusterError


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """One or more device groups.

    Attributes:
        name: as the user wrote it.
        groups: in rank order.
        boundary: what joins the groups; ``None`` exactly when there is only one.
        assumptions: what the reader had to assume, each a full sentence.
    """

    name: str
    groups: tuple[DeviceGroup, ...]
    boundary: Level | None = None
    assumptions: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.groups:
            raise ClusterError("the cluster has no devices", where=self.name)
        doubled = [n for n, times in Counter(g.name for g in self.groups).items() if times > 1]
        if doubled:
            raise ClusterError(f"two groups are called {doubled[0]!r}", where=self.name)
        names = Counter(device.name for device in self.devices)
        alike = [name for name, times in names.items() if times > 1]
        if alike:
            raise ClusterError(f"two different devices are called {alike[0]!r}", where=self.name)
        if len(self.groups) > 1 and self.boundary is None:
            raise ClusterError("nothing joins the groups", where=f"{self.name}: boundary")
        if len(self.groups) == 1 and self.boundary is not None:
            raise ClusterError(
                "a boundary needs two groups or more", where=f"{self.name}: boundary"
            )
        require_count(self.num_devices, where=f"{self.name}: devices")

    @property
    def num_devices(self) -> int:
        """All devices."""
        return sum(group.count for group in self.groups)

    @property
    def num_nodes(self) -> int:
        """All hosts."""
        return sum(group.num_nodes for group in self.groups)

    @property
    def is_uniform(self) -> bool:
        """Whether there is a single group."""
        return len(self.groups) == 1

    @property
    def devices(self) -> tuple[Device, ...]:
        """Distinct device types, in order of first use."""
        return tuple(dict.fromkeys(group.device for group in self.groups))

    @property
    def devices_per_node(self) -> int:
        """Devices under one host; of groups that differ, the fewest."""
        return min(group.devices_per_node for group in self.groups)
