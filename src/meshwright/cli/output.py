"""Printing results: one JSON object, or text as wide as the terminal."""

from __future__ import annotations

import json
from typing import Any

import click


def print_json(value: dict[str, Any]) -> None:
    """One object on stdout; numbers are finite."""
    click.echo(json.dumps(value, indent=2, allow_nan=False, ensure_ascii=False))
