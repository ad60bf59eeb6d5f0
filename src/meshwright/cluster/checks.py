"""Checks that the cluster types share: sizes and rates that make sense."""

from __future__ import annotations

import math
from typing import TypeGuard

from meshwright.cluster.table import shown
from meshwright.errors import ClusterError

MAX_DEVICES = 10_000_000


def require_rate(value: object, *, where: str, least: float = 0.0, most: float = math.inf) -> None:
    """A finite number in ``(least, most]``; raises ``ClusterError`` otherwise."""
    if not _is_finite(value) or not least < value <= most:
        upper = f" and at most {most:g}" if math.isfinite(most) else ""
        raise ClusterError(
            f"{shown(value)} cannot be used here",
            where=where,
            allowed=f"a finite number greater than {least:g}{upper}",
        )


def require_factor(value: object, *, where: str) -> None:
    """A finite number of at least 1; raises ``ClusterError`` otherwise."""
    if not _is_finite(value) or value < 1.0:
        raise ClusterError(
            f"{shown(value)} cannot be used here", where=where, allowed="a finite number from 1 up"
        )


def require_latency(value: object, *, where: str) -> None:
    """A finite number of seconds from 0 to 1; raises ``ClusterError`` otherwise."""
    if not _is_finite(value) or not 0.0 <= value <= 1.0:
        raise ClusterError(
            f"{shown(value)} is no latency", where=where, allowed="0 to 1 seconds, finite"
        )


def require_count(value: object, *, where: str, most: int = MAX_DEVICES) -> None:
    """An integer from 1 to ``most``; raises ``ClusterError`` otherwise."""
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= most:
        raise ClusterError(
            f"{shown(value)} cannot be used here",
            where=where,
            allowed=f"a whole number from 1 to {most:,}",
        )


def _is_finite(value: object) -> TypeGuard[int | float]:
    """A number that a float can hold; ``True`` is none."""
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer beyond the floats
        return False
