"""How well predictions agree with what was measured.

All figures are of rows that are used. ``ape`` is the absolute percentage error,
``|predicted / measured - 1|``.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from meshwright.cost.local import FloatArray
from meshwright.validation.memory import measured_bytes, predicted_bytes
from meshwright.validation.outcomes import Outcome

#: A rank correlation over fewer configurations says little.
MIN_RANKED = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeMetrics:
    """Step time; ``None`` where no row has one.

    Attributes:
        median_ape, mape: median and mean of the absolute percentage error.
        bias: geometric mean of predicted over measured, minus one.
        coverage: share of rows inside the stated interval.
    """

    median_ape: float | None = None
    mape: float | None = None
    bias: float | None = None
    coverage: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OomMatrix:
    """What happened, and what was predicted: ``oom_fits`` ran out though we said it fits."""

    ran_fits: int = 0
    ran_oom: int = 0
    oom_fits: int = 0
    oom_oom: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryMetrics:
    """Peak memory.

    Attributes:
        mape: mean absolute percentage error; ``None`` where no row has a measurement.
        worst_under: by how much the prediction lies below the measurement at worst, as a
            share of the measurement.
        oom: outcomes, of the rows that state one.
    """

    mape: float | None = None
    worst_under: float | None = None
    oom: OomMatrix


@dataclass(frozen=True, slots=True, kw_only=True)
class RankingMetrics:
    """How the configurations of one sweep are ordered.

    Attributes:
        sweeps: sweeps of two configurations or more.
        spearman_mean, spearman_min: rank correlation over sweeps of ``MIN_RANKED`` or more.
        top1: share of sweeps whose fastest configuration is the one that we would pick.
        regret_mean, regret_max: how much slower our pick was than the fastest.
    """

    sweeps: int = 0
    spearman_mean: float | None = None
    spearman_min: float | None = None
    top1: float | None = None
    regret_mean: float | None = None
    regret_max: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """A group of rows with its figures.

    Attributes:
        name: ``"all"``, or the value that the rows share.
        rows: how many are used.
        skipped: how many are not, by reason.
    """

    name: str
    rows: int
    skipped: dict[str, int]
    time: TimeMetrics
    memory: MemoryMetrics
    ranking: RankingMetrics


def group_of(name: str, outcomes: Sequence[Outcome]) -> Group:
    """The figures of some rows."""
    used = [outcome for outcome in outcomes if outcome.predicted is not None]
    skipped = Counter(outcome.skip for outcome in outcomes if outcome.skip)
    return Group(
        name=name,
        rows=len(used),
        skipped=dict(skipped.most_common()),
        time=time_metrics(used),
        memory=memory_metrics(used),
        ranking=ranking_metrics(used),
    )


def time_metrics(outcomes: Iterable[Outcome]) -> TimeMetrics:
    """Errors of step time over rows that have one."""
    found = [
        (o.prediction.step_time, o.run.step_s)
        for o in outcomes
        if o.prediction is not None and o.run.step_s is not None
    ]
    if not found:
        return TimeMetrics()
    ratios = np.array([estimate.value / measured for estimate, measured in found])
    inside = [estimate.low <= measured <= estimate.high for estimate, measured in found]
    errors = np.abs(ratios - 1.0)
    return TimeMetrics(
        median_ape=float(np.median(errors)),
        mape=float(errors.mean()),
        bias=float(np.exp(np.log(ratios).mean()) - 1.0),
        coverage=float(np.mean(inside)),
    )


def memory_metrics(outcomes: Iterable[Outcome]) -> MemoryMetrics:
    """Errors of peak memory over rows that have one, and outcomes over rows that state one."""
    ratios: list[float] = []
    seen: Counter[str] = Counter()
    for outcome in outcomes:
        if outcome.predicted is None:
            continue
        measured = measured_bytes(outcome.run)
        if measured is not None:
            ratios.append(predicted_bytes(outcome.predicted, outcome.run) / measured)
        if outcome.run.ran_out is not None:
            happened = "oom" if outcome.run.ran_out else "ran"
            said = "fits" if outcome.predicted.prediction.fits else "oom"
            seen[f"{happened}_{said}"] += 1
    oom = OomMatrix(**seen)
    if not ratios:
        return MemoryMetrics(oom=oom)
    return MemoryMetrics(
        mape=float(np.mean(np.abs(np.array(ratios) - 1.0))),
        worst_under=max(0.0, 1.0 - min(ratios)),
        oom=oom,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """Configurations of one task on the same machines: predicted and measured step times."""

    predicted_s: tuple[float, ...]
    measured_s: tuple[float, ...]

    @property
    def spearman(self) -> float:
        """Rank correlation; ties get the mean of their ranks."""
        return spearman(self.predicted_s, self.measured_s)

    @property
    def regret(self) -> float:
        """Measured time of our pick over the best measured one, minus one.

        Of configurations that we predict to be equal, the slowest counts as our pick.
        """
        best = min(self.predicted_s)
        picked = max(m for p, m in zip(self.predicted_s, self.measured_s, strict=True) if p == best)
        return picked / min(self.measured_s) - 1.0


def sweeps_of(outcomes: Iterable[Outcome]) -> list[Sweep]:
    """Rows that differ in their strategy alone, as sweeps of two configurations or more.

    They share source, model, machines, software, precision, task, global batch and sequence
    length. Rows with equal inputs are one configuration, measured several times: the mean.
    """
    found: dict[object, dict[object, list[tuple[float, float]]]] = defaultdict(dict)
    for outcome in outcomes:
        step_s = outcome.run.step_s
        if outcome.prediction is None or step_s is None:
            continue
        i = outcome.run.inputs
        key = (
            *(outcome.run.quality.source, i.architecture, i.hardware, i.software.framework),
            *(i.software.framework_version, i.precision, i.task, i.global_batch, i.seq_len),
        )
        times = (outcome.prediction.step_time_s, step_s)
        found[key].setdefault(i, []).append(times)
    sweeps = []
    for configurations in found.values():
        if len(configurations) > 1:
            means = [np.mean(np.array(times), axis=0) for times in configurations.values()]
            sweeps.append(
                Sweep(
                    predicted_s=tuple(float(mean[0]) for mean in means),
                    measured_s=tuple(float(mean[1]) for mean in means),
                )
            )
    return sweeps


def ranking_metrics(outcomes: Iterable[Outcome]) -> RankingMetrics:
    """How well the configurations of each sweep are ordered."""
    sweeps = sweeps_of(outcomes)
    if not sweeps:
        return RankingMetrics()
    regrets = [sweep.regret for sweep in sweeps]
    ranked = [sweep.spearman for sweep in sweeps if len(sweep.measured_s) >= MIN_RANKED]
    return RankingMetrics(
        sweeps=len(sweeps),
        spearman_mean=float(np.mean(ranked)) if ranked else None,
        spearman_min=min(ranked) if ranked else None,
        top1=sum(regret == 0.0 for regret in regrets) / len(sweeps),
        regret_mean=float(np.mean(regrets)),
        regret_max=max(regrets),
    )


def spearman(first: Sequence[float], second: Sequence[float]) -> float:
    """Rank correlation of two sequences; 0 when one of them is constant.

    >>> spearman([1.0, 2.0, 3.0], [10.0, 30.0, 20.0])
    0.5
    """
    a, b = _ranks(first), _ranks(second)
    a, b = a - a.mean(), b - b.mean()
    scale = math.sqrt(float(a @ a) * float(b @ b))
    return float(a @ b) / scale if scale > 0.0 else 0.0


def _ranks(values: Sequence[float]) -> FloatArray:
    """Ranks from 1 up; equal values share the mean of theirs."""
    array = np.array(values, dtype=np.float64)
    below = (array[:, None] > array[None, :]).sum(axis=1)
    equal = (array[:, None] == array[None, :]).sum(axis=1)
    ranks: FloatArray = below + (equal + 1) / 2.0
    return ranks
