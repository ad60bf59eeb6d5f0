"""The command line: ``meshwright plan``, ``estimate``, ``inspect``."""

from __future__ import annotations

from meshwright.cli.app import cli, main

__all__ = ["cli", "main"]
