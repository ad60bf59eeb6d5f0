"""The command line: ``meshwright plan``, ``estimate``, ``inspect``."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["main"]


def main(args: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code.

    Args:
        args: what follows the program's name; taken from the process when not given.
    """
    try:  # the import takes long enough to be interrupted
        from meshwright.cli.app import run
    except KeyboardInterrupt:
        return 130
    return run(args)
