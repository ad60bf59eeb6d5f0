"""From whatever a user gives as a model to its graph."""

# ruff: noqa: PTH110, PTH111, PTH112, PTH120 - for a text that is no possible path, os.path answers
# "no" where Path raises.

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from meshwright.errors import FileError, ModelError
from meshwright.files import read_text
from meshwright.graph.catalog import find, unknown
from meshwright.graph.model import ModelGraph
from meshwright.graph.sources.huggingface import load_huggingface
from meshwright.graph.sources.json_text import parse_object
from meshwright.units import MIB

#: The largest published config.json has some tens of kilobytes.
LIMIT_BYTES = 10 * MIB

_CONFIG = "config.json"


def load_model(model: str | Path | Mapping[str, object]) -> ModelGraph:
    """The graph of a model.

    Args:
        model: one of, in the order in which they are tried: a mapping with the fields of a
            ``config.json``; the JSON text of one; a text that can only be a path (``"./x"``,
            ``"x.json"``, ``"there/x"`` where it exists); a catalogue name in any spelling
            (``"llama-3.1-70b"``, ``"meta-llama/Llama-3.1-70B"``); any other path of a
            ``config.json`` or of a directory that holds one.

    Raises:
        UnknownModelError: it is neither a known name nor a path.
        FileError: the file is missing, unreadable or too large.
        ModelError: the description is wrong or incomplete.

    >>> load_model("llama-3.1-70b").parameter_count()
    70553706496
    """
    if isinstance(model, Mapping):
        return _from_mapping(model, source="the given mapping")
    if isinstance(model, Path):
        return _from_path(model)
    if not isinstance(model, str):
        raise ModelError(
            f"a model cannot be made from {type(model).__name__}",
            where="model",
            allowed="a catalogue name, a path, JSON text or a mapping",
            fix="give one of these",
        )
    text = model.strip()
    if not text:
        raise ModelError(
            "the model is an empty text",
            where="model",
            allowed="a catalogue name, the path of a config.json, or its text",
            fix="name a model, for example llama-3.1-70b",
        )
    if text[0] in "{[":
        return _from_text(text)
    if _is_path(text):
        return _from_path(Path(os.path.expanduser(text)))
    found = find(text)
    if found is not None:
        return load_huggingface(found.config, name=found.name, source=found.source)
    if os.path.exists(text):
        return _from_path(Path(text))
    raise unknown(text)


def _is_path(text: str) -> bool:
    """Whether a text is meant as a path even where a model is called alike.

    ``org/model`` is a name unless there is such a file or directory.
    """
    if text.startswith((".", "/", "~", os.sep)) or text.casefold().endswith(".json"):
        return True
    return os.path.dirname(text) != "" and os.path.exists(text)


def _from_path(path: Path) -> ModelGraph:
    if os.path.isdir(path):
        path = _config_in(path)
    text = read_text(path, limit_bytes=LIMIT_BYTES, kind="model description")
    if not text.strip():
        raise ModelError(
            "the model description is empty",
            where=str(path),
            allowed="one JSON object",
            fix="check the file",
        )
    config = parse_object(text, where=str(path))
    name = path.resolve().parent.name if path.name == _CONFIG else path.stem
    return load_huggingface(config, name=name or path.name, source=str(path))


def _config_in(folder: Path) -> Path:
    path = folder / _CONFIG
    if not os.path.lexists(path):
        raise FileError(
            f"this directory holds no {_CONFIG}",
            where=str(folder),
            allowed=f"a directory with a {_CONFIG}, or the path of one",
            fix="check the path",
        )
    return path


def _from_text(text: str) -> ModelGraph:
    if len(text) > LIMIT_BYTES:
        raise ModelError(
            f"the text has {len(text)} characters",
            where="model",
            allowed=f"at most {LIMIT_BYTES}",
            fix="give the text of a config.json",
        )
    return _from_mapping(parse_object(text, where="the JSON text"), source="the JSON text")


def _from_mapping(config: Mapping[str, object], *, source: str) -> ModelGraph:
    names = [config.get(field) for field in ("_name_or_path", "model_type")]
    name = next((name for name in names if isinstance(name, str) and name.strip()), "model")
    return load_huggingface(config, name=name, source=source)
