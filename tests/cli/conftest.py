"""Running the command line in this process."""

from __future__ import annotations

import io
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass

import pytest

from meshwright.cli import main


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str


def run_main(*args):
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main(args)
    return Outcome(code, out.getvalue(), err.getvalue())


@pytest.fixture(scope="session")
def run():
    """`run("inspect", "4x8xH100")` gives exit code, stdout and stderr."""
    return run_main


@pytest.fixture(autouse=True)
def narrow(monkeypatch):
    """The width of the classic terminal, whatever the tests run in."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.delenv("MESHWRIGHT_DEBUG", raising=False)
