"""The rows that a calibration may learn from: one software stack on one device family."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from meshwright.cost.stacks import Stack, find_stack, stack_names
from meshwright.errors import UsageError
from meshwright.validation import Problem, RowPredictor, RowSkippedError, Run
from meshwright.validation.stacks import profile_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Rows with a measured time, all of one stack and device family.

    Attributes:
        runs: the rows.
        stack: what their software stands for.
        family: of their devices.
        precisions: of their contractions, sorted.
        skipped: rows of the file that cannot be used, by reason (keys of ``SKIPS``).
        predictor: has read the rows already.
    """

    runs: tuple[Run, ...]
    stack: Stack
    family: str
    precisions: tuple[str, ...]
    skipped: dict[str, int]
    predictor: RowPredictor


def evidence_of(
    runs: Iterable[Run], *, stack: str | None = None, device: str | None = None
) -> Evidence:
    """Choose the rows to learn from.

    Args:
        runs: as ``read_runs`` gives them; only their inputs decide.
        stack: name of a stack; needed when the rows are of several.
        device: name of a device or a device family; needed when the rows are of several.

    Raises:
        UsageError: no row is left, or they are of several stacks or families.
        WorkloadError: there is no such stack.
    """
    if stack is not None and stack.casefold().endswith(".toml"):
        raise UsageError(
            "a calibration starts from a stack that comes with Meshwright, not from a file",
            where="--stack",
            allowed=", ".join(stack_names()),
            fix="name the stack that the file has as its base",
        )
    chosen = None if stack is None else find_stack(stack)
    predictor, skipped = RowPredictor(), Counter[str]()
    rows: list[tuple[Run, Problem]] = []
    for run in runs:
        if run.step_s is None:
            skipped["no_result" if run.quality.usable_for("time") else "not_fit_ready"] += 1
            continue
        try:
            rows.append((run, predictor.problem(run.inputs)))
        except RowSkippedError as skip:
            skipped[skip.key] += 1
    kept = [
        (run, problem)
        for run, problem in _on_device(rows, device)
        if chosen is None or _stack_of(problem) == chosen.name
    ]
    _check_one_kind(rows, kept)
    problems = [problem for _, problem in kept]
    return Evidence(
        runs=tuple(run for run, _ in kept),
        stack=find_stack(_stack_of(problems[0])),
        family=_family_of(problems[0]),
        precisions=tuple(sorted({problem.workload.recipe.peak for problem in problems})),
        skipped=dict(skipped.most_common()),
        predictor=predictor,
    )


def _stack_of(problem: Problem) -> str:
    return profile_of(problem.stack).name


def _family_of(problem: Problem) -> str:
    return problem.cluster.groups[0].device.family


def _on_device(
    rows: Sequence[tuple[Run, Problem]], name: str | None
) -> Sequence[tuple[Run, Problem]]:
    """The rows on a device family, or on a device where no family has that name."""
    if name is None:
        return rows
    folded = name.casefold()
    of_family = [row for row in rows if _family_of(row[1]).casefold() == folded]
    return of_family or [
        row for row in rows if row[1].cluster.groups[0].device.name.casefold() == folded
    ]


def _check_one_kind(
    rows: Sequence[tuple[Run, Problem]], kept: Sequence[tuple[Run, Problem]]
) -> None:
    """Raise unless the rows that are kept are of one stack and one device family."""
    kinds = Counter((_stack_of(problem), _family_of(problem)) for _, problem in kept)
    if len(kinds) == 1:
        return
    there = Counter((_stack_of(problem), _family_of(problem)) for _, problem in rows)
    listed = ", ".join(
        f"{stack} on {family} ({count} rows)" for (stack, family), count in there.most_common()
    )
    if kinds:
        (stack, family), _ = kinds.most_common(1)[0]
        raise UsageError(
            f"the rows are of {len(kinds)} kinds, and a calibration is of one",
            where="--measurements",
            allowed=f"one stack on one device family: {listed}",
            fix=f"choose one, such as --stack {stack} --device {family}",
        )
    raise UsageError(
        "no row is left to learn from",
        where="--measurements",
        allowed=listed or "rows with a time, whose inputs can be predicted",
        fix="choose a stack and a device that have rows"
        if rows
        else "see what `meshwright validate FILE` says of the rows that it skips",
    )
