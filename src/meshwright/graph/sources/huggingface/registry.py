"""Which function reads which ``model_type``.

A family is one module of this package that registers one or more readers::

    @register("llama", "mistral")
    def llama(r: ConfigReader) -> Architecture: ...

The modules are found by looking into the package, so a new family is a new file and
nothing else. A module whose name begins the model type (``qwen`` for ``qwen3_moe``) is tried
before all the others are imported, which takes some tens of milliseconds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from meshwright.graph.block import Block
from meshwright.graph.sources.huggingface.reader import ConfigReader


@dataclass(frozen=True, slots=True, kw_only=True)
class Architecture:
    """What a family's reader makes of a configuration.

    Attributes:
        family: the structure it was read as, e.g. ``"llama"``.
        blocks: every block in execution order: embedding, layers, head; not yet folded.
        max_seq_length, default_seq_length, vocab_size: as in ``ModelGraph``.
        assumptions: full sentences; those given to ``ConfigReader.assume`` are added.
    """

    family: str
    blocks: tuple[Block, ...]
    max_seq_length: int | None = None
    vocab_size: int | None = None
    default_seq_length: int | None = None
    assumptions: tuple[str, ...] = ()


FamilyReader = Callable[[ConfigReader], Architecture]

_READERS: dict[str, FamilyReader] = {}


def register(*model_types: str) -> Callable[[FamilyReader], FamilyReader]:
    """Make the decorated function the reader of these model types."""

    def add(reader: FamilyReader) -> FamilyReader:
        for model_type in model_types:
            known = _READERS.setdefault(model_type, reader)
            assert known is reader, f"{model_type} has two readers"
        return reader

    return add


_PACKAGE = __name__.rpartition(".")[0]


@cache
def _modules() -> tuple[str, ...]:
    return tuple(module.name for module in iter_modules(import_module(_PACKAGE).__path__))


@cache
def _import_families() -> None:
    for module in _modules():
        import_module(f"{_PACKAGE}.{module}")


def registered() -> tuple[str, ...]:
    """Every model type that has a reader, sorted."""
    _import_families()
    return tuple(sorted(_READERS))


def reader_of(model_type: str) -> FamilyReader | None:
    """The reader of a model type, or ``None``."""
    named_alike = [module for module in _modules() if model_type.startswith(module)]
    for module in sorted(named_alike, key=len, reverse=True):
        import_module(f"{_PACKAGE}.{module}")
        if model_type in _READERS:
            return _READERS[model_type]
    _import_families()
    return _READERS.get(model_type)
