"""Fitting a stack to the rows of a table, and saying how good the fit is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from meshwright.calibration.evidence import Evidence, evidence_of
from meshwright.calibration.fit import Trials, fit, sensitive_slots
from meshwright.calibration.folds import (
    CrossValidation,
    cross_validate,
    folds_of,
    source_folds,
)
from meshwright.calibration.parameters import (
    PARAMETERS,
    Slot,
    default_parameters,
    named_parameters,
    slots_of,
    with_values,
)
from meshwright.calibration.stack_toml import stack_toml
from meshwright.cost.coefficients import Coefficients
from meshwright.cost.stack_file import parse_stack
from meshwright.cost.stacks import Stack
from meshwright.provenance import Provenance
from meshwright.validation import Run
from meshwright.validation.metrics import TimeMetrics, time_metrics

#: Neutral values are further from the truth than values that were fitted to other runs.
_SCRATCH_SPREAD = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One parameter.

    Attributes:
        name: with the device family behind it where it is a factor of one.
        shipped: value of the stack that comes with Meshwright.
        before, after: value where the fit starts, and the fitted one.
    """

    name: str
    shipped: float
    before: float
    after: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """A stack that was fitted to rows, and how good the fit is.

    Attributes:
        base: the stack that it was made from.
        stack: the fitted one.
        text: ``stack.toml``, of which ``stack`` is the content.
        family: of the devices.
        rows: how many were learnt from.
        sources: how many sources they come from.
        skipped: rows that were not used, by reason.
        from_scratch: whether the fit started from neutral values.
        prior_fitted: whether values that it started from are fitted to public runs.
        changes: what was fitted.
        idle: what was to be fitted, but no row depends on it.
        before, after: errors on the same rows; ``after`` is in-sample.
        held_out: errors on rows that the fit had not seen; ``None`` when there is one
            configuration alone, or it was not asked for.
    """

    base: Stack
    stack: Stack
    text: str
    family: str
    rows: int
    sources: int
    skipped: dict[str, int]
    from_scratch: bool
    prior_fitted: bool
    changes: tuple[Change, ...]
    idle: tuple[str, ...]
    before: TimeMetrics
    after: TimeMetrics
    held_out: CrossValidation | None


def calibrate(
    runs: Iterable[Run],
    *,
    stack: str | None = None,
    device: str | None = None,
    parameters: Sequence[str] | None = None,
    from_scratch: bool = False,
    held_out: bool = True,
    origin: str = "a table of runs",
    on_fit: Callable[[int, int], object] | None = None,
) -> Calibration:
    """Fit the coefficients of a stack on a device family to measured runs.

    Args:
        runs: as ``read_runs`` gives them; only inputs and times are looked at.
        stack, device: which rows; needed when they are of several.
        parameters: names to fit; by default what the number of rows can tell.
        from_scratch: start from neutral values, not from the stack's: for rows that the
            stack was fitted to.
        held_out: whether to cross-validate, which takes a fit per fold.
        origin: name of the table, for the written file.
        on_fit: called with how many fits are done, and of how many.

    Raises:
        UsageError: the rows are none or of several kinds, or a parameter is not known.
        MissingExtraError: scipy is not installed.
    """
    evidence = evidence_of(runs, stack=stack, device=device)
    trials, idle = _trials(evidence, parameters, from_scratch=from_scratch)
    scheme, folds = folds_of(evidence.runs) if held_out else ("", ())
    done = 0

    def step() -> None:
        nonlocal done
        done += 1
        if on_fit is not None:
            on_fit(done, 1 + len(folds))

    values = fit(trials, evidence.runs)
    step()
    crossed = cross_validate(trials, scheme, folds, on_fold=step) if folds else None
    base, fitted = evidence.stack, trials.stack(values)
    text = stack_toml(
        fitted.coefficients,
        base,
        fitted=trials.slots,
        others=_all_slots(evidence),
        title=f"{base.title}, calibrated on {evidence.family}",
        source=f"calibrated on {len(evidence.runs)} rows of {origin}",
    )
    return Calibration(
        base=base,
        stack=parse_stack(text, where="stack.toml"),
        text=text,
        family=evidence.family,
        rows=len(evidence.runs),
        sources=len({run.quality.source for run in evidence.runs}),
        skipped=evidence.skipped,
        from_scratch=from_scratch,
        prior_fitted=not from_scratch and _any_fitted(base.coefficients, _all_slots(evidence)),
        changes=tuple(
            Change(
                name=slot.label,
                shipped=slot.value(base.coefficients),
                before=slot.value(trials.start),
                after=after,
            )
            for slot, after in zip(trials.slots, values, strict=True)
        ),
        idle=idle,
        before=time_metrics(trials.outcomes(trials.start_values, evidence.runs)),
        after=time_metrics(trials.outcomes(values, evidence.runs)),
        held_out=crossed,
    )


def leave_one_source_out(
    runs: Iterable[Run],
    *,
    stack: str | None = None,
    device: str | None = None,
    parameters: Sequence[str] | None = None,
    from_scratch: bool = True,
) -> CrossValidation:
    """Errors of a calibration on the rows of each source, fitted to the other sources alone.

    Args:
        runs, stack, device, parameters, from_scratch: see ``calibrate``. With one source
            alone its rows are predicted with the values that a fit starts from.

    Raises:
        UsageError, MissingExtraError: see ``calibrate``.
    """
    evidence = evidence_of(runs, stack=stack, device=device)
    trials, _ = _trials(evidence, parameters, from_scratch=from_scratch)
    return cross_validate(trials, "one source left out", source_folds(evidence.runs))


def _trials(
    evidence: Evidence, names: Sequence[str] | None, *, from_scratch: bool
) -> tuple[Trials, tuple[str, ...]]:
    """What is to be fitted, and the names of what no row depends on."""
    parameters = (
        default_parameters(len(evidence.runs)) if names is None else named_parameters(names)
    )
    shipped = evidence.stack.coefficients
    start = _neutral(shipped, _all_slots(evidence)) if from_scratch else shipped
    scale = _SCRATCH_SPREAD if from_scratch else 1.0
    slots = slots_of(parameters, start, family=evidence.family, precisions=evidence.precisions)
    trials = Trials(evidence, start, slots, spread_scale=scale)
    kept = sensitive_slots(trials, evidence.runs)
    idle = tuple(slot.label for slot in slots if slot not in kept)
    return trials.narrowed(kept), idle


def _all_slots(evidence: Evidence) -> tuple[Slot, ...]:
    return slots_of(
        PARAMETERS,
        evidence.stack.coefficients,
        family=evidence.family,
        precisions=evidence.precisions,
    )


def _neutral(coefficients: Coefficients, slots: Iterable[Slot]) -> Coefficients:
    """Neutral values for all that can be fitted, but for what is 0."""
    neutral = {slot: slot.parameter.neutral for slot in slots if slot.value(coefficients) > 0.0}
    return with_values(coefficients, neutral)


def _any_fitted(coefficients: Coefficients, slots: Iterable[Slot]) -> bool:
    """Whether a value comes from a fit, perhaps by way of another stack."""
    for slot in slots:
        name = "overlap" if slot.parameter.name.startswith("overlap_") else slot.parameter.name
        if slot.key and slot.key not in getattr(coefficients, name):
            continue
        source = coefficients.sources.get(name)
        if source is not None and (
            source.kind is Provenance.FITTED or f"({Provenance.FITTED}:" in source.text
        ):
            return True
    return False
