"""Run what the documentation shows, and write down what it prints.

Usage: ``python scripts/run_docs.py [--write] [PAGE ...]``. Three kinds of output in a Markdown
page are checked, and rewritten under ``--write``:

- a ``text`` block after a ``python`` block: what the block prints. The blocks of one page run in
  order and share their names.
- a ``text`` block after ``<!-- run: meshwright ... -->``: what the command prints.
- a table between ``<!-- table: NAME -->`` and ``<!-- end -->``: from ``docs_tables.py``.

A line ``[...]`` stands for any lines, and ``[...]`` within a line for any characters.
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import io
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from docs_tables import TABLES

ROOT = Path(__file__).resolve().parent.parent
ELLIPSIS = "[...]"
COLUMNS = 96

_PART = re.compile(
    r"(?m)^```(?P<language>python|text)\n(?P<body>.*?)^```$"
    r"|^<!-- run: (?P<command>.*?) -->$"
    r"|^<!-- table: (?P<table>[\w-]+) -->\n(?P<rows>.*?)^<!-- end -->$",
    re.DOTALL,
)
_RUNNING_TIME = re.compile(r"(?<=evaluated in )[\d.]+ [^\s:]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """One output of a page.

    Attributes:
        where: page and line, for messages.
        span: of the text in the page.
        expected: what the page shows.
        actual: what it should show, in full.
    """

    where: str
    span: tuple[int, int]
    expected: str
    actual: str


def pages() -> tuple[Path, ...]:
    """Pages that show output."""
    found = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return tuple(page for page in found if "api" not in page.parts)


def outputs(page: Path) -> list[Shown]:
    """Run everything of a page, in order."""
    text = page.read_text(encoding="utf-8")
    names: dict[str, object] = {"__name__": "documentation"}
    printed: str | None = None
    found = []
    for part in _PART.finditer(text):
        where = f"{page.name}:{text.count(chr(10), 0, part.start()) + 1}"
        if part["command"]:
            printed = run_command(part["command"])
        elif part["table"]:
            found.append(_shown(where, part, "rows", TABLES[part["table"]]()))
        elif part["language"] == "python":
            printed = run_python(part["body"], names, where=where)
        elif printed is not None:
            found.append(_shown(where, part, "body", printed))
            printed = None
    return found


def _shown(where: str, part: re.Match[str], group: str, actual: str) -> Shown:
    return Shown(where=where, span=part.span(group), expected=part[group], actual=actual)


def run_python(code: str, names: dict[str, object], *, where: str) -> str:
    """What a block prints."""
    stream = io.StringIO()
    with contextlib.redirect_stdout(stream):
        exec(compile(code, where, "exec"), names)
    return stream.getvalue()


def run_command(line: str) -> str:
    """What ``meshwright ...`` prints on stdout and, where it fails, on stderr."""
    program, *arguments = shlex.split(line)
    assert program == "meshwright", f"not our command: {line}"
    plain = {"COLUMNS": str(COLUMNS), "NO_COLOR": "1", "OMP_NUM_THREADS": "1", "PYTHONUTF8": "1"}
    environment = {k: v for k, v in os.environ.items() if k != "FORCE_COLOR"} | plain
    done = subprocess.run(
        [sys.executable, "-m", "meshwright.cli", *arguments],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    return done.stdout or done.stderr


def matches(expected: str, actual: str) -> bool:
    """Whether an output is what the page shows."""
    pattern = ""
    for line in expected.rstrip("\n").split("\n"):
        if line.strip() == ELLIPSIS:
            pattern += r"(?:.*\n)*?"
        else:
            pattern += r".*?".join(re.escape(piece) for piece in line.split(ELLIPSIS)) + r"[ ]*\n"
    return re.fullmatch(pattern, actual.rstrip("\n") + "\n") is not None


def renewed(expected: str, actual: str) -> str:
    """The output in the place of an old one, cut where the old one was cut."""
    fresh = [_RUNNING_TIME.sub(ELLIPSIS, line.rstrip()) for line in actual.rstrip().split("\n")]
    old = expected.rstrip("\n").split("\n")
    if ELLIPSIS not in (line.strip() for line in old):
        return "\n".join(fresh) + "\n"
    kept: list[str] = []
    start = 0
    for line in old:
        if line.strip() == ELLIPSIS:
            kept.append(line)
            continue
        index = _nearest(line, fresh, start)
        if index is not None:
            kept.append(fresh[index])
            start = index + 1
    return "\n".join(kept) + "\n"


def _nearest(line: str, fresh: list[str], start: int) -> int | None:
    """The next line that is most like the old one."""

    def likeness(index: int) -> float:
        return difflib.SequenceMatcher(None, line, fresh[index]).ratio() - 0.001 * (index - start)

    best = max(range(start, len(fresh)), key=likeness, default=None)
    return best if best is not None and likeness(best) > 0.5 else None


def check(page: Path, *, write: bool, say: Callable[[str], object] = print) -> bool:
    """Whether a page shows what runs; with ``write`` it is made so."""
    text = page.read_text(encoding="utf-8")
    wrong = [shown for shown in outputs(page) if not matches(shown.expected, shown.actual)]
    for shown in wrong:
        say(f"{shown.where} {'rewritten' if write else 'differs'}")
    if write:
        for shown in reversed(wrong):
            start, stop = shown.span
            text = text[:start] + renewed(shown.expected, shown.actual) + text[stop:]
        page.write_text(text, encoding="utf-8")
    return not wrong


def main() -> int:
    """Check or rewrite pages."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="rewrite what differs")
    parser.add_argument("pages", nargs="*", type=Path, help="all pages where none is given")
    options = parser.parse_args()
    chosen = [page.resolve() for page in options.pages] or pages()
    good = [check(page, write=options.write) for page in chosen]
    return 0 if options.write or all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
