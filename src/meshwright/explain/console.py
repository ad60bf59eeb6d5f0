"""A console of a sensible width, and text that breaks well."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.table import Table
from rich.text import Text

#: Widths that the tables are made for.
MIN_WIDTH, MAX_WIDTH = 60, 200

_UNIT = re.compile(
    r"(?<=\d) (?=(?:s|ms|µs|ns|B|[KMGT]iB|[kMGTP]?FLOPs?|[kMGTP]?B/s|%|tokens/s)(?:\b|$|\W))"
)
_NO_BREAK = "\N{NO-BREAK SPACE}"


@contextmanager
def opened(console: Console | None) -> Iterator[Console]:
    """A console to print to; what tables leave at the ends of lines is taken away.

    Args:
        console: another than one on stdout.
    """
    console = console or Console(highlight=False)
    console.width = min(max(console.width, MIN_WIDTH), MAX_WIDTH)
    with console.capture() as capture:
        yield console
    lines = (line.rstrip() for line in capture.get().split("\n"))
    console.file.write("\n".join(lines))
    console.file.flush()


def paragraph(console: Console, text: str, *, first: str = "", rest: str = "") -> str:
    """Text at the width of the console; a number is never torn from its unit."""
    filled = textwrap.fill(
        _UNIT.sub(_NO_BREAK, text),
        console.width,
        initial_indent=first,
        subsequent_indent=rest,
        break_on_hyphens=False,
    )
    return filled.replace(_NO_BREAK, " ")


def print_bold(console: Console, text: str) -> None:
    """A sentence or heading."""
    console.print(Text(paragraph(console, text), style="bold"))


def print_text(console: Console, text: str) -> None:
    """A sentence."""
    console.print(Text(paragraph(console, text)))


def print_section(console: Console, title: str, lines: Iterable[str]) -> None:
    """A heading and sentences, each with a hanging indent."""
    console.print()
    print_bold(console, title)
    for line in lines:
        console.print(Text(paragraph(console, line, first="  - ", rest="    ")))


def print_commands(console: Console, title: str, commands: Iterable[str]) -> None:
    """A heading and commands, which must survive copying: no line breaks of ours."""
    console.print()
    print_bold(console, title)
    for command in commands:
        console.print(Text(f"  {command}"), soft_wrap=True)


def bare_table(*, show_header: bool = True) -> Table:
    """Columns with space between them and no lines."""
    return Table(
        box=None,
        padding=(0, 2, 0, 0),
        header_style="bold",
        pad_edge=False,
        show_header=show_header,
    )
