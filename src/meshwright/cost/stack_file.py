"""Software stacks in a user's TOML file, such as ``meshwright calibrate -o`` writes.

The file holds one table in the form of ``cost/stacks.toml``: a ``base``, perhaps a ``title``
and an ``attention``, and ``[[NAME.values]]`` with ``kind``, ``text`` and coefficients.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import NoReturn

from meshwright.cost.coefficients import TABLES, Coefficients
from meshwright.cost.stacks import OVERLAP, UNITS, Stack, build_stack, find_stack
from meshwright.errors import FileError, WorkloadError, nearest
from meshwright.files import read_text
from meshwright.provenance import Provenance
from meshwright.strategy import AttentionKernel
from meshwright.units import MIB

LIMIT_BYTES = MIB

#: Shares of something; every other coefficient is a factor, a time or a size.
_SHARES = (
    *OVERLAP,
    *(
        "tensor_hidden",
        "context_hidden",
        "expert_hidden",
        "scan_efficiency",
        "memory_reserve",
        "sharded_master",
    ),
)
#: Coefficients that may be 0 besides the shares: then there is none of what they stand for.
_MAY_BE_ZERO = (
    *("launch_us", "skew_us", "step_fixed_ms", "attention_extra", "attention_half"),
    *("gradient_stage", "step_copy_bytes", "loss_extra_bytes"),
)
#: Factors beyond it, and hosts slower than it in their own unit, are mistyped.
_MOST = 1e6

_FIELDS = {field: key for key, (field, _) in UNITS.items()}
#: Every coefficient by its key in a file.
KEYS = (
    *OVERLAP,
    *(
        _FIELDS.get(f.name, f.name)
        for f in fields(Coefficients)
        if f.name not in ("overlap", "sources")
    ),
)


def load_stack(path: str | Path) -> Stack:
    """The stack in a file; its name is the path, so that plans say how to name it again.

    Raises:
        FileError: the file is missing, too large, or not of that form.
        WorkloadError: its base is no known stack.
    """
    text = read_text(path, limit_bytes=LIMIT_BYTES, kind="software stack")
    return replace(parse_stack(text, where=str(path)), name=str(path))


def parse_stack(text: str, *, where: str) -> Stack:
    """The stack in the text of a file.

    Args:
        text: TOML.
        where: what messages call it.

    Raises:
        FileError: the text is not of that form.
        WorkloadError: its base is no known stack.
    """
    try:
        content = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        _refuse(f"the software stack is no TOML: {error}", where=where, allowed="TOML")
    tables = [(name, table) for name, table in content.items() if isinstance(table, dict)]
    if len(tables) != 1 or len(content) != 1:
        _refuse(
            f"the file has {len(content)} entries at its top",
            where=where,
            allowed="one table, the stack",
        )
    name, row = tables[0]
    base = _base(row, where=f"{where}: {name}.base")
    attention = row.get("attention", base.attention.value)
    kernels = [kernel.value for kernel in AttentionKernel]
    if attention not in kernels:
        _refuse(f"attention is {attention!r}", where=f"{where}: {name}", allowed=", ".join(kernels))
    _check_keys(row, ("title", "base", "attention", "values"), where=f"{where}: {name}")
    title = row.get("title", name)
    if not isinstance(title, str):
        _refuse("the title is no text", where=f"{where}: {name}.title", allowed="text")
    _check_values(row.get("values", []), where=f"{where}: {name}.values")
    return build_stack(name, {**row, "title": title, "attention": attention}, base)


def _base(row: Mapping[str, object], *, where: str) -> Stack:
    base = row.get("base")
    if not isinstance(base, str) or base.casefold().endswith(".toml"):
        _refuse("the stack has no base", where=where, allowed="the name of a stack")
    try:
        return find_stack(base)
    except WorkloadError as error:
        raise WorkloadError(error.what, where=where, allowed=error.allowed, fix=error.fix) from None


def _check_values(entries: object, *, where: str) -> None:
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        _refuse("the values are no list of tables", where=where, allowed="[[NAME.values]]")
    kinds = [kind.value for kind in Provenance]
    for index, entry in enumerate(entries):
        place = f"{where}[{index}]"
        if entry.get("kind") not in kinds:
            _refuse("the values have no kind", where=place, allowed=", ".join(kinds))
        if not isinstance(entry.get("text"), str) or not entry["text"].strip():
            _refuse("the values have no text", where=place, allowed="where they come from")
        _check_keys(entry, ("kind", "text", *KEYS), where=place)
        for key, value in entry.items():
            if key in TABLES:
                if not isinstance(value, dict):
                    _refuse(f"{key} is no table", where=place, allowed="numbers by name")
                for family, factor in value.items():
                    _check_number(key, factor, where=f"{place}.{key}.{family}")
            elif key not in ("kind", "text"):
                _check_number(key, value, where=f"{place}.{key}")


def _check_number(key: str, value: object, *, where: str) -> None:
    zero = key in _SHARES or key in _MAY_BE_ZERO
    most = 1.0 if key in _SHARES else _MOST
    number = isinstance(value, int | float) and not isinstance(value, bool)
    good = number and math.isfinite(float(str(value))) and (zero or float(str(value)) > 0.0)
    if not good or not 0.0 <= float(str(value)) <= most:
        _refuse(
            f"{key} is {str(value)[:60]}",
            where=where,
            allowed=f"a number {'from 0' if zero else 'above 0'} to {most:g}",
        )


def _check_keys(row: Mapping[str, object], known: tuple[str, ...], *, where: str) -> None:
    for key in row:
        if key not in known:
            close = nearest(key, known, count=1)
            _refuse(
                f"unknown key {key[:60]!r}",
                where=where,
                allowed=", ".join(known),
                fix=f"did you mean {close[0]!r}?" if close else "",
            )


def _refuse(what: str, *, where: str, allowed: str, fix: str = "") -> NoReturn:
    raise FileError(
        what,
        where=where,
        allowed=allowed,
        fix=fix or "see docs/calibrate.md, or write the file with `meshwright calibrate -o DIR`",
    )
