"""A strategy: everything that decides how a step runs."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from meshwright.errors import StrategyError
from meshwright.strategy.mesh import MESH_AXES, Mesh, check_axis_order, mesh_of
from meshwright.strategy.stage import Stage


class Schedule(StrEnum):
    """Order in which a pipeline runs forwards and backwards."""

    GPIPE = "gpipe"
    ONE_F_ONE_B = "1f1b"
    INTERLEAVED = "interleaved"


@dataclass(frozen=True, slots=True, kw_only=True)
class Strategy:
    """How one training step runs. A uniform strategy is one with equal stages.

    Attributes:
        stages: in pipeline order.
        micro_batch_size: sequences per replica and micro-batch.
        micro_batches: micro-batches per replica and step.
        schedule: order of forwards and backwards.
        axis_order: mesh axes, innermost first: decides what crosses a node.
    """

    stages: tuple[Stage, ...]
    micro_batch_size: int
    micro_batches: int
    schedule: Schedule = Schedule.ONE_F_ONE_B
    axis_order: tuple[str, ...] = MESH_AXES

    def __post_init__(self) -> None:
        if not self.stages:
            raise StrategyError("a strategy has no stages", where="strategy.stages")
        for name in ("micro_batch_size", "micro_batches"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise StrategyError(
                    f"{name} is {value!r}",
                    where=f"strategy.{name}",
                    allowed="a whole number of at least 1",
                )
        check_axis_order(self.axis_order)
        self._check_schedule()
        self._check_layers()
        if len({stage.data for stage in self.stages}) > 1:
            raise StrategyError(
                f"stages have different data degrees: {[stage.data for stage in self.stages]}",
                where="strategy.stages",
                allowed="one data degree for all stages",
                fix="make data_replicate × data_shard equal on every stage",
            )

    def _check_schedule(self) -> None:
        chunks = {len(stage.layers) for stage in self.stages}
        if len(chunks) > 1:
            raise StrategyError(
                f"stages have different numbers of virtual stages: {sorted(chunks)}",
                where="strategy.stages",
            )
        interleaved = self.schedule is Schedule.INTERLEAVED
        if interleaved != (self.virtual_stages > 1):
            raise StrategyError(
                f"schedule {self.schedule.value!r} with {self.virtual_stages} virtual stages",
                where="strategy.schedule",
                allowed="'interleaved' with at least 2 virtual stages, any other with 1",
            )
        if interleaved and (self.pipeline == 1 or self.micro_batches % self.pipeline):
            raise StrategyError(
                f"interleaving runs micro-batches in groups of the pipeline degree: "
                f"{self.micro_batches} micro-batches, {self.pipeline} stages",
                where="strategy.micro_batches",
                allowed="more than one stage, and a multiple of the pipeline degree",
                fix="change the micro-batch size or use one virtual stage",
            )

    def _check_layers(self) -> None:
        """Chunk j of every stage precedes chunk j + 1 of any, and nothing is left out."""
        expected = 0
        for chunk in range(self.virtual_stages):
            for i, stage in enumerate(self.stages):
                start, stop = stage.layers[chunk]
                if start != expected:
                    raise StrategyError(
                        f"stage {i} chunk {chunk} starts at layer {start}, not {expected}",
                        where=f"strategy.stages[{i}].layers",
                        allowed="every layer exactly once, in order",
                    )
                expected = stop

    @property
    def pipeline(self) -> int:
        """Number of stages."""
        return len(self.stages)

    @property
    def virtual_stages(self) -> int:
        """Chunks of layers per device."""
        return len(self.stages[0].layers)

    @property
    def num_layers(self) -> int:
        """Layers of all stages."""
        return sum(stage.num_layers for stage in self.stages)

    @property
    def num_devices(self) -> int:
        """Ranks of all stages."""
        return sum(stage.num_devices for stage in self.stages)

    @property
    def data(self) -> int:
        """Batch replicas."""
        return self.stages[0].data

    @property
    def global_batch_size(self) -> int:
        """Sequences per step."""
        return self.micro_batch_size * self.micro_batches * self.data

    def mesh(self, stage: int = 0) -> Mesh:
        """The abstract mesh, with the degrees of one stage."""
        s = self.stages[stage]
        degrees = {
            "tensor": s.tensor,
            "context": s.context,
            "data": s.data,
            "pipeline": self.pipeline,
        }
        return mesh_of(self.axis_order, degrees)
