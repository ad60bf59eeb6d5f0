"""Collectives by α–β per level, with the algorithm that is fastest for the size.

Legend: V bytes of the whole buffer; n ranks; g_l ranks inside one domain of level l
(g_{-1} = 1, last g = n); r_l = g_l / g_{l-1}; a_l, B_l latency and per-device bandwidth. A
transfer of x seconds at full rate takes ``x + 2 sqrt(ramp x)`` (see ``cluster.level``).

A rank has B_0 inside its node, and through level l the g_{l-1} ranks below share one domain's
ports, so a ring that enters and leaves a domain once gets g_{l-1} B_l (Thakur et al. 2005;
the rail-parallel rings of NCCL). Ring: V (n - 1)/n over the slowest such level, one latency
per hop. Hierarchical: each level in turn, on the share that the levels inside left. Tree
(all-reduce): twice the volume over the slowest level, a latency per doubling.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

import numpy as np

from meshwright.cluster import Level
from meshwright.cost.local import FloatArray, IntArray


class Collective(StrEnum):
    """What is done with a buffer that a group shares."""

    ALL_GATHER = "all_gather"
    REDUCE_SCATTER = "reduce_scatter"
    ALL_REDUCE = "all_reduce"
    ALL_TO_ALL = "all_to_all"


def _rate(level: Level, kind: Collective) -> float:
    """Bytes/s of one device through a level at full load."""
    if kind is Collective.ALL_REDUCE:
        return level.all_reduce_bandwidth_bytes_per_s
    if kind is Collective.ALL_TO_ALL:
        return level.all_to_all_bandwidth_bytes_per_s
    return level.effective_bandwidth_bytes_per_s


class Network:
    """The levels under one device group, as arrays.

    Args:
        levels: innermost first.
        launch_s: least time of a call.
    """

    def __init__(self, levels: tuple[Level, ...], *, launch_s: float) -> None:
        self.levels = levels
        self.launch_s = launch_s
        self.latency_s = np.array([level.latency_s for level in levels])
        self._ramp_s = np.array([level.ramp_s for level in levels])
        # Every device under a level sends at the same time as its peers in other groups, so
        # each gets its fair share: the effective rate.
        self._rates = {
            kind: np.array([_rate(level, kind) for level in levels]) for kind in Collective
        }

    def _transfer(self, seconds: FloatArray) -> FloatArray:
        """Time of transfers that take ``seconds`` at full rate: shapes (R, L)."""
        ramp: FloatArray = 2.0 * np.sqrt(self._ramp_s * seconds)
        return seconds + ramp

    def time(
        self, kind: Collective, volume_bytes: FloatArray, group_members: IntArray
    ) -> FloatArray:
        """Seconds of one collective: shape (R,).

        Args:
            kind: which.
            volume_bytes: shape (R,). All-gather, reduce-scatter, all-reduce: the whole
                buffer. All-to-all: what one rank holds before (and after) it.
            group_members: shape (R, L), from ``placement``.
        """
        if kind is Collective.ALL_TO_ALL:
            return self.exchange(volume_bytes, group_members, copies=1)
        seconds = np.min(self.algorithms(kind, volume_bytes, group_members), axis=0)
        return self._unless_alone(seconds, group_members)

    def exchange(
        self, volume_bytes: FloatArray, group_members: IntArray, *, copies: int
    ) -> FloatArray:
        """Seconds of an all-to-all in which ``copies`` equal messages go to random ranks.

        A token that visits k experts crosses to each node once, however many of them it holds
        (hierarchical dispatch, as DeepEP does it): of D domains k random choices meet
        ``D (1 - (1 - 1/D)^k)``. With one copy this is the plain all-to-all: every rank sends an
        equal share to every other. Levels work at once, and the slowest decides.

        Args:
            volume_bytes: shape (R,); what one rank sends, all copies counted.
            group_members: shape (R, L), from ``placement``.
            copies: k.
        """
        g = group_members.astype(np.float64)
        below = np.concatenate([np.ones((len(g), 1)), g[:, :-1]], axis=1)
        domains = g[:, -1:] / below
        met = domains * (1.0 - (1.0 - 1.0 / domains) ** copies)
        leaving = volume_bytes[:, None] * met / copies * (1.0 - 1.0 / domains)
        crossed = g > below
        rate = self._rates[Collective.ALL_TO_ALL]
        slowest = np.max(self._transfer(np.where(crossed, leaving / rate, 0.0)), axis=1)
        return self._unless_alone(slowest + np.log2(g / below) @ self.latency_s, group_members)

    def _unless_alone(self, seconds: FloatArray, group_members: IntArray) -> FloatArray:
        """Nothing for groups of one; otherwise at least the launch."""
        return np.where(group_members[:, -1] <= 1, 0.0, seconds + self.launch_s)

    def algorithms(
        self, kind: Collective, volume_bytes: FloatArray, group_members: IntArray
    ) -> FloatArray:
        """Seconds by ring, hierarchical and (all-reduce) tree: shape (A, R)."""
        passes = 2.0 if kind is Collective.ALL_REDUCE else 1.0
        g = group_members.astype(np.float64)
        below = np.concatenate([np.ones((len(g), 1)), g[:, :-1]], axis=1)
        ratio = g / below
        n = g[:, -1:]
        bandwidth = self._rates[kind]
        crossed = ratio > 1.0
        volume = volume_bytes[:, None]

        hops = np.where(crossed, n / below - n / g, 0.0)
        full = np.where(crossed, passes * volume / (below * bandwidth), 0.0)
        ring = np.max(self._transfer(full * (n - 1) / n), axis=1) + passes * hops @ self.latency_s
        steps = self._transfer(full * (ratio - 1) / ratio).sum(axis=1)
        options = [ring, steps + passes * (ratio - 1) @ self.latency_s]
        if kind is Collective.ALL_REDUCE:
            doublings = np.ceil(np.log2(ratio))
            tree = np.max(self._transfer(full), axis=1) + passes * doublings @ self.latency_s
            options.append(tree)
        return np.stack(options)

    def linear(
        self, kind: Collective, group_members: IntArray, *, reference_bytes: float
    ) -> tuple[FloatArray, FloatArray]:
        """Latency and seconds per byte around ``reference_bytes``: shapes (R,), (R,).

        The chord between the reference size and twice that: the rate of large buffers, with
        what is left at the reference as latency.
        """
        ones = np.ones(len(group_members))
        near = self.time(kind, reference_bytes * ones, group_members)
        far = self.time(kind, 2.0 * reference_bytes * ones, group_members)
        slope = (far - near) / reference_bytes
        return np.maximum(near - slope * reference_bytes, 0.0), slope

    def hop(self, extent: IntArray) -> tuple[FloatArray, FloatArray]:
        """Latency and seconds per byte between ranks ``extent`` apart: shapes (R,), (R,)."""
        index = hop_level(extent, self.levels)
        rates = np.array([level.effective_bandwidth_bytes_per_s for level in self.levels])
        return self.launch_s + self.latency_s[index], 1.0 / rates[index]


def hop_level(extent: IntArray, levels: Sequence[Level]) -> IntArray:
    """Index of the first level whose domains hold ranks ``extent`` apart: shape (R,)."""
    sizes = np.array([level.size for level in levels])
    index: IntArray = np.minimum(np.searchsorted(sizes, extent, side="right"), len(sizes) - 1)
    return index
