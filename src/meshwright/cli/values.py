"""What the options accept: whole numbers, lists of them, words and lists of words."""

from __future__ import annotations

from collections.abc import Sequence

import click

from meshwright.cli.failures import shortened
from meshwright.errors import UsageError


def _flag(param: click.Parameter | None) -> str:
    return param.opts[0] if param is not None else ""


def whole_number(text: str, *, where: str) -> int:
    """A positive whole number as people write it.

    Raises:
        UsageError: it is none.
    """
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value < 1:
        raise UsageError(
            f"{shortened(repr(text), 60)} is no positive whole number",
            where=where,
            allowed="a whole number of at least 1",
            fix="write it in digits",
        )
    return value


class Count(click.ParamType):
    """One positive whole number."""

    name = "n"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> int:
        """Parse one number."""
        del ctx
        return value if isinstance(value, int) else whole_number(str(value), where=_flag(param))


class Counts(click.ParamType):
    """Positive whole numbers with commas between them."""

    name = "n[,n…]"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, ...]:
        """Parse the list; a number given twice counts once."""
        del ctx
        if isinstance(value, tuple):
            return value
        numbers = (whole_number(part.strip(), where=_flag(param)) for part in str(value).split(","))
        return tuple(dict.fromkeys(numbers))


class Words(click.ParamType):
    """Words of a fixed set, with commas between them."""

    def __init__(self, known: Sequence[str], *, name: str = "word[,word…]") -> None:
        self.known = tuple(known)
        self.name = name

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, ...]:
        """Parse the list; case and ``_`` for ``-`` do not matter."""
        del ctx
        if isinstance(value, tuple):
            return value
        by_spelling = {word.replace("_", "-"): word for word in self.known}
        found: dict[str, None] = {}
        for part in str(value).split(","):
            word = by_spelling.get(part.strip().casefold().replace("_", "-"))
            if word is None:
                raise UsageError(
                    f"{shortened(repr(part.strip()), 60)} is not known here",
                    where=_flag(param),
                    allowed=", ".join(self.known),
                    fix="use one of these, or several with commas between them",
                )
            found[word] = None
        return tuple(found)


class Word(Words):
    """One word of a fixed set."""

    def __init__(self, known: Sequence[str]) -> None:
        super().__init__(known, name="word")

    def convert(  # type: ignore[override]
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> str:
        """Parse the word."""
        found = super().convert(value, param, ctx)
        if len(found) != 1:
            raise UsageError(
                f"{len(found)} values for one strategy",
                where=_flag(param),
                allowed=f"one of {', '.join(self.known)}",
                fix="give one value; `meshwright plan` takes lists",
            )
        return found[0]


class AxisOrders(click.ParamType):
    """Mesh axes joined by ``-``, innermost first; several with commas between them."""

    name = "order[,order…]"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[tuple[str, ...], ...]:
        """Parse the list and check every order."""
        del ctx
        if isinstance(value, tuple):
            return value
        from meshwright.strategy import MESH_AXES, check_axis_order

        orders = []
        for part in str(value).split(","):
            order = tuple(shortened(part.strip().casefold(), 80).split("-"))
            if sorted(order) != sorted(MESH_AXES):
                check_axis_order(order)
            orders.append(order)
        del param
        return tuple(dict.fromkeys(orders))


class Seconds(click.ParamType):
    """A finite, positive number of seconds."""

    name = "s"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Parse the number."""
        del ctx
        try:
            seconds = float(str(value))
        except ValueError:
            seconds = 0.0
        if not 0.0 < seconds < float("inf"):
            raise UsageError(
                f"{shortened(repr(value), 60)} is no positive number of seconds",
                where=_flag(param),
                allowed="a finite number above 0",
                fix="write it in digits, such as 2.5",
            )
        return seconds
