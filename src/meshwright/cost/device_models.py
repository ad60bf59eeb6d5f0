"""What each device group of a cluster offers, with the network that reaches all of it."""

from __future__ import annotations

from dataclasses import dataclass

from meshwright.cluster import Cluster, Device, DeviceGroup, Level
from meshwright.cost.coefficients import Coefficients
from meshwright.cost.collectives import Network


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceModel:
    """What a device group offers to the cost model."""

    device: Device
    network: Network
    coefficients: Coefficients


def reachable_levels(cluster: Cluster, group: DeviceGroup) -> tuple[Level, ...]:
    """Levels under one group of a cluster, with what joins the groups on top."""
    if cluster.boundary is None:
        return group.levels
    inner = [level for level in group.levels if level.size < group.count]
    top = group.level_spanning(group.count)
    return (*inner, top, cluster.boundary)


def device_models(cluster: Cluster, coefficients: Coefficients) -> tuple[DeviceModel, ...]:
    """One model per device group, with the network that reaches the whole cluster."""
    return tuple(
        DeviceModel(
            device=group.device,
            network=Network(
                reachable_levels(cluster, group), launch_s=group.device.collective_launch_s
            ),
            coefficients=coefficients,
        )
        for group in cluster.groups
    )
