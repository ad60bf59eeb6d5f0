"""Run the uniform search, and choose what to show of its answer."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass

from meshwright.cluster import Cluster
from meshwright.cost.coefficients import Coefficients
from meshwright.graph import ModelGraph
from meshwright.search import UniformResult, search_uniform
from meshwright.search.rules import RULES
from meshwright.search.uniform import UniformSpace
from meshwright.strategy import Space, Strategy, Workload

Progress = Callable[[float], bool]

#: Candidates kept per plan that is asked for: many differ in nothing that a user would call
#: another plan.
KEPT_PER_PLAN = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Searched:
    """A space and what the search found in it."""

    space: UniformSpace
    result: UniformResult

    @property
    def candidates(self) -> int:
        """Size of the space."""
        return self.space.candidates

    @property
    def excluded(self) -> tuple[int, ...]:
        """Candidates that each rule excluded, before the core and in it."""
        return tuple(a + b for a, b in zip(self.space.excluded, self.result.excluded, strict=True))


def search_space(
    model: ModelGraph,
    cluster: Cluster,
    workload: Workload,
    space: Space,
    *,
    coefficients: Coefficients,
    top: int = 10,
    on_progress: Progress | None = None,
) -> Searched:
    """Evaluate every candidate of a space."""
    uniform = UniformSpace(model, cluster, workload, space, coefficients)
    if not len(uniform.shapes):  # the rules left nothing to evaluate
        return Searched(space=uniform, result=_nothing())
    result = search_uniform(
        uniform.tables(),
        top_k=top * KEPT_PER_PLAN,
        threads=min(4, os.cpu_count() or 1),
        on_progress=on_progress,
    )
    return Searched(space=uniform, result=result)


def _nothing() -> UniformResult:
    """What a search of an empty space returns."""
    return UniformResult(
        best=(),
        pareto=(),
        excluded=(0,) * len(RULES),
        candidates=0,
        evaluated=0,
        nearest_misfit=None,
        complete=True,
    )


def distinct_strategies(searched: Searched, *, count: int) -> list[Strategy]:
    """The fastest strategies that differ in more than axis order and interleaving."""
    found: dict[tuple[object, ...], Strategy] = {}
    for candidate in searched.result.best:
        strategy = searched.space.strategy(candidate)
        stage = strategy.stages[0]
        key = (
            strategy.pipeline,
            strategy.micro_batch_size,
            stage.tensor,
            stage.context,
            stage.expert,
            stage.expert_tensor,
            stage.zero_stage,
            stage.recompute[0].mode if stage.recompute else None,
            stage.offload,
        )
        found.setdefault(key, strategy)
        if len(found) == count:
            break
    return list(found.values())
