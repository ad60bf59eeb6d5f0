"""Errors as a user sees them: one screen on stderr, or one object on stdout."""

from __future__ import annotations

import json
import os
import shutil
import sys
import textwrap
import traceback
from collections.abc import Sequence
from typing import TextIO

import click

from meshwright.errors import MeshwrightError

EXIT_BUG = 1
EXIT_USAGE = 2
EXIT_INFEASIBLE = 3
EXIT_INTERRUPTED = 130

#: One screen, and what a field of a message may take of it.
MAX_LINES = 24
MAX_CHARS = {"what": 480, "where": 240, "allowed": 480, "fix": 960}


def wants_json(args: Sequence[str]) -> bool:
    """Whether errors go to stdout as an object, known even when the rest does not parse."""
    before = args[: args.index("--")] if "--" in args else args
    return "--json" in before


def shortened(text: str, limit: int) -> str:
    """One line of printable text of at most ``limit`` characters."""
    flat = " ".join(text[: 4 * limit].split())
    clean = "".join(c if c.isprintable() else "?" for c in flat)
    return clean if len(clean) <= limit and len(text) <= 4 * limit else clean[: limit - 1] + "…"


def report_error(error: MeshwrightError, *, as_json: bool) -> int:
    """Print an error for its user and return its exit code."""
    parts = {
        name: shortened(getattr(error, name), limit)
        for name, limit in MAX_CHARS.items()
        if getattr(error, name)
    }
    if as_json:
        _print_object(type(error).__name__, parts)
        if error.exit_code == EXIT_INFEASIBLE:
            return error.exit_code
    _print_parts(parts)
    return error.exit_code


def report_click(error: click.ClickException, *, as_json: bool) -> int:
    """Print what click found wrong with the arguments, in the form of our own errors."""
    parts = {
        "what": shortened(_lowered(error.format_message()), MAX_CHARS["what"]),
        "where": "command line",
    }
    context = getattr(error, "ctx", None)
    if context is not None:
        parts["fix"] = f"see `{context.command_path} --help`"
    if as_json:
        _print_object("UsageError", parts)
    _print_parts(parts)
    return EXIT_USAGE


def report_bug(error: Exception, *, as_json: bool) -> int:
    """Say that we are at fault; the traceback only when it is asked for."""
    if os.environ.get("MESHWRIGHT_DEBUG") == "1":
        traceback.print_exception(error, file=sys.stderr)
    place = traceback.extract_tb(error.__traceback__)
    at = f"{os.path.basename(place[-1].filename)}:{place[-1].lineno}" if place else "start"  # noqa: PTH119
    parts = {
        "what": "this is a bug in meshwright: "
        + shortened(f"{type(error).__name__}: {error}", MAX_CHARS["what"]),
        "where": at,
        "fix": "run again with MESHWRIGHT_DEBUG=1, and report the command and what it prints",
    }
    if as_json:
        _print_object("Bug", parts)
    _print_parts(parts)
    return EXIT_BUG


def report_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Show a warning as one line on stderr; takes the place of ``warnings.showwarning``."""
    del category, filename, lineno, file, line
    click.echo(f"note: {shortened(str(message), MAX_CHARS['fix'])}", err=True)


def _lowered(text: str) -> str:
    """Click begins its sentences with capitals and ends them with a stop."""
    return (text[:1].lower() + text[1:]).rstrip(".")


def _print_object(kind: str, parts: dict[str, str]) -> None:
    fields = {name: parts.get(name, "") for name in MAX_CHARS}
    click.echo(json.dumps({"error": {"type": kind, **fields}}, ensure_ascii=False, indent=2))


def _print_parts(parts: dict[str, str]) -> None:
    width = max(40, min(shutil.get_terminal_size((100, 24)).columns, 120))
    labels = {"what": "error:   ", "where": "where:   ", "allowed": "allowed: ", "fix": "fix:     "}
    lines: list[str] = []
    for name, text in parts.items():
        lines += textwrap.wrap(
            text,
            width,
            initial_indent=labels[name],
            subsequent_indent=" " * len(labels[name]),
            break_on_hyphens=False,
        )
    if len(lines) > MAX_LINES:
        lines = [*lines[: MAX_LINES - 1], "…"]
    click.echo("\n".join(lines), err=True)
