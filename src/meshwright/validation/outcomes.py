"""Predicting the rows of a table."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from multiprocessing import get_context

from meshwright.cluster import Cluster
from meshwright.cost.device_models import DeviceModel, device_models
from meshwright.cost.stacks import Stack
from meshwright.graph import ModelGraph
from meshwright.planning import Prediction
from meshwright.planning.predict import predict
from meshwright.planning.stage_terms import CostCache
from meshwright.search.partitions import BlockCatalog
from meshwright.validation.inputs import RunInputs
from meshwright.validation.problem import Problem, problem_of
from meshwright.validation.runs import Run
from meshwright.validation.skips import RowSkippedError
from meshwright.validation.stacks import profile_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Predicted:
    """What was predicted for a row's inputs.

    Attributes:
        prediction: time and memory.
        stack: profile of the software.
        cluster: its name.
        reserve_bytes: part of the framework's memory that the allocator holds but no tensor
            uses.
    """

    prediction: Prediction
    stack: str
    cluster: str
    reserve_bytes: float


#: Takes inputs, so that it cannot take results; raises ``RowSkippedError`` where it can say
#: nothing.
Predictor = Callable[[RunInputs], Predicted]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """A row with its prediction, or with the reason why there is none.

    Attributes:
        run: the row.
        predicted: ``None`` for a row that is skipped.
        skip: a key of ``SKIPS``; empty for a row that is used.
        detail: the reason, for this row.
    """

    run: Run
    predicted: Predicted | None = None
    skip: str = ""
    detail: str = ""

    @property
    def prediction(self) -> Prediction | None:
        """Time and memory, for a row that is used."""
        return self.predicted.prediction if self.predicted else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """What predictors with different stacks have in common.

    Attributes:
        problems: by the inputs of a row.
        catalogs: by the identity of the model, which is kept alive here.
    """

    problems: dict[RunInputs, Problem] = field(default_factory=dict)
    catalogs: dict[int, tuple[ModelGraph, BlockCatalog]] = field(default_factory=dict)


class RowPredictor:
    """Predicts the inputs of rows; what rows have in common is made once.

    Args:
        stack: predicts every row, in place of the stack that its software stands for.
        made: problems and tables of a predictor with another stack, to be shared.
    """

    def __init__(self, stack: Stack | None = None, *, made: Made | None = None) -> None:
        self._stack = stack
        self._made = made or Made()
        self._models: dict[tuple[int, str], tuple[Cluster, tuple[DeviceModel, ...]]] = {}
        self._costs: dict[tuple[int, int, str], CostCache] = defaultdict(dict)
        self._found: dict[RunInputs, Predicted] = {}

    def __call__(self, inputs: RunInputs) -> Predicted:
        """Predict a row from its inputs alone.

        Raises:
            RowSkippedError: the inputs do not describe a problem that can be predicted.
        """
        if inputs not in self._found:
            self._found[inputs] = self._predict(self.problem(inputs))
        return self._found[inputs]

    def problem(self, inputs: RunInputs) -> Problem:
        """``problem_of(inputs)``, made once.

        Raises:
            RowSkippedError: see ``problem_of``.
        """
        if inputs not in self._made.problems:
            self._made.problems[inputs] = problem_of(inputs)
        return self._made.problems[inputs]

    def with_stack(self, stack: Stack) -> RowPredictor:
        """A predictor with another stack, which shares what depends on no stack."""
        return RowPredictor(stack, made=self._made)

    def _predict(self, problem: Problem) -> Predicted:
        coefficients = (self._stack or profile_of(problem.stack)).coefficients
        model, cluster = problem.model, problem.cluster
        # Keys are identities, which are quick to hash; the values keep their objects alive.
        catalogs = self._made.catalogs
        if id(model) not in catalogs:
            catalogs[id(model)] = model, BlockCatalog(model)
        key = (id(cluster), problem.stack)
        if key not in self._models:
            self._models[key] = cluster, device_models(cluster, coefficients)
        prediction = predict(
            model,
            cluster,
            problem.workload,
            problem.strategy,
            coefficients=coefficients,
            catalog=catalogs[id(model)][1],
            models=self._models[key][1],
            cache=self._costs[id(model), *key],
        )
        return Predicted(
            prediction=prediction,
            stack=self._stack.name if self._stack else problem.stack,
            cluster=cluster.name,
            reserve_bytes=coefficients.memory_reserve * prediction.tightest.capacity_bytes,
        )


def predict_runs(
    runs: Sequence[Run],
    *,
    predictor: Predictor | None = None,
    processes: int = 1,
    on_rows: Callable[[int], object] | None = None,
) -> tuple[Outcome, ...]:
    """Every row with its prediction, in order.

    Args:
        runs: rows; the predictor is given their inputs alone.
        predictor: another than our own model, such as a calibrated one; with several
            processes it must be picklable.
        processes: how many share the work.
        on_rows: called with how many rows are done.
    """
    chosen = predictor or RowPredictor()
    inputs = [run.inputs for run in runs]
    answers = (
        _apart(inputs, chosen, processes)
        if processes > 1 and len(runs) > _PIECE
        else (_answer(row, chosen) for row in inputs)
    )
    outcomes = []
    for run, answer in zip(runs, answers, strict=True):
        outcomes.append(_outcome(run, answer))
        if on_rows is not None:
            on_rows(len(outcomes))
    return tuple(outcomes)


#: Rows that a process takes at a time; neighbours share models and clusters.
_PIECE = 100

_Answer = Predicted | tuple[str, str]


def _answer(inputs: RunInputs, predictor: Predictor) -> _Answer:
    try:
        return predictor(inputs)
    except RowSkippedError as skip:
        return skip.key, skip.detail


def _apart(inputs: list[RunInputs], predictor: Predictor, processes: int) -> Iterator[_Answer]:
    """The answers in order, from several processes."""
    pieces = [inputs[start : start + _PIECE] for start in range(0, len(inputs), _PIECE)]
    with ProcessPoolExecutor(
        processes, mp_context=get_context("spawn"), initializer=_keep, initargs=(predictor,)
    ) as pool:
        for answers in pool.map(_answer_piece, pieces):
            yield from answers


#: The predictor of a process that serves others: what it has made serves later pieces.
_kept: list[Predictor] = []


def _keep(predictor: Predictor) -> None:
    _kept[:] = [predictor]


def _answer_piece(inputs: Iterable[RunInputs]) -> list[_Answer]:
    return [_answer(row, _kept[0]) for row in inputs]


def _outcome(run: Run, answer: _Answer) -> Outcome:
    quality = run.quality
    if not (quality.usable_for("time") or quality.usable_for("memory")):
        return Outcome(run=run, skip="not_fit_ready", detail=quality.check or "not fit_ready")
    if isinstance(answer, tuple):
        return Outcome(run=run, skip=answer[0], detail=answer[1])
    if run.step_s is None and run.memory_gb is None and run.ran_out is None:
        return Outcome(run=run, skip="no_result", detail="no time, memory or outcome")
    return Outcome(run=run, predicted=answer)
