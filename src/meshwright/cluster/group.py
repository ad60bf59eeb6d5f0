"""Device groups: equal devices under one tree of levels."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from meshwright.cluster.checks import require_count
from meshwright.cluster.device import Device
from meshwright.cluster.level import Level
from meshwright.errors import ClusterError


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceGroup:
    """``count`` equal devices on ``num_nodes`` equal hosts.

    Attributes:
        name: unique within its cluster.
        device: the type of all of them.
        count: how many.
        num_nodes: hosts; divides ``count``.
        levels: innermost first. The first is the scale-up domain (a node, or a rack such as
            NVL72 that holds several hosts); the last is at least as large as ``count``. Each
            size is a multiple of the one before.
    """

    name: str
    device: Device
    count: int
    num_nodes: int
    levels: tuple[Level, ...]

    def __post_init__(self) -> None:
        require_count(self.count, where=f"{self.name}: devices")
        require_count(self.num_nodes, where=f"{self.name}: nodes")
        if self.count % self.num_nodes:
            raise ClusterError(
                f"{self.count} devices do not divide over {self.num_nodes} nodes", where=self.name
            )
        if not self.levels:
            raise ClusterError("the group has no level", where=self.name)
        for inner, outer in pairwise(self.levels):
            if outer.size <= inner.size or outer.size % inner.size:
                raise ClusterError(
                    f"level {outer.name!r} has size {outer.size}, level {inner.name!r} below it "
                    f"{inner.size}",
                    where=f"{self.name}.levels",
                    allowed="each size a larger multiple of the one before",
                )
        if self.levels[-1].size < self.count:
            raise ClusterError(
                f"the outermost level {self.levels[-1].name!r} joins {self.levels[-1].size} "
                f"devices, the group has {self.count}",
                where=f"{self.name}.levels",
                fix=f"add a level of size {self.count} or more",
            )

    @property
    def devices_per_node(self) -> int:
        """Devices under one host."""
        return self.count // self.num_nodes

    @property
    def scale_up_size(self) -> int:
        """Devices that one scale-up domain of this group holds."""
        return min(self.levels[0].size, self.count)

    def level_spanning(self, extent: int) -> Level:
        """The innermost level whose domains hold ``extent`` neighbouring devices."""
        return next((level for level in self.levels if level.size >= extent), self.levels[-1])
