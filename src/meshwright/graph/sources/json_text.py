"""JSON text as a mapping, with every way in which it can be wrong turned into a message."""

from __future__ import annotations

import json
from collections.abc import Mapping

from meshwright.errors import ModelError


def parse_object(text: str, *, where: str) -> Mapping[str, object]:
    """The JSON object that ``text`` holds.

    Stricter than Python's own reader: a name given twice, ``NaN`` and ``Infinity`` are
    refused.

    Args:
        text: the whole document.
        where: what the messages call it.

    Raises:
        ModelError: it is not JSON, or not an object.
    """

    def refuse_constant(name: str) -> object:
        raise ModelError(
            f"{name} is not a JSON number",
            where=where,
            allowed="finite numbers",
            fix=f"replace {name} by a number, or by null",
        )

    def unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
        values = dict(pairs)
        if len(values) != len(pairs):
            names = [name for name, _ in pairs]
            twice = next(name for name in values if names.count(name) > 1)
            raise ModelError(
                f"the field {twice!r} is given twice",
                where=where,
                allowed="each field once per object",
                fix="remove one of the two",
            )
        return values

    try:
        value = json.loads(text, parse_constant=refuse_constant, object_pairs_hook=unique)
    except json.JSONDecodeError as error:
        raise ModelError(
            f"this is not JSON: {error.msg} (line {error.lineno}, column {error.colno})",
            where=where,
            allowed="one JSON object",
            fix="correct the text at that place",
        ) from None
    except RecursionError:
        raise _beyond("it is nested too deeply", where) from None
    except ValueError as error:
        raise _beyond(f"a number is too long ({error})", where) from None
    if not isinstance(value, dict):
        raise ModelError(
            f"this is JSON, but {_kind(value)} and not an object",
            where=where,
            allowed="one JSON object with the fields of a config.json",
            fix="give the object itself",
        )
    return value


def _beyond(reason: str, where: str) -> ModelError:
    return ModelError(
        f"this JSON cannot be read: {reason}",
        where=where,
        allowed="the config.json of a model",
        fix="check that it is the right file",
    )


def _kind(value: object) -> str:
    if isinstance(value, list):
        return "a list"
    return "a string" if isinstance(value, str) else f"the value {json.dumps(value)}"
