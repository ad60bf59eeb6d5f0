"""Looking devices up by name; only the file that holds a device is read."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

from meshwright.cluster.device import Device
from meshwright.cluster.device_table import device_from_table
from meshwright.cluster.table import Table
from meshwright.errors import UnknownDeviceError, nearest

_FOLDER = Path(__file__).parent


def device_names() -> tuple[str, ...]:
    """Names of all catalogue devices, in catalogue order."""
    return tuple(name for names in _index().values() for name in names)


def device_aliases(name: str) -> tuple[str, ...]:
    """Other ways to write a catalogue name."""
    return tuple(alias for names in _index().values() for alias in names.get(name, ()))


def load_device(name: str) -> Device:
    """The catalogue device of that name or alias; case, ``-``, ``_`` and spaces do not matter.

    >>> load_device("h100-sxm").name
    'H100'

    Raises:
        UnknownDeviceError: no such device; offers the nearest names.
    """
    found = _lookup().get(folded(name))
    if found is None:
        shown = name if len(name) <= 40 else name[:37] + "..."
        near = nearest(name[:40], device_names()) or device_names()[:3]
        raise UnknownDeviceError(
            f"no device type is called {shown!r}",
            where="device type",
            allowed=", ".join(device_names()),
            fix=f"did you mean {' or '.join(near)}? Other devices can be described in a TOML file",
        )
    return _build(found)


def folded(name: str) -> str:
    """A name without case and separators."""
    return re.sub(r"[\s_-]+", "", name).casefold()


@cache
def _index() -> dict[str, dict[str, list[str]]]:
    """File name to canonical name to aliases."""
    return _read("index")


@cache
def _lookup() -> dict[str, str]:
    """Folded name or alias to canonical name."""
    return {
        folded(word): name
        for names in _index().values()
        for name, aliases in names.items()
        for word in (name, *aliases)
    }


@cache
def _read(stem: str) -> dict[str, Any]:
    return tomllib.loads((_FOLDER / f"{stem}.toml").read_text(encoding="utf-8"))


@cache
def _build(name: str) -> Device:
    stem = next(stem for stem, names in _index().items() if name in names)
    table = Table(_read(stem)[name], where=f"{stem}.toml:{name}")
    base = load_device(table.text("base")) if "base" in table else None
    return device_from_table(table, name=name, base=base)
