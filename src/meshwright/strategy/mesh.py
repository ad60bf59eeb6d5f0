"""The abstract mesh: which rank belongs to which group, with no device in sight."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from math import prod

from meshwright.errors import StrategyError

#: Axes of the device mesh in the order that most frameworks use, innermost first.
MESH_AXES = ("tensor", "context", "data", "pipeline")

#: Every order of the axes, the usual one first.
AXIS_ORDERS: tuple[tuple[str, ...], ...] = tuple(permutations(MESH_AXES))

#: Orders whose tensor groups are neighbours: the only ones that frameworks lay out.
TENSOR_INNERMOST = tuple(order for order in AXIS_ORDERS if order[0] == "tensor")


@dataclass(frozen=True, slots=True, kw_only=True)
class Mesh:
    """Degrees along each axis and the order in which ranks run through them.

    Attributes:
        order: axis names, innermost (adjacent ranks) first.
        sizes: degree of each axis, in ``order``.
    """

    order: tuple[str, ...]
    sizes: tuple[int, ...]

    def __post_init__(self) -> None:
        check_axis_order(self.order)

    @property
    def num_ranks(self) -> int:
        """Product of all degrees."""
        return prod(self.sizes)

    def size(self, axis: str) -> int:
        """Degree along an axis."""
        return self.sizes[self.order.index(axis)]

    def stride(self, axis: str) -> int:
        """Distance in ranks between neighbours along an axis.

        >>> Mesh(order=MESH_AXES, sizes=(8, 1, 4, 2)).stride("pipeline")
        32
        """
        return prod(self.sizes[: self.order.index(axis)])

    def ranks(self, axis: str, rank: int) -> tuple[int, ...]:
        """Ranks of the group along ``axis`` that holds ``rank``.

        >>> Mesh(order=MESH_AXES, sizes=(2, 1, 2, 1)).ranks("data", 1)
        (1, 3)
        """
        stride, size = self.stride(axis), self.size(axis)
        first = rank - (rank // stride % size) * stride
        return tuple(range(first, first + stride * size, stride))


def check_axis_order(order: Sequence[str]) -> None:
    """Raise unless ``order`` names every mesh axis once.

    Raises:
        StrategyError: it does not.
    """
    if sorted(order) != sorted(MESH_AXES):
        raise StrategyError(
            f"axis order {'-'.join(order)!r} does not name every axis once",
            where="strategy.axis_order",
            allowed=f"a permutation of {'-'.join(MESH_AXES)}, innermost first",
            fix="name each axis exactly once",
        )


def mesh_of(order: Sequence[str], degrees: Mapping[str, int]) -> Mesh:
    """The mesh with these degrees in this order."""
    return Mesh(order=tuple(order), sizes=tuple(degrees[axis] for axis in order))
