"""Well-known models as data files, one JSON file per model, each figure with its source.

An entry holds ``name`` (equal to the file's), ``aliases``, ``source`` (of the
configuration), ``parameters`` and, for models with experts, ``active`` (the published
counts as printed, with their source), optional ``notes`` and the ``config`` in the form of
Hugging Face's ``config.json``. A new model is a new file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from meshwright.errors import UnknownModelError, nearest

_FOLDER = Path(__file__).parent

#: Endings and beginnings of names that say how a model was tuned, stored or dated, not what
#: it is.
_TUNED = re.compile(r"(?<=.)-(instruct|chat|thinking|hf|base|it|pt|fp8|bf16|v0\.\d|\d{4})$")
_PREFIX = re.compile(r"^meta-(?=llama)")


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedCount:
    """A count of parameters as its authors print it.

    Attributes:
        printed: with its suffix, e.g. ``"70.6B"``.
        source: where it is printed.
        tables_left_out: how many of the two tables that a token only looks up or ends in
            (token table, logits) the authors leave out of an active count.
    """

    printed: str
    source: str
    tables_left_out: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogEntry:
    """One model of the catalogue.

    Attributes:
        name: canonical, lower case.
        aliases: other names, among them those on Hugging Face.
        source: where the configuration comes from.
        parameters: the published total.
        active: the published count per token, for models with experts.
        notes: what a reader of the figures should know.
        config: the description in the form of ``config.json``.
    """

    name: str
    aliases: tuple[str, ...]
    source: str
    parameters: PublishedCount
    active: PublishedCount | None
    notes: str
    config: Mapping[str, object]


@cache
def catalog_names() -> tuple[str, ...]:
    """Canonical names of all models, sorted.

    >>> "gpt3-175b" in catalog_names()
    True
    """
    return tuple(sorted(path.stem for path in _FOLDER.glob("*.json")))


@cache
def entry(name: str) -> CatalogEntry:
    """The entry of that canonical name."""
    data = json.loads((_FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    return CatalogEntry(
        name=data["name"],
        aliases=tuple(data["aliases"]),
        source=data["source"],
        parameters=PublishedCount(**data["parameters"]),
        active=PublishedCount(**data["active"]) if "active" in data else None,
        notes=data.get("notes", ""),
        config=data["config"],
    )


def find(name: str) -> CatalogEntry | None:
    """The entry called ``name`` in any spelling, or ``None``.

    Case, separators, an organisation before a slash and endings such as ``-Instruct`` do not
    matter.

    >>> find("meta-llama/Llama-3.1-70B-Instruct").name
    'llama-3.1-70b'
    """
    folded = name.casefold()
    if folded in catalog_names():
        return entry(folded)
    canonical = _canonical_names().get(spelling(name))
    return entry(canonical) if canonical else None


def unknown(name: str) -> UnknownModelError:
    """The error for a name that ``find`` does not know, with the nearest that it does."""
    shown = name if len(name) <= 80 else f"{name[:77]}..."
    known = [spelled for each in catalog_names() for spelled in (each, *entry(each).aliases)]
    close = dict.fromkeys(
        found.name for found in map(find, nearest(shown.rpartition("/")[2], known)) if found
    )
    hint = f"did you mean {' or '.join(close)}? " if close else ""
    return UnknownModelError(
        f"there is no model {shown!r}",
        where="model",
        allowed=f"one of {len(catalog_names())} catalogue names, "
        "the path of a config.json or of a directory that holds one, or its text",
        fix=f"{hint}catalogue: {', '.join(catalog_names())}",
    )


def spelling(name: str) -> str:
    """What is left of a name without the parts that do not matter.

    >>> spelling("Qwen/Qwen2.5-7B-Instruct")
    'qwen2.57b'
    """
    last = re.sub(r"[_\s]+", "-", name.strip().casefold()).rpartition("/")[2]
    last = _PREFIX.sub("", last)
    while (shorter := _TUNED.sub("", last)) != last:
        last = shorter
    return last.replace("-", "")


@cache
def _canonical_names() -> Mapping[str, str]:
    names: dict[str, str] = {}
    for name in catalog_names():
        for spelled in (name, *entry(name).aliases):
            known = names.setdefault(spelling(spelled), name)
            assert known == name, f"{spelled} names both {known} and {name}"
    return names
