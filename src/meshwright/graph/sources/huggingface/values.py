"""Judging and showing single values of a parsed JSON document."""

from __future__ import annotations

import math
from collections.abc import Mapping


def is_finite(value: object) -> bool:
    """Whether a number is neither infinite nor NaN."""
    # An int of more than 1024 bits has no float: refuse it as not finite.
    try:
        return math.isfinite(value)  # type: ignore[arg-type]
    except OverflowError:
        return False


def shown(value: object) -> str:
    """The value as JSON would show it, cut to a length that fits in a message."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, Mapping):
        return "an object"
    if isinstance(value, list | tuple):
        return f"a list of {len(value)}"
    if isinstance(value, int) and value.bit_length() > 200:
        return "an integer of more than 60 digits"
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
