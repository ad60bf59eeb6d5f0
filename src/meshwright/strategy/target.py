"""Targets: what a framework can run, as data."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from meshwright.errors import StrategyError, nearest
from meshwright.strategy.stage import ContextAlgorithm, Offload, Recompute


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A framework, and the part of the space that it can express.

    Attributes:
        name, title: short and full name.
        source: snapshot or document that the facts were read from.
        zero_stages, sequence_parallel, recompute, offload, context_algorithms: what it has.
        axis_orders: rank orders that it can lay out, innermost first.
        interleaved: whether it has virtual stages.
        uneven_layers: whether stages may have different numbers of layers.
        zero_with_pipeline: highest ZeRO stage that it combines with a pipeline.
        without: degrees that it lacks altogether, e.g. ``"pipeline"``.
    """

    name: str
    title: str
    source: str
    zero_stages: tuple[int, ...]
    sequence_parallel: tuple[bool, ...]
    recompute: tuple[Recompute, ...]
    offload: tuple[Offload, ...]
    context_algorithms: tuple[ContextAlgorithm, ...]
    axis_orders: tuple[tuple[str, ...], ...]
    interleaved: bool
    uneven_layers: bool
    zero_with_pipeline: int
    without: tuple[str, ...]


@cache
def _targets() -> dict[str, Target]:
    text = files("meshwright.strategy").joinpath("targets.toml").read_text(encoding="utf-8")
    return {name: _target(name, row) for name, row in tomllib.loads(text).items()}


def _target(name: str, row: dict[str, object]) -> Target:
    def values(key: str) -> list[str]:
        found = row[key]
        assert isinstance(found, list), f"targets.toml: {name}.{key} is not a list"
        return [str(value) for value in found]

    return Target(
        name=name,
        title=str(row["title"]),
        source=str(row["source"]),
        zero_stages=tuple(int(v) for v in values("zero_stages")),
        sequence_parallel=tuple(v == "True" for v in values("sequence_parallel")),
        recompute=tuple(Recompute(v) for v in values("recompute")),
        offload=tuple(Offload(v) for v in values("offload")),
        context_algorithms=tuple(ContextAlgorithm(v) for v in values("context_algorithms")),
        axis_orders=tuple(tuple(v.split("-")) for v in values("axis_orders")),
        interleaved=bool(row["interleaved"]),
        uneven_layers=bool(row["uneven_layers"]),
        zero_with_pipeline=int(str(row["zero_with_pipeline"])),
        without=tuple(values("without")),
    )


def target_names() -> tuple[str, ...]:
    """Frameworks that the space can be narrowed to."""
    return tuple(_targets())


def find_target(name: str) -> Target:
    """The target of that name, in any case.

    Raises:
        StrategyError: there is none.
    """
    known = _targets()
    if name.casefold() not in known:
        close = nearest(name, known, count=1)
        raise StrategyError(
            f"unknown target {name!r}",
            where="--target",
            allowed=", ".join(known),
            fix=f"did you mean {close[0]!r}?" if close else "choose one of the targets above",
        )
    return known[name.casefold()]
