"""What planning returns: plans, and the result of a search."""

from __future__ import annotations

from dataclasses import dataclass

from meshwright.cluster import Cluster
from meshwright.cost.breakdown import CostBreakdown, MemoryBreakdown
from meshwright.cost.stacks import Stack
from meshwright.graph import ModelGraph
from meshwright.provenance import Estimate
from meshwright.strategy import Strategy, Workload


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """What a strategy is predicted to do.

    Attributes:
        step_time: seconds of one optimizer step.
        tokens_per_s_per_device: tokens of the step over its time and the devices.
        mfu: model FLOPs (forward and backward, nothing repeated, what the mask leaves of
            attention) over what the devices could do at their peak in that time.
        hfu: the same with recomputation counted.
        time: what the step is made of.
        memory: peak memory of one device of every stage, in pipeline order.
    """

    step_time: Estimate
    tokens_per_s_per_device: float
    mfu: float
    hfu: float
    time: CostBreakdown
    memory: tuple[MemoryBreakdown, ...]

    @property
    def step_time_s(self) -> float:
        """Seconds of one optimizer step."""
        return self.step_time.value

    @property
    def tightest(self) -> MemoryBreakdown:
        """Memory of the stage with least headroom."""
        return min(self.memory, key=lambda stage: stage.headroom_bytes)

    @property
    def peak_memory_bytes(self) -> float:
        """Most memory that any device needs."""
        return max(stage.total_bytes for stage in self.memory)

    @property
    def headroom_bytes(self) -> float:
        """What the tightest device has left; negative when it does not fit."""
        return self.tightest.headroom_bytes

    @property
    def fits(self) -> bool:
        """Whether every device holds its stage."""
        return self.headroom_bytes >= 0.0

    @property
    def bubble_fraction(self) -> float:
        """Share of the step in which the slowest stage waits for the pipeline."""
        return self.time.bubble_s / self.time.step_s

    @property
    def exposed_fraction(self) -> float:
        """Share of the step that is communication which nothing hides."""
        return self.time.communication_s / self.time.step_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A strategy for a model on a cluster, with what it is predicted to do.

    Holds everything that is needed to estimate it again.
    """

    model: ModelGraph
    cluster: Cluster
    workload: Workload
    strategy: Strategy
    stack: Stack
    prediction: Prediction
    assumptions: tuple[str, ...] = ()

    def __str__(self) -> str:
        from meshwright.planning.words import plan_sentence

        return plan_sentence(self)

    def _repr_html_(self) -> str:
        from meshwright.planning.notebook import plan_html

        return plan_html(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class ParetoPoint:
    """A strategy that no other beats in both time and memory."""

    strategy: Strategy
    step_time_s: float
    peak_memory_bytes: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Exclusion:
    """How many candidates one rule excluded, and why."""

    rule: str
    reason: str
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanResult:
    """The answer of a search.

    Attributes:
        best: the fastest plan that fits.
        alternatives: the next ones, by time.
        pareto: plans that trade time for memory, by time.
        candidates: size of the space; ``evaluated`` of them were computed completely.
        excluded: what the rules dropped, by rule.
        lower_bound_s: no strategy in the space is faster.
        search_s: wall-clock seconds of tables and search.
        complete: false when the search was stopped early; then the bound is the roofline.
    """

    best: Plan
    alternatives: tuple[Plan, ...]
    pareto: tuple[ParetoPoint, ...]
    candidates: int
    evaluated: int
    excluded: tuple[Exclusion, ...]
    lower_bound_s: float
    search_s: float
    complete: bool

    @property
    def gap(self) -> float:
        """How far the best plan can be from the optimum of the space, relative to the bound."""
        # The search and the prediction add the same terms up in another order.
        return max(0.0, self.best.prediction.step_time_s / self.lower_bound_s - 1.0)

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What was assumed, each a full sentence."""
        return self.best.assumptions

    def __str__(self) -> str:
        from meshwright.planning.notebook import result_text

        return result_text(self)

    def _repr_html_(self) -> str:
        from meshwright.planning.notebook import result_html

        return result_html(self)
