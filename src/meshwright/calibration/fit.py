"""Robust least squares with priors on the logarithms of the parameters.

Minimised over ``z = log(parameter)``::

    sum over rows  w_i^2 rho(log(predicted_i / measured_i) / SIGMA)
    + sum over parameters  ((z - z_0) / spread)^2

with ``rho(r) = 2 (sqrt(1 + r^2) - 1)``, quadratic near 0 and linear far from it (soft L1), so
that a row that is far off does not decide. Rows of one source share its errors: with an error
of ``SOURCE_SIGMA`` that all n of them share, their mean knows ``n / (1 + n (SOURCE_SIGMA /
SIGMA)^2)`` times what one row knows, and that is the sum of their squared weights.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from meshwright.calibration.evidence import Evidence
from meshwright.calibration.parameters import Slot, with_values
from meshwright.cost.coefficients import Coefficients
from meshwright.cost.local import FloatArray
from meshwright.cost.stacks import Stack
from meshwright.errors import MissingExtraError
from meshwright.validation import Outcome, Run, predict_runs
from meshwright.validation.inputs import RunInputs

#: Error of one row, and error that the rows of one source share; of the logarithm. Repeated
#: runs of one configuration differ by a few percent. A smaller shared error lets the source
#: with most rows decide, a larger one lets the smallest source weigh as much as any.
SIGMA, SOURCE_SIGMA = 0.07, 0.015
#: Rows of one source that a fit looks at, evenly through the file: more know little more, and
#: take longer.
MAX_ROWS_PER_SOURCE = 40
#: Tangents that are drawn at most, how far a step along one may go, and a step that is the
#: last; of the logarithm.
MAX_STEPS, _REACH, _CLOSE = 2, 0.7, 0.02
#: Distance from the bounds: scipy starts strictly inside.
_MARGIN = 1e-6
#: Step of the derivatives, of the logarithm: a kernel that is as long as its launch has a kink,
#: and a wide step looks across it.
_STEP = 0.03
#: A parameter that changes no predicted time by more than this share of its own change.
_INSENSITIVE = 1e-3

Values = tuple[float, ...]
#: Seconds by inputs, under what differs from the start: name and value of each parameter.
_Found = dict[tuple[tuple[str, str], ...], dict[RunInputs, float]]


class Trials:
    """Predicted times of rows at values of the parameters; each is computed once.

    Args:
        evidence: the rows.
        start: coefficients that the parameters are changed in.
        slots: the parameters.
        spread_scale: of the priors, against the table's.
        found: predictions of other trials with the same start, to be shared.
    """

    def __init__(
        self,
        evidence: Evidence,
        start: Coefficients,
        slots: Sequence[Slot],
        *,
        spread_scale: float = 1.0,
        found: _Found | None = None,
    ) -> None:
        self.evidence = evidence
        self.start = start
        self.slots = tuple(slots)
        self.spread_scale = spread_scale
        self._found = defaultdict(dict) if found is None else found

    @property
    def start_values(self) -> Values:
        """Values before the fit, inside the bounds."""
        return tuple(
            min(max(slot.value(self.start), slot.parameter.low), slot.parameter.high)
            for slot in self.slots
        )

    def narrowed(self, slots: Sequence[Slot]) -> Trials:
        """The same with some of the parameters."""
        return Trials(
            self.evidence, self.start, slots, spread_scale=self.spread_scale, found=self._found
        )

    def _key(self, values: Values) -> tuple[tuple[str, str], ...]:
        pairs = zip(self.slots, values, strict=True)
        found = ((s.label, f"{value:.9g}", f"{s.value(self.start):.9g}") for s, value in pairs)
        return tuple((label, value) for label, value, start in found if value != start)

    def stack(self, values: Values) -> Stack:
        """The stack with these values."""
        software = self.evidence.stack
        given = dict(zip(self.slots, values, strict=True))
        return Stack(
            name=software.name,
            title=software.title,
            attention=software.attention,
            coefficients=with_values(self.start, given),
        )

    def log_step_s(self, values: Values, runs: Sequence[Run]) -> FloatArray:
        """Logarithm of the predicted seconds: shape (rows,)."""
        found = self._found[self._key(values)]
        missing = [run for run in runs if run.inputs not in found]
        if missing:
            predictor = self.evidence.predictor.with_stack(self.stack(values))
            for run in missing:
                found[run.inputs] = predictor(run.inputs).prediction.step_time_s
        return np.log(np.array([found[run.inputs] for run in runs], dtype=np.float64))

    def outcomes(self, values: Values, runs: Sequence[Run]) -> tuple[Outcome, ...]:
        """Rows with their predictions."""
        predictor = self.evidence.predictor.with_stack(self.stack(values))
        return predict_runs(runs, predictor=predictor)


def sensitive_slots(trials: Trials, runs: Sequence[Run]) -> tuple[Slot, ...]:
    """The parameters that the predicted times of some rows depend on."""
    runs, values = thinned(runs), trials.start_values
    before = trials.log_step_s(values, runs)
    found = []
    for index, slot in enumerate(trials.slots):
        if slot.value(trials.start) <= 0.0:
            continue
        up = values[index] * float(np.exp(_STEP)) < slot.parameter.high
        step = _STEP if up else -_STEP
        moved = [*values[:index], values[index] * float(np.exp(step)), *values[index + 1 :]]
        change = np.abs(trials.log_step_s(tuple(moved), runs) - before)
        if float(change.max()) > _INSENSITIVE * _STEP:
            found.append(slot)
    return tuple(found)


def fit(trials: Trials, runs: Sequence[Run]) -> Values:
    """The values that explain some rows best; the same for the same rows.

    Args:
        trials: parameters and their priors.
        runs: rows with a measured time; nothing else of the evidence is looked at.

    Raises:
        MissingExtraError: scipy is not installed.
    """
    solve = _least_squares()
    if not (trials.slots and runs):
        return trials.start_values
    problem = _Objective(trials, runs)
    z = np.clip(problem.prior, problem.low + _MARGIN, problem.high - _MARGIN)
    best, least = z, problem.cost(z)
    for _ in range(MAX_STEPS):
        predicted, slopes = problem.linearised(z)
        # Predictions are nearly linear in the logarithms: the sum is minimised over the
        # tangent, which costs no prediction, and the tangent is drawn anew where that ends.
        found = solve(
            lambda at, p=predicted, s=slopes, z=z: problem.residuals(at, p + s @ (at - z)),
            z,
            bounds=(
                np.maximum(problem.low, z - _REACH),
                np.minimum(problem.high, z + _REACH),
            ),
        )
        moved = float(np.abs(found.x - z).max())
        z = np.clip(found.x, problem.low + _MARGIN, problem.high - _MARGIN)
        cost = problem.cost(z)
        if cost < least:
            best, least = z, cost
        if moved < _CLOSE:
            break
    return tuple(_rounded(float(value)) for value in np.exp(best))


class _Objective:
    """The sum that is minimised, for some rows."""

    def __init__(self, trials: Trials, rows: Sequence[Run]) -> None:
        runs = thinned(rows)
        weights = _weights(rows, runs)
        self._trials, self._runs = trials, runs
        self._measured = np.log(np.array([run.step_s for run in runs], dtype=np.float64))
        self._weight = np.sqrt(np.array([weights[run.quality.source] for run in runs]))
        slots = trials.slots
        self._spread = trials.spread_scale * np.array([s.parameter.spread for s in slots])
        self.prior = np.log(np.array(trials.start_values))
        self.low = np.log(np.array([slot.parameter.low for slot in slots]))
        self.high = np.log(np.array([slot.parameter.high for slot in slots]))

    def predicted(self, z: FloatArray) -> FloatArray:
        """Logarithms of the predicted times: shape (rows,)."""
        return self._trials.log_step_s(tuple(float(v) for v in np.exp(z)), self._runs)

    def linearised(self, z: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Predictions, and their one-sided derivatives: shapes (rows,), (rows, parameters)."""
        at = self.predicted(z)
        columns = []
        for index in range(len(z)):
            step = _STEP if z[index] + _STEP < self.high[index] else -_STEP
            moved = z.copy()
            moved[index] += step
            columns.append((self.predicted(moved) - at) / step)
        return at, np.stack(columns, axis=1)

    def residuals(self, z: FloatArray, predicted: FloatArray) -> FloatArray:
        """What is squared and summed: shape (rows + parameters,)."""
        scaled = (predicted - self._measured) / SIGMA
        soft = np.sign(scaled) * np.sqrt(2.0 * (np.sqrt(1.0 + scaled**2) - 1.0))
        return np.concatenate([self._weight * soft, (z - self.prior) / self._spread])

    def cost(self, z: FloatArray) -> float:
        """The sum."""
        return float((self.residuals(z, self.predicted(z)) ** 2).sum())


def thinned(runs: Sequence[Run]) -> tuple[Run, ...]:
    """At most ``MAX_ROWS_PER_SOURCE`` rows of each source, in order."""
    by_source: dict[str, list[Run]] = defaultdict(list)
    for run in runs:
        by_source[run.quality.source].append(run)
    return tuple(
        rows[index * len(rows) // kept]
        for rows in by_source.values()
        for kept in (min(len(rows), MAX_ROWS_PER_SOURCE),)
        for index in range(kept)
    )


def _weights(rows: Sequence[Run], kept: Sequence[Run]) -> dict[str, float]:
    """Squared weight of a kept row, by source: together what all rows of the source know."""
    all_rows, counts = (Counter(run.quality.source for run in runs) for runs in (rows, kept))
    shared = (SOURCE_SIGMA / SIGMA) ** 2
    return {name: n / (1.0 + n * shared) / counts[name] for name, n in all_rows.items()}


def _rounded(value: float) -> float:
    """Four significant digits: more are not known, and files stay readable."""
    return float(f"{value:.4g}")


def _least_squares() -> Callable[..., Any]:
    try:
        from scipy.optimize import least_squares
    except ImportError:
        raise MissingExtraError(
            "a calibration needs scipy, which is not installed",
            where="meshwright calibrate",
            allowed="an environment with the extra `learn`",
            fix='pip install "meshwright[learn]"',
        ) from None
    found: Callable[..., Any] = least_squares
    return found
