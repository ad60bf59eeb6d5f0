"""What can be fitted: coefficients of a stack, and its factors for one device family.

Every parameter is fitted by its logarithm, with a normal prior around the value that it has
before. A parameter that is 0 is 0 because of how the software works, and stays.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from meshwright.cost.coefficients import Coefficients
from meshwright.cost.stacks import OVERLAP
from meshwright.errors import UsageError, nearest


class Place(StrEnum):
    """Where a parameter lives."""

    STACK = "stack"
    """A coefficient of the stack, whatever the device."""
    FAMILY = "family"
    """A factor of the stack for one device family, perhaps at one precision."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One thing that can be fitted.

    Attributes:
        name: field of ``Coefficients``, or ``overlap_`` and a field of its ``overlap``.
        place: where it lives.
        low, high: bounds, in the field's unit.
        spread: standard deviation of the prior, of the natural logarithm.
        neutral: value that no measurement went into, where a fit from scratch starts.
        least_rows: it is fitted when there are so many rows; ``None`` only when it is named.
    """

    name: str
    place: Place = Place.STACK
    low: float
    high: float
    spread: float
    neutral: float
    least_rows: int | None


#: Rows up to which only what every run depends on is fitted; from ``_MANY`` on, all that is here.
FEW_ROWS = 20
_SOME, _MANY = FEW_ROWS + 1, 101

#: Bounds enclose the values of ``cost/stacks.toml`` with room; spreads are about how much those
#: differ between stacks. Neutral values are what the physics says before any fit: a factor of
#: one, half of what could be hidden, a few kernels of some microseconds per op.
PARAMETERS = (
    Parameter(
        name="family_efficiency",
        place=Place.FAMILY,
        low=0.2,
        high=2.0,
        spread=0.15,
        neutral=1.0,
        least_rows=1,
    ),
    Parameter(name="launch_s", low=1e-6, high=1e-3, spread=0.5, neutral=30e-6, least_rows=1),
    Parameter(name="skew_s", low=1e-6, high=2e-4, spread=0.5, neutral=20e-6, least_rows=_SOME),
    Parameter(
        name="family_half_scale",
        place=Place.FAMILY,
        low=0.01,
        high=5.0,
        spread=0.4,
        neutral=1.0,
        least_rows=_SOME,
    ),
    Parameter(
        name="pointwise_traffic", low=0.2, high=5.0, spread=0.3, neutral=1.0, least_rows=_SOME
    ),
    Parameter(name="tensor_scale", low=0.5, high=4.0, spread=0.25, neutral=1.0, least_rows=_SOME),
    Parameter(name="tensor_hidden", low=0.02, high=1.0, spread=0.4, neutral=0.5, least_rows=_SOME),
    Parameter(name="expert_hidden", low=0.02, high=1.0, spread=0.5, neutral=0.3, least_rows=_SOME),
    Parameter(
        name="expert_imbalance", low=1.0, high=3.0, spread=0.15, neutral=1.15, least_rows=_SOME
    ),
    Parameter(name="overlap_tail", low=0.01, high=1.0, spread=0.5, neutral=0.2, least_rows=_MANY),
    Parameter(name="score_traffic", low=0.1, high=4.0, spread=0.4, neutral=1.0, least_rows=_MANY),
    Parameter(
        name="optimizer_traffic", low=0.1, high=4.0, spread=0.3, neutral=1.0, least_rows=_MANY
    ),
    Parameter(name="step_fixed_s", low=1e-4, high=1.0, spread=0.7, neutral=10e-3, least_rows=_MANY),
    Parameter(
        name="matrix_efficiency", low=0.2, high=2.0, spread=0.15, neutral=1.0, least_rows=None
    ),
    Parameter(name="gemm_half_scale", low=0.01, high=5.0, spread=0.4, neutral=1.0, least_rows=None),
)
NAMES = tuple(parameter.name for parameter in PARAMETERS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """A parameter at the place where its value stands.

    Attributes:
        parameter: what it is.
        key: device family, perhaps with a precision; empty for a coefficient of the stack.
    """

    parameter: Parameter
    key: str = ""

    @property
    def label(self) -> str:
        """Its name, with the family behind it."""
        return f"{self.parameter.name}[{self.key}]" if self.key else self.parameter.name

    def value(self, coefficients: Coefficients) -> float:
        """What it is; 1 for a family that has no factor."""
        name = self.parameter.name
        if name in OVERLAP:
            return float(getattr(coefficients.overlap, name.removeprefix("overlap_")))
        found = getattr(coefficients, name)
        return float(found.get(self.key, 1.0) if self.key else found)


def default_parameters(num_rows: int) -> tuple[Parameter, ...]:
    """What so many rows can tell."""
    return tuple(p for p in PARAMETERS if p.least_rows is not None and num_rows >= p.least_rows)


def named_parameters(names: Iterable[str]) -> tuple[Parameter, ...]:
    """The parameters of these names, in the order of the table.

    Raises:
        UsageError: there is no parameter of a name.
    """
    wanted = {name.strip() for name in names}
    for name in sorted(wanted - set(NAMES)):
        close = nearest(name, NAMES, count=1)
        raise UsageError(
            f"{name[:60]!r} cannot be fitted",
            where="--parameters",
            allowed=", ".join(NAMES),
            fix=f"did you mean {close[0]!r}?" if close else "use names of these",
        )
    return tuple(p for p in PARAMETERS if p.name in wanted)


def slots_of(
    parameters: Iterable[Parameter],
    coefficients: Coefficients,
    *,
    family: str,
    precisions: Sequence[str],
) -> tuple[Slot, ...]:
    """Where the values of some parameters stand.

    A factor that the stack has by precision is fitted for each precision that occurs.
    """
    found: list[Slot] = []
    for parameter in parameters:
        if parameter.place is Place.STACK:
            found.append(Slot(parameter=parameter))
            continue
        factors: Mapping[str, float] = getattr(coefficients, parameter.name)
        by_precision = any(key.startswith(f"{family}:") for key in factors)
        keys = {f"{family}:{p}" if by_precision else family for p in precisions}
        found += [Slot(parameter=parameter, key=key) for key in sorted(keys)]
    return tuple(found)


def with_values(coefficients: Coefficients, values: Mapping[Slot, float]) -> Coefficients:
    """The coefficients with other values at some places."""
    plain: dict[str, Any] = {}
    overlap: dict[str, float] = {}
    for slot, value in values.items():
        name = slot.parameter.name
        if name in OVERLAP:
            overlap[name.removeprefix("overlap_")] = value
        elif slot.key:
            plain[name] = {**plain.get(name, getattr(coefficients, name)), slot.key: value}
        else:
            plain[name] = value
    return replace(coefficients, overlap=replace(coefficients.overlap, **overlap), **plain)
