"""Errors that a user can cause or must know of.

The tree::

    MeshwrightError
    ├── UsageError                exit code 2: the request is wrong
    │   ├── ModelError            a model description cannot be read or built
    │   │   └── UnknownModelError
    │   ├── ClusterError          a cluster description cannot be read or built
    │   │   └── UnknownDeviceError
    │   ├── WorkloadError         batch, sequence, precision, optimizer
    │   ├── StrategyError         a strategy, or a space of them, is contradictory
    │   ├── FileError             a file is missing, too large, or not what it should be
    │   └── MissingExtraError     an optional dependency is needed
    └── InfeasibleError           exit code 3: the request is right, and nothing fits

Every error says *what* is wrong, *where* (a field path, a flag or a file), what would be
*allowed*, and how to *fix* it. ``assert`` is for our own mistakes only.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import ClassVar


class MeshwrightError(Exception):
    """Base of every error that Meshwright raises for a user.

    Attributes:
        what: one sentence: what is wrong, with the offending value.
        where: the field path, flag or file that holds it (may be empty).
        allowed: what would have been accepted (may be empty).
        fix: what to do about it (may be empty).
    """

    exit_code: ClassVar[int] = 2

    def __init__(self, what: str, *, where: str = "", allowed: str = "", fix: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.allowed = allowed
        self.fix = fix

    def __str__(self) -> str:
        parts = [self.what]
        if self.where:
            parts.append(f"where:   {self.where}")
        if self.allowed:
            parts.append(f"allowed: {self.allowed}")
        if self.fix:
            parts.append(f"fix:     {self.fix}")
        return "\n".join(parts)


class UsageError(MeshwrightError):
    """The request is wrong; exit code 2."""


class ModelError(UsageError):
    """A model description cannot be read or built."""


class UnknownModelError(ModelError):
    """No model of that name is in the catalogue."""


class ClusterError(UsageError):
    """A cluster description cannot be read or built."""


class UnknownDeviceError(ClusterError):
    """No device type of that name is in the catalogue."""


class WorkloadError(UsageError):
    """The workload (batch, sequence, precision, optimizer) is wrong."""


class StrategyError(UsageError):
    """A strategy, or the space of strategies, contradicts itself or its inputs."""


class FileError(UsageError):
    """A file is missing, unreadable, too large, or not of the form expected."""


class MissingExtraError(UsageError):
    """An optional dependency is needed; the fix names the extra to install."""


class InfeasibleError(MeshwrightError):
    """The request is well formed, and no strategy in the space can run; exit code 3."""

    exit_code = 3


class AssumptionWarning(UserWarning):
    """Something was assumed because the input did not say; the text says what."""


def nearest(name: str, known: Iterable[str], *, count: int = 3) -> tuple[str, ...]:
    """The known names closest to ``name``, for "did you mean" messages.

    >>> nearest("H10", ["H100", "H200", "A100"])
    ('H100', 'H200', 'A100')
    """
    by_folded = {candidate.casefold(): candidate for candidate in known}
    close = difflib.get_close_matches(name.casefold(), by_folded, n=count, cutoff=0.4)
    return tuple(by_folded[folded] for folded in close)
