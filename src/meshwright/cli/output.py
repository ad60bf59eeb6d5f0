"""Printing results as one JSON object, and writing them to files that a user names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from meshwright.errors import FileError


def print_json(value: dict[str, Any]) -> None:
    """One object on stdout; numbers are finite."""
    click.echo(json.dumps(value, indent=2, allow_nan=False, ensure_ascii=False))


def write_text(path: str, text: str, *, flag: str, make_folder: bool = False) -> None:
    """Write a file.

    Args:
        path: where.
        text: its content.
        flag: the option that names it, for the message.
        make_folder: make the folder of the file first.

    Raises:
        FileError: it cannot be written.
    """
    try:
        if make_folder:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_text(text, encoding="utf-8")
    except (OSError, ValueError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise FileError(
            f"the file cannot be written: {reason}",
            where=f"{flag} {path}",
            fix="give a path in a directory that exists and may be written",
        ) from None
