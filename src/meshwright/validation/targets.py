"""What the figures should be, and what others reach."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from meshwright.validation.metrics import Group, group_of
from meshwright.validation.outcomes import Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One aim.

    Attributes:
        name: what is measured, in words.
        value: the figure of a group; ``None`` when it has none.
        goal: the aim, in words.
        least, most: the figure should lie between them.
        scope: part of the name of the sources that it is about; empty for all.
        others: what others publish.
    """

    name: str
    value: Callable[[Group], float | None]
    goal: str
    least: float = float("-inf")
    most: float = float("inf")
    scope: str = ""
    others: str = ""

    def met(self, value: float | None) -> bool | None:
        """Whether a figure meets it; ``None`` when there is no figure."""
        return None if value is None else self.least <= value <= self.most


def target_values(outcomes: Sequence[Outcome]) -> list[tuple[Target, float | None]]:
    """Every target with its figure over the rows that it is about."""
    groups = {
        scope: group_of(scope or "all", [o for o in outcomes if scope in o.run.quality.source])
        for scope in {target.scope for target in TARGETS}
    }
    return [(target, target.value(groups[target.scope])) for target in TARGETS]


def oom_right(group: Group) -> float | None:
    """Share of stated outcomes that were predicted."""
    oom = group.memory.oom
    total = oom.ran_fits + oom.ran_oom + oom.oom_fits + oom.oom_oom
    return (oom.ran_fits + oom.oom_oom) / total if total else None


def _oom_missed(group: Group) -> float | None:
    return None if oom_right(group) is None else float(group.memory.oom.oom_fits)


#: vTrain (Bang et al. 2024) on one node and on several; Calculon (Isaev et al. 2023) on eight
#: points; SimuMax 1.2 on its own rows; AMP (Li et al. 2022) on three kinds of cluster.
TARGETS = (
    Target(
        name="median error of step time",
        value=lambda group: group.time.median_ape,
        goal="at most 4 %",
        most=0.04,
        others="vTrain 8.4 % and 14.7 %, Calculon 3.65 %, SimuMax 5.6 % (means)",
    ),
    Target(
        name="mean error of step time",
        value=lambda group: group.time.mape,
        goal="at most 7 %",
        most=0.07,
    ),
    Target(
        name="runs inside the interval",
        value=lambda group: group.time.coverage,
        goal="90 % ± 3 %",
        least=0.87,
        most=0.93,
    ),
    Target(
        name="mean error of memory",
        value=lambda group: group.memory.mape,
        goal="at most 4 %",
        most=0.04,
        others="SimuMax 0.5 % on one stack",
    ),
    Target(
        name="memory below the measured",
        value=lambda group: group.memory.worst_under,
        goal="at most 3 %",
        most=0.03,
    ),
    Target(
        name="out-of-memory outcomes right",
        value=oom_right,
        goal="at least 95 %",
        least=0.95,
    ),
    Target(
        name="plans said to fit that ran out",
        value=_oom_missed,
        goal="none",
        most=0.0,
    ),
    Target(
        name="lowest rank correlation",
        value=lambda group: group.ranking.spearman_min,
        goal="at least 0.95",
        least=0.95,
        others="AMP 0.94, 0.85, 0.39",
    ),
    Target(
        name="mean regret, vTrain's sweeps",
        scope="vTrain",
        value=lambda group: group.ranking.regret_mean,
        goal="at most 0.5 %",
        most=0.005,
        others="five terms and trees: 1.0 %",
    ),
    Target(
        name="worst regret, vTrain's sweeps",
        scope="vTrain",
        value=lambda group: group.ranking.regret_max,
        goal="at most 10 %",
        most=0.10,
        others="the same: 42 %",
    ),
    Target(
        name="best picked, vTrain's sweeps",
        scope="vTrain",
        value=lambda group: group.ranking.top1,
        goal="at least 92 %",
        least=0.92,
        others="the same: 89 %",
    ),
)
