"""What the options accept: whole numbers, lists of them, words and lists of words.

Each function is a click callback, so that every message has the form of our own errors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias, TypeVar

import click

from meshwright.cli.failures import shortened
from meshwright.errors import UsageError

_Value = TypeVar("_Value")
Callback: TypeAlias = Callable[[click.Context, click.Parameter, str | None], _Value | None]

#: Nothing that is counted here comes near it.
MAX_COUNT = 10**9


def whole_number(text: str, *, where: str) -> int:
    """A positive whole number as people write it: digits, perhaps with ``_`` between them.

    Raises:
        UsageError: it is none, or absurdly large.
    """
    try:
        value = int(text) if len(text) <= 20 else 0
    except ValueError:
        value = 0
    if not 1 <= value <= MAX_COUNT:
        raise UsageError(
            f"{quoted(text)} is no whole number from 1 to {MAX_COUNT:,}",
            where=where,
            allowed=f"1 to {MAX_COUNT:,}",
            fix="write a positive number in digits",
        )
    return value


def quoted(text: str) -> str:
    """What a user wrote, in quotes and not too long."""
    return repr(shortened(text, 60))


def count(_ctx: click.Context, param: click.Parameter, value: str | None) -> int | None:
    """One positive whole number."""
    return None if value is None else whole_number(value, where=param.opts[0])


def counts(
    _ctx: click.Context, param: click.Parameter, value: str | None
) -> tuple[int, ...] | None:
    """Positive whole numbers with commas between them; one given twice counts once."""
    if value is None:
        return None
    parts = value.split(",")
    return tuple(dict.fromkeys(whole_number(p.strip(), where=param.opts[0]) for p in parts))


def seconds(_ctx: click.Context, param: click.Parameter, value: str | None) -> float | None:
    """A finite, positive number of seconds."""
    if value is None:
        return None
    try:
        number = float(value)
    except ValueError:
        number = 0.0
    if not 0.0 < number < float("inf"):
        raise UsageError(
            f"{quoted(value)} is no positive number of seconds",
            where=param.opts[0],
            allowed="a finite number above 0",
            fix="write it in digits, such as 2.5",
        )
    return number


def words(known: Sequence[str]) -> Callback[tuple[str, ...]]:
    """Words of a fixed set with commas between them; case and ``_`` for ``-`` do not matter."""
    by_spelling = {word.replace("_", "-"): word for word in known}

    def parse(
        _ctx: click.Context, param: click.Parameter, value: str | None
    ) -> tuple[str, ...] | None:
        if value is None:
            return None
        found: dict[str, None] = {}
        for part in value.split(","):
            spelled = by_spelling.get(part.strip().casefold().replace("_", "-"))
            if spelled is None:
                raise UsageError(
                    f"{quoted(part.strip())} is not known here",
                    where=param.opts[0],
                    allowed=", ".join(known),
                    fix="use a word of these",
                )
            found[spelled] = None
        return tuple(found)

    return parse


def word(known: Sequence[str]) -> Callback[str]:
    """One word of a fixed set."""
    several = words(known)

    def parse(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
        found = several(ctx, param, value)
        if found is None:
            return None
        if len(found) > 1:
            raise UsageError(
                f"{len(found)} values where one is wanted",
                where=param.opts[0],
                allowed=f"one of {', '.join(known)}",
                fix="give one value; lists are for the space of `meshwright plan`",
            )
        return found[0]

    return parse


def axis_orders(
    _ctx: click.Context, _param: click.Parameter, value: str | None
) -> tuple[tuple[str, ...], ...] | None:
    """Mesh axes joined by ``-``, innermost first; several orders with commas between them."""
    if value is None:
        return None
    from meshwright.strategy import check_axis_order

    orders = [tuple(shortened(part, 80).casefold().split("-")) for part in value.split(",")]
    for order in orders:
        check_axis_order(order)
    return tuple(dict.fromkeys(orders))
