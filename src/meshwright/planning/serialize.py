"""``plan.json``: a plan with everything that is needed to make it again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from meshwright.errors import FileError, MeshwrightError
from meshwright.files import read_text
from meshwright.planning.plan_types import Plan
from meshwright.units import MIB

#: Version of the file's form; raised when an older reader would misunderstand it.
SCHEMA_VERSION = 1
FILE_NAME = "plan.json"
#: Far above the largest plan: a thousand stages take about a mebibyte.
LIMIT_BYTES = 256 * MIB
#: Runs are unfolded when a plan is estimated; no model repeats a block so often.
MAX_COUNT = 100_000


def save_plan(plan: Plan, folder: str | Path) -> Path:
    """Write ``plan.json`` into a folder, which is made if it is not there.

    Returns:
        the path of the file.

    Raises:
        FileError: it cannot be written.
    """
    path = Path(folder) / FILE_NAME
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dump_plan(plan), encoding="utf-8")
    except (OSError, ValueError) as error:
        raise FileError(
            f"the plan cannot be written: {getattr(error, 'strerror', None) or error}",
            where=str(path),
            allowed="a folder that can be written to",
            fix="choose another folder",
        ) from None
    return path


def load_plan(path: str | Path) -> Plan:
    """Read a ``plan.json``, or the one in a folder; equal to the plan that was saved.

    Raises:
        FileError: it is missing, too large, no JSON, or not a plan of a known version.
    """
    path = Path(path)
    try:
        is_folder = path.is_dir()
    except (OSError, ValueError):
        is_folder = False
    if is_folder:
        path = path / FILE_NAME
    return parse_plan(read_text(path, limit_bytes=LIMIT_BYTES, kind="plan"), where=str(path))


def dump_plan(plan: Plan) -> str:
    """A plan as JSON text."""
    from importlib.metadata import version

    import msgspec

    content = {
        "schema_version": SCHEMA_VERSION,
        "tool": {"name": "meshwright", "version": version("meshwright")},
        "plan": msgspec.to_builtins(plan),
    }
    return json.dumps(content, indent=1, allow_nan=False, ensure_ascii=False) + "\n"


def parse_plan(text: str, *, where: str) -> Plan:
    """The plan in a JSON text.

    Raises:
        FileError: see ``load_plan``.
    """
    import msgspec

    content = _parsed(text, where)
    found = content.get("schema_version")
    if found != SCHEMA_VERSION or isinstance(found, bool):
        raise FileError(
            f"the plan has schema_version {found!r}",
            where=f"{where}: schema_version",
            allowed=str(SCHEMA_VERSION),
            fix="plan again with this version of meshwright, or install the one that wrote it",
        )
    try:
        plan = msgspec.convert(content.get("plan"), Plan)
    except (msgspec.ValidationError, MeshwrightError) as error:
        raise _not_a_plan(str(error).partition("\n")[0], where) from None
    if not all(1 <= run.count <= MAX_COUNT for run in plan.model.runs):
        raise _not_a_plan(f"a run of blocks has no count from 1 to {MAX_COUNT:,}", where)
    return plan


def _parsed(text: str, where: str) -> dict[str, Any]:
    try:
        content = json.loads(text, parse_constant=_refused)
    except (ValueError, RecursionError) as error:
        raise _not_a_plan(f"it is no JSON ({error})", where) from None
    if not isinstance(content, dict):
        raise _not_a_plan("it is no JSON object", where)
    return content


def _refused(name: str) -> float:
    raise ValueError(f"{name} is no JSON number")


def _not_a_plan(what: str, where: str) -> FileError:
    return FileError(
        f"this is no plan that meshwright wrote: {what}",
        where=where,
        allowed=f"a {FILE_NAME} that `meshwright plan -o DIR` wrote, unchanged",
        fix="write it again with `meshwright plan … -o DIR`",
    )
