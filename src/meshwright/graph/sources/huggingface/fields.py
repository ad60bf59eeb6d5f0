"""Single fields of a ``config.json``, typed and checked."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from meshwright.errors import ModelError, nearest
from meshwright.graph.sources.huggingface.values import is_finite, shown

#: No dimension of a real model comes near it; a larger value is a typing error.
MAX_SIZE = 2**31
#: Bounds the work of building and planning a model; DeepNet (arXiv:2203.00555) has 1,000.
MAX_LAYERS = 10_000


class FieldReader:
    """Reads fields by name; a wrong value raises ``ModelError`` with its field path.

    Families spell the same field differently, so every getter takes aliases and reads the
    first that is present. A field that is null counts as absent.
    """

    def __init__(self, values: Mapping[str, object], *, where: str, path: str) -> None:
        self._values = values
        self._where = where
        self._path = path

    @property
    def names(self) -> tuple[str, ...]:
        """Fields that are present and not null."""
        return tuple(str(name) for name, value in self._values.items() if value is not None)

    def has(self, *names: str) -> bool:
        """Whether any of the fields is present and not null."""
        return any(self._values.get(name) is not None for name in names)

    def raw(self, name: str) -> object:
        """The value as parsed, unchecked; ``None`` when absent."""
        return self._values.get(name)

    def error(self, what: str, name: str = "", *, allowed: str = "", fix: str = "") -> ModelError:
        """A ``ModelError`` about the field ``name`` of this object, to be raised."""
        field = f"{self._path}{name}".rstrip(".")
        where = f"{self._where}: {field}" if field else self._where
        return ModelError(what, where=where, allowed=allowed, fix=fix)

    # -- integers --------------------------------------------------------------------------

    def positive(self, *names: str, default: int | None = None, limit: int = MAX_SIZE) -> int:
        """A positive integer; without a ``default`` the field is needed."""
        name = self._present(names)
        if name is None:
            if default is not None:
                return default
            raise self._missing(names, "a positive integer")
        return self._integer(name, least=1, limit=limit)

    def layers(self, *names: str, default: int | None = None) -> int:
        """A positive number of layers."""
        return self.positive(*names, default=default, limit=MAX_LAYERS)

    def optional(self, *names: str) -> int | None:
        """A positive integer, or ``None`` when absent or null."""
        name = self._present(names)
        return None if name is None else self._integer(name, least=1, limit=MAX_SIZE)

    def count(self, *names: str, default: int = 0, limit: int = MAX_SIZE) -> int:
        """An integer that may be zero."""
        name = self._present(names)
        return default if name is None else self._integer(name, least=0, limit=limit)

    def numbers(self, *names: str, length: int | None = None) -> tuple[int, ...] | None:
        """A list of integers from zero up, or ``None`` when absent.

        Args:
            names: of the field, and its aliases.
            length: that the list must have, when it has one entry per layer.
        """
        name = self._present(names)
        if name is None:
            return None
        entries = self._entries(name, length)
        return tuple(
            self._checked(entry, f"{name}[{i}]", least=0, limit=MAX_SIZE)
            for i, entry in enumerate(entries)
        )

    # -- other kinds -----------------------------------------------------------------------

    def flag(self, *names: str, default: bool = False) -> bool:
        """True or false."""
        name = self._present(names)
        if name is None:
            return default
        value = self._values[name]
        if not isinstance(value, bool):
            raise self.error(
                f"{name} is {shown(value)}",
                name,
                allowed="true or false",
                fix=f"set {name} to true or false",
            )
        return value

    def number(self, *names: str, default: float | None = None) -> float:
        """A finite number from zero up; without a ``default`` the field is needed."""
        name = self._present(names)
        if name is None:
            if default is not None:
                return default
            raise self._missing(names, "a number")
        value = self._values[name]
        good = isinstance(value, int | float) and not isinstance(value, bool)
        if not good or not is_finite(value) or value < 0:  # type: ignore[operator]
            raise self.error(
                f"{name} is {shown(value)}",
                name,
                allowed="a finite number from 0 up",
                fix=f"correct {name}",
            )
        return float(value)  # type: ignore[arg-type]

    def text(self, *names: str, default: str = "") -> str:
        """A string."""
        name = self._present(names)
        if name is None:
            return default
        value = self._values[name]
        if not isinstance(value, str):
            raise self.error(
                f"{name} is {shown(value)}", name, allowed="a string", fix=f"correct {name}"
            )
        return value

    def choice(self, *names: str, allowed: Collection[str], default: str | None = None) -> str:
        """One of the strings in ``allowed``; without a ``default`` the field is needed."""
        name = self._present(names)
        if name is None:
            if default is not None:
                return default
            raise self._missing(names, " or ".join(sorted(allowed)))
        value = self.text(name)
        if value not in allowed:
            raise self._no_choice(value, name, allowed)
        return value

    def texts(
        self, *names: str, length: int | None = None, allowed: Collection[str] | None = None
    ) -> tuple[str, ...] | None:
        """A list of strings (``layer_types``), or ``None`` when absent."""
        name = self._present(names)
        if name is None:
            return None
        entries = self._entries(name, length)
        for i, entry in enumerate(entries):
            if not isinstance(entry, str):
                raise self.error(
                    f"{name}[{i}] is {shown(entry)}",
                    f"{name}[{i}]",
                    allowed="a string",
                    fix=f"correct {name}",
                )
            if allowed is not None and entry not in allowed:
                raise self._no_choice(entry, f"{name}[{i}]", allowed)
        return tuple(str(entry) for entry in entries)

    # -- internals -------------------------------------------------------------------------

    def _present(self, names: Sequence[str]) -> str | None:
        return next((name for name in names if self._values.get(name) is not None), None)

    def _missing(self, names: Sequence[str], allowed: str) -> ModelError:
        spelled = f" (also spelled {', '.join(names[1:])})" if len(names) > 1 else ""
        state = "null" if any(name in self._values for name in names) else "missing"
        similar = nearest(names[0], self.names, count=1) if state == "missing" else ()
        hint = f"; did you mean {names[0]} by {similar[0]}?" if similar else ""
        return self.error(
            f"{names[0]}{spelled} is {state}",
            names[0],
            allowed=allowed,
            fix=f"add {names[0]} to the configuration{hint}",
        )

    def _no_choice(self, value: str, name: str, allowed: Collection[str]) -> ModelError:
        return self.error(
            f"{name} is {shown(value)}",
            name,
            allowed=", ".join(sorted(allowed)),
            fix="use one of these",
        )

    def _integer(self, name: str, *, least: int, limit: int) -> int:
        return self._checked(self._values[name], name, least=least, limit=limit)

    def _checked(self, value: object, name: str, *, least: int, limit: int) -> int:
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= limit:
            raise self.error(
                f"{name} is {shown(value)}",
                name,
                allowed=f"an integer from {least} to {limit}",
                fix=f"correct {name}",
            )
        return value

    def _entries(self, name: str, length: int | None) -> Sequence[object]:
        value = self._values[name]
        if not isinstance(value, list | tuple) or len(value) > MAX_LAYERS:
            raise self.error(
                f"{name} is {shown(value)}",
                name,
                allowed=f"a list of at most {MAX_LAYERS} entries",
                fix=f"correct {name}",
            )
        if length is not None and len(value) != length:
            raise self.error(
                f"{name} has {len(value)} entries for {length} layers",
                name,
                allowed=f"{length} entries, one per layer",
                fix="correct the list or the number of layers",
            )
        return value
