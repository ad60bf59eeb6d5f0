"""One pipeline stage: its layers, its devices, its degrees."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from meshwright.errors import StrategyError

_DEGREES = ("tensor", "context", "expert", "expert_tensor", "data_replicate", "data_shard")


class Recompute(StrEnum):
    """What a layer repeats in its backward instead of keeping it."""

    NONE = "none"
    SELECTIVE = "selective"
    """The attention core: its score matrices are not kept (Korthikanti et al. 2022)."""
    FULL = "full"
    """The whole layer: only its input is kept."""


class ContextAlgorithm(StrEnum):
    """How attention sees keys that other context ranks hold."""

    RING = "ring"
    ALL_GATHER = "all_gather"
    ULYSSES = "ulysses"


class Offload(StrEnum):
    """What lives in host memory."""

    NONE = "none"
    OPTIMIZER = "optimizer"


@dataclass(frozen=True, slots=True, kw_only=True)
class RecomputeRun:
    """``count`` neighbouring layers of a stage with the same recomputation."""

    count: int
    mode: Recompute


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """One pipeline stage.

    Attributes:
        layers: half-open layer ranges, one per virtual stage, in order of execution.
        groups: indices of the device groups whose devices run it; the slowest sets the pace.
        tensor: operator-parallel degree.
        sequence_parallel: norm and dropout regions split over the tensor group.
        context, context_algorithm: degree over the sequence, and how keys travel.
        expert, expert_tensor: degrees over experts and inside one expert; both lie inside
            the tensor × context × data ranks of the stage.
        data_replicate, data_shard: replicas, and ranks that shard one replica's states;
            their product is the data degree.
        zero_stage: 0 nothing sharded, 1 optimizer, 2 gradients too, 3 parameters too.
        recompute: per run of layers, covering all layers of the stage in order.
        offload: what lives in host memory.
    """

    layers: tuple[tuple[int, int], ...]
    groups: tuple[int, ...] = (0,)
    tensor: int = 1
    sequence_parallel: bool = False
    context: int = 1
    context_algorithm: ContextAlgorithm = ContextAlgorithm.RING
    expert: int = 1
    expert_tensor: int = 1
    data_replicate: int = 1
    data_shard: int = 1
    zero_stage: int = 0
    recompute: tuple[RecomputeRun, ...] = ()
    offload: Offload = Offload.NONE

    def __post_init__(self) -> None:
        for name in (
            "tensor",
            "context",
            "expert",
            "expert_tensor",
            "data_replicate",
            "data_shard",
        ):
            degree = getattr(self, name)
            if isinstance(degree, bool) or not isinstance(degree, int) or degree < 1:
                raise StrategyError(
                    f"{name} degree is {degree!r}",
                    where=f"stage.{name}",
                    allowed="a whole number of at least 1",
                    fix="give a positive degree",
                )
        if self.zero_stage not in (0, 1, 2, 3):
            raise StrategyError(
                f"zero_stage is {self.zero_stage!r}",
                where="stage.zero_stage",
                allowed="0, 1, 2 or 3",
            )
        self._check_layers()
        self._check_experts()

    def _check_layers(self) -> None:
        for start, stop in self.layers:
            if not 0 <= start <= stop:
                raise StrategyError(
                    f"layer range {start}:{stop} is empty or reversed",
                    where="stage.layers",
                    allowed="0 <= start <= stop",
                )
        if self.recompute and sum(run.count for run in self.recompute) != self.num_layers:
            raise StrategyError(
                f"recomputation covers {sum(run.count for run in self.recompute)} layers of a "
                f"stage that has {self.num_layers}",
                where="stage.recompute",
                allowed="runs whose counts add up to the stage's layers",
            )

    def _check_experts(self) -> None:
        ranks = self.num_devices
        if ranks % (self.expert * self.expert_tensor):
            raise StrategyError(
                f"expert {self.expert} × expert_tensor {self.expert_tensor} = "
                f"{self.expert * self.expert_tensor} does not divide the stage's ranks: tensor "
                f"{self.tensor} × context {self.context} × data {self.data} = {ranks}",
                where="stage.expert",
                allowed="a divisor of tensor × context × data",
                fix="lower the expert degree or raise the data degree",
            )
        if self.tensor % self.expert_tensor:
            raise StrategyError(
                f"expert_tensor {self.expert_tensor} does not divide tensor {self.tensor}",
                where="stage.expert_tensor",
                allowed="a divisor of the tensor degree",
            )

    @property
    def num_layers(self) -> int:
        """Layers of all virtual stages."""
        return sum(stop - start for start, stop in self.layers)

    @property
    def data(self) -> int:
        """Batch replicas: replicate × shard."""
        return self.data_replicate * self.data_shard

    @property
    def num_devices(self) -> int:
        """Ranks of the stage."""
        return self.tensor * self.context * self.data

    @property
    def expert_data(self) -> int:
        """Ranks that hold the same experts."""
        return self.num_devices // (self.expert * self.expert_tensor)

    def recompute_of_layers(self) -> tuple[Recompute, ...]:
        """The mode of every layer, in order."""
        if not self.recompute:
            return (Recompute.NONE,) * self.num_layers
        return tuple(run.mode for run in self.recompute for _ in range(run.count))
