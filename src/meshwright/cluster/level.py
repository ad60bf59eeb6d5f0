"""Levels: how far a message travels, and what that costs.

A collective that puts ``w`` bytes per device on the wire in ``k`` steps (ring all-gather of n:
``k = n - 1``, ``w = (n - 1)/n`` of the gathered buffer; all-reduce: twice both) takes::

    T = launch + k latency + w/B + 2 sqrt(ramp w/B)

The last term is the price of pipelining in chunks: with a cost ``ramp`` per chunk the best
chunk size gives ``(sqrt(w/B) + sqrt(ramp))**2`` (van de Geijn's pipelined broadcast). On the
measured NCCL tables it halves the mean error over all sizes, from about 19 % to 9 %
(``scripts/distil_catalog.py`` prints both).
"""

from __future__ import annotations

from dataclasses import dataclass

from meshwright.cluster.checks import require_count, require_factor, require_latency, require_rate
from meshwright.cluster.device import most_efficiency
from meshwright.provenance import Source


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """Devices that reach one another through one tier of the network.

    Attributes:
        name: ``"node"``, ``"leaf"``, ``"spine"``, ``"boundary"`` or the user's own word.
        size: devices in one domain of this level, those of the levels below included.
        bandwidth_bytes_per_s: per device, one direction, when every device sends.
        latency_s: of one step of a collective.
        ramp_s: cost of one chunk of a pipelined transfer; 0 for none.
        efficiency: share of the bandwidth that large all-gathers, reduce-scatters and
            boundary messages reach.
        all_reduce_efficiency, all_to_all_efficiency: the same for these (switches that add
            make an all-reduce faster than its two halves); ``None`` is as ``efficiency``.
        oversubscription: at least 1; what a device gets is divided by it under full load.
        shared_by: devices that share one port. ``bandwidth_bytes_per_s`` is the fair share;
            a device that sends while the others are silent has the port for itself.
        source: origin of the numbers.
    """

    name: str
    size: int
    bandwidth_bytes_per_s: float
    latency_s: float
    ramp_s: float = 0.0
    efficiency: float = 1.0
    all_reduce_efficiency: float | None = None
    all_to_all_efficiency: float | None = None
    oversubscription: float = 1.0
    shared_by: int = 1
    source: Source

    def __post_init__(self) -> None:
        require_count(self.size, where=f"{self.name}.size", most=2**31)
        require_rate(self.bandwidth_bytes_per_s, where=f"{self.name}.bandwidth_bytes_per_s")
        require_latency(self.latency_s, where=f"{self.name}.latency_s")
        require_latency(self.ramp_s, where=f"{self.name}.ramp_s")
        for key in ("efficiency", "all_reduce_efficiency", "all_to_all_efficiency"):
            if getattr(self, key) is not None:
                where, most = f"{self.name}.{key}", most_efficiency(key)
                require_rate(getattr(self, key), where=where, most=most)
        require_factor(self.oversubscription, where=f"{self.name}.oversubscription")
        require_count(self.shared_by, where=f"{self.name}.shared_by")

    @property
    def effective_bandwidth_bytes_per_s(self) -> float:
        """Bus bandwidth of ring collectives when every device sends."""
        return self._effective(None)

    @property
    def all_reduce_bandwidth_bytes_per_s(self) -> float:
        """Bus bandwidth of all-reduce, full load."""
        return self._effective(self.all_reduce_efficiency)

    @property
    def all_to_all_bandwidth_bytes_per_s(self) -> float:
        """Bus bandwidth of all-to-all, full load."""
        return self._effective(self.all_to_all_efficiency)

    def _effective(self, efficiency: float | None) -> float:
        share = self.efficiency if efficiency is None else efficiency
        return self.bandwidth_bytes_per_s * share / self.oversubscription

    def alone_factor(self, *, sending: int) -> float:
        """By how much a device is faster when ``sending`` of the ``shared_by`` devices send."""
        return self.shared_by / min(max(sending, 1), self.shared_by)
