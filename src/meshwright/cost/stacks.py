"""Software stacks: one profile per framework and generation, as data."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from importlib.resources import files

from meshwright.cost.coefficients import TABLES, Coefficients
from meshwright.cost.step import OverlapFactors
from meshwright.errors import WorkloadError, nearest
from meshwright.provenance import Provenance, Source
from meshwright.strategy import AttentionKernel
from meshwright.units import MIB, MICROSECOND

#: The stack that is assumed when none is named.
DEFAULT_STACK = "megatron-core"

#: Keys of the file for the shares of ``OverlapFactors``.
OVERLAP = tuple(f"overlap_{f.name}" for f in fields(OverlapFactors))
#: Keys of the file in other units than the field.
UNITS = {
    "launch_us": ("launch_s", MICROSECOND),
    "skew_us": ("skew_s", MICROSECOND),
    "step_fixed_ms": ("step_fixed_s", 1000 * MICROSECOND),
    "bucket_mib": ("bucket_bytes", float(MIB)),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """A software stack.

    Attributes:
        name, title: short and full name.
        attention: the kernel that it uses unless told otherwise.
        coefficients: what it does with compute, communication and memory.
    """

    name: str
    title: str
    attention: AttentionKernel
    coefficients: Coefficients


@cache
def _stacks() -> dict[str, Stack]:
    text = files("meshwright.cost").joinpath("stacks.toml").read_text(encoding="utf-8")
    rows = tomllib.loads(text)
    found: dict[str, Stack] = {}
    for name, row in rows.items():
        found[name] = build_stack(name, row, found.get(row.get("base", "")))
    return found


def build_stack(name: str, row: Mapping[str, object], base: Stack | None) -> Stack:
    """A stack from its table, which is checked already, and the stack that it inherits from."""
    values: dict[str, float] = {}
    sources: dict[str, Source] = {}
    tables: dict[str, dict[str, float]] = {key: {} for key in TABLES}
    if base is not None:
        values = _flat(base.coefficients)
        tables = {key: dict(getattr(base.coefficients, key)) for key in TABLES}
        sources = {
            key: source.inherited(base.name) for key, source in base.coefficients.sources.items()
        }
    for entry in _tables(row, "values"):
        source = Source(kind=Provenance(str(entry["kind"])), text=str(entry["text"]))
        for key, value in entry.items():
            if key in TABLES:
                assert isinstance(value, dict), f"stacks.toml: {name}.{key} is no table"
                tables[key] |= {str(name): float(share) for name, share in value.items()}
                sources[key] = source
            elif key not in ("kind", "text"):
                assert isinstance(value, int | float), f"stacks.toml: {name}.{key} is no number"
                field, unit = UNITS.get(key, (key, 1.0))
                values[field] = float(value) * unit
                sources["overlap" if field in OVERLAP else field] = source
    return Stack(
        name=name,
        title=str(row["title"]),
        attention=AttentionKernel(str(row["attention"])),
        coefficients=_coefficients(values, tables, sources),
    )


def _tables(row: Mapping[str, object], key: str) -> list[dict[str, object]]:
    found = row.get(key, [])
    assert isinstance(found, list), f"stacks.toml: {key} is no list of tables"
    return found


def _flat(coefficients: Coefficients) -> dict[str, float]:
    flat = {
        f.name: getattr(coefficients, f.name)
        for f in fields(Coefficients)
        if f.name not in ("overlap", "sources", *TABLES)
    }
    return flat | {key: getattr(coefficients.overlap, key[8:]) for key in OVERLAP}


def _coefficients(
    values: Mapping[str, float],
    tables: Mapping[str, Mapping[str, float]],
    sources: Mapping[str, Source],
) -> Coefficients:
    overlap = OverlapFactors(**{key[8:]: values[key] for key in OVERLAP})
    plain = {key: value for key, value in values.items() if key not in OVERLAP}
    return Coefficients(
        overlap=overlap,
        sources=sources,
        family_efficiency=tables["family_efficiency"],
        family_half_scale=tables["family_half_scale"],
        gradient_bytes=tables["gradient_bytes"],
        state_bytes=tables["state_bytes"],
        **plain,
    )


def stack_names() -> tuple[str, ...]:
    """Every stack with a profile."""
    return tuple(_stacks())


def find_stack(name: str) -> Stack:
    """The stack of that name, in any case, or the one in a file whose path ends in ``.toml``.

    Raises:
        WorkloadError: there is none.
        FileError: the file cannot be read, or is no stack.
    """
    if name.casefold().endswith(".toml"):
        from meshwright.cost.stack_file import load_stack

        return load_stack(name)
    known = _stacks()
    if name.casefold() not in known:
        close = nearest(name, known, count=1)
        raise WorkloadError(
            f"unknown software stack {name!r}",
            where="--stack",
            allowed=", ".join(known) + ", or the path of a .toml file",
            fix=f"did you mean {close[0]!r}?" if close else "choose one of the stacks above",
        )
    return known[name.casefold()]


#: Coefficients of the default stack.
MODERN: Coefficients = find_stack(DEFAULT_STACK).coefficients
