"""Cross-validation: every row is predicted by a fit that has not seen its fold."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass

from meshwright.calibration.fit import Trials, Values, fit
from meshwright.validation import Outcome, Run
from meshwright.validation.metrics import TimeMetrics, time_metrics

#: Fewer sources, or models, than this are not left out one by one.
LEAST_GROUPS = 3
#: More models than this share folds, and rows without either are dealt to so many.
_MOST_MODELS, _ROW_FOLDS = 8, 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Fold:
    """Rows that are left out together.

    Attributes:
        name: what they share.
        runs: the rows.
    """

    name: str
    runs: tuple[Run, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FoldResult:
    """A fold, predicted by a fit to all others.

    Attributes:
        name, rows: of the fold.
        time: errors on its rows, which the fit has not seen.
        values: of the parameters in that fit.
    """

    name: str
    rows: int
    time: TimeMetrics
    values: Values


@dataclass(frozen=True, slots=True, kw_only=True)
class CrossValidation:
    """Errors on rows that were left out.

    Attributes:
        scheme: what was left out each time, in words.
        time: errors over all rows, each predicted by the fit that has not seen it.
        folds: one by one.
    """

    scheme: str
    time: TimeMetrics
    folds: tuple[FoldResult, ...]


def folds_of(runs: Sequence[Run]) -> tuple[str, tuple[Fold, ...]]:
    """What to leave out: a source each time, else a model, else a fifth of the configurations.

    Returns:
        the scheme in words, and its folds; no fold when there is but one configuration.
    """
    sources = source_folds(runs)
    if len(sources) >= LEAST_GROUPS:
        return "one source left out", sources
    models = _grouped(runs, lambda run: run.inputs.architecture.model)
    if len(models) >= LEAST_GROUPS:
        if len(models) <= _MOST_MODELS:
            return "one model left out", models
        return "some models left out", _dealt(models, _MOST_MODELS, "models")
    configurations = _grouped(runs, lambda run: run.inputs)
    if len(configurations) < 2:
        return "nothing to leave out", ()
    return "a part of the configurations left out", _dealt(configurations, _ROW_FOLDS, "rows")


def source_folds(runs: Sequence[Run]) -> tuple[Fold, ...]:
    """The rows of each source."""
    return _grouped(runs, lambda run: run.quality.source)


def _grouped(runs: Iterable[Run], key: Callable[[Run], Hashable]) -> tuple[Fold, ...]:
    found: dict[Hashable, list[Run]] = defaultdict(list)
    for run in runs:
        found[key(run)].append(run)
    return tuple(Fold(name=str(k), runs=tuple(rows)) for k, rows in found.items())


def _dealt(groups: Sequence[Fold], count: int, what: str) -> tuple[Fold, ...]:
    """Whole groups dealt to so many folds in turn."""
    count = min(count, len(groups))
    return tuple(
        Fold(
            name=f"{what}, part {index + 1} of {count}",
            runs=tuple(run for group in groups[index::count] for run in group.runs),
        )
        for index in range(count)
    )


def cross_validate(
    trials: Trials,
    scheme: str,
    folds: Sequence[Fold],
    *,
    on_fold: Callable[[], object] | None = None,
) -> CrossValidation:
    """Fit once per fold to all other rows, and predict the fold.

    Args:
        trials: parameters, priors and rows.
        scheme: name of the folds, in words.
        folds: together all rows.
        on_fold: called after each.
    """
    outcomes: list[Outcome] = []
    results = []
    for fold in folds:
        held = {id(run) for run in fold.runs}  # lines repeat where tables are joined
        values = fit(trials, [run for run in trials.evidence.runs if id(run) not in held])
        predicted = trials.outcomes(values, fold.runs)
        outcomes += predicted
        results.append(
            FoldResult(
                name=fold.name, rows=len(fold.runs), time=time_metrics(predicted), values=values
            )
        )
        if on_fold is not None:
            on_fold()
    return CrossValidation(scheme=scheme, time=time_metrics(outcomes), folds=tuple(results))
