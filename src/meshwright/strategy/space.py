"""The space: what may vary, as a value."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from typing import TypeVar

from meshwright.errors import StrategyError
from meshwright.strategy.mesh import TENSOR_INNERMOST, check_axis_order
from meshwright.strategy.stage import ContextAlgorithm, Offload, Recompute
from meshwright.strategy.target import Target

#: Virtual stages that are tried; published runs use up to about ten.
VIRTUAL_STAGES = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12)
#: Micro-batch sizes that are tried; larger ones only grow activations.
MICRO_BATCH_SIZES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)

#: Fields of a space that hold degrees.
DEGREES = ("tensor", "context", "pipeline", "data", "data_shard", "expert", "expert_tensor")


@dataclass(frozen=True, slots=True, kw_only=True)
class Space:
    """Which values each dimension of a uniform strategy may take.

    ``None`` for a degree means every divisor of the device count.

    Attributes:
        tensor, context, pipeline, data, expert, expert_tensor: allowed degrees.
        data_shard: ranks of the data axis that shard one replica's states; ``None`` tries all
            of them, and those that share a level of the network (hybrid sharding).
        virtual_stages, micro_batch_sizes: allowed values.
        sequence_parallel, zero_stages, recompute, offload, context_algorithms: allowed values.
        axis_orders: allowed orders of the mesh axes, innermost first; by default those with
            the tensor axis innermost, as it talks most (``AXIS_ORDERS`` has all).
        uneven_layers: stages may differ by a layer when they do not divide.
        zero_with_pipeline: highest ZeRO stage when there is a pipeline.
        target: name of the framework that narrowed the space, if any.

    Example:
        >>> Space(tensor=(1, 2, 4, 8), zero_stages=(1,)).zero_stages
        (1,)
    """

    tensor: tuple[int, ...] | None = None
    context: tuple[int, ...] | None = None
    pipeline: tuple[int, ...] | None = None
    data: tuple[int, ...] | None = None
    data_shard: tuple[int, ...] | None = None
    expert: tuple[int, ...] | None = None
    expert_tensor: tuple[int, ...] | None = None
    virtual_stages: tuple[int, ...] = VIRTUAL_STAGES
    micro_batch_sizes: tuple[int, ...] = MICRO_BATCH_SIZES
    sequence_parallel: tuple[bool, ...] = (False, True)
    zero_stages: tuple[int, ...] = (0, 1, 2, 3)
    recompute: tuple[Recompute, ...] = tuple(Recompute)
    offload: tuple[Offload, ...] = (Offload.NONE,)
    context_algorithms: tuple[ContextAlgorithm, ...] = tuple(ContextAlgorithm)
    axis_orders: tuple[tuple[str, ...], ...] = TENSOR_INNERMOST
    uneven_layers: bool = True
    zero_with_pipeline: int = 3
    target: str | None = None

    def __post_init__(self) -> None:
        for name in DEGREES:
            values = getattr(self, name)
            if values is not None:
                _check_positive(name, values)
        _check_positive("virtual_stages", self.virtual_stages)
        _check_positive("micro_batch_sizes", self.micro_batch_sizes)
        for order in self.axis_orders:
            check_axis_order(order)
        for f in fields(self):
            value = getattr(self, f.name)
            if isinstance(value, tuple) and not value:
                raise StrategyError(
                    f"the space allows no value of {f.name}",
                    where=f"space.{f.name}",
                    allowed="at least one value",
                    fix="widen the space, or drop the flag that fixes this value",
                )
        if not set(self.zero_stages) <= {0, 1, 2, 3}:
            raise StrategyError(
                f"unknown ZeRO stage in {self.zero_stages}",
                where="space.zero_stages",
                allowed="0, 1, 2, 3",
            )

    def narrowed(self, target: Target) -> Space:
        """The part of this space that ``target`` can run.

        Raises:
            StrategyError: nothing is left of some dimension.
        """
        both = replace(
            self,
            virtual_stages=_common(self.virtual_stages, (1,) if not target.interleaved else None),
            sequence_parallel=_common(self.sequence_parallel, target.sequence_parallel),
            zero_stages=_common(self.zero_stages, target.zero_stages),
            recompute=_common(self.recompute, target.recompute),
            offload=_common(self.offload, target.offload),
            context_algorithms=_common(self.context_algorithms, target.context_algorithms)
            or self.context_algorithms[:1],
            axis_orders=_common(self.axis_orders, target.axis_orders),
            uneven_layers=self.uneven_layers and target.uneven_layers,
            zero_with_pipeline=min(self.zero_with_pipeline, target.zero_with_pipeline),
            target=target.name,
        )
        degrees = {
            name: _without(getattr(self, name)) for name in DEGREES if name in target.without
        }
        return replace(both, **degrees)  # type: ignore[arg-type]  # names are checked fields


def _without(allowed: tuple[int, ...] | None) -> tuple[int, ...]:
    """What is left of a degree that a framework lacks."""
    return (1,) if allowed is None else _common(allowed, (1,))


_T = TypeVar("_T")


def _common(mine: tuple[_T, ...], theirs: tuple[_T, ...] | None) -> tuple[_T, ...]:
    return mine if theirs is None else tuple(value for value in mine if value in theirs)


def _check_positive(name: str, values: Iterable[object]) -> None:
    for value in values:
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise StrategyError(
                f"{name} allows {value!r}",
                where=f"space.{name}",
                allowed="whole numbers of at least 1",
                fix="give positive whole numbers",
            )
