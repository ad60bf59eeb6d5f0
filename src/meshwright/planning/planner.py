"""``plan`` and ``estimate``: the two questions that a user asks."""

from __future__ import annotations

import time
from collections.abc import Mapping

from meshwright.cluster import Cluster, load_cluster
from meshwright.cost.stacks import DEFAULT_STACK, Stack, find_stack
from meshwright.errors import UsageError
from meshwright.graph import ModelGraph
from meshwright.graph.sources import load_model
from meshwright.planning.assumptions import assumptions_of
from meshwright.planning.check import check_strategy, check_workload
from meshwright.planning.flops import roofline_s
from meshwright.planning.plan_types import Exclusion, ParetoPoint, Plan, PlanResult
from meshwright.planning.predict import predict
from meshwright.planning.remedies import explain_misfit
from meshwright.planning.searching import Progress, Searched, distinct_strategies, search_space
from meshwright.search.rules import RULE_INDEX, RULES
from meshwright.search.uniform import UniformSpace
from meshwright.strategy import Space, Strategy, Workload, find_target


def plan(
    model: ModelGraph | str | Mapping[str, object],
    cluster: Cluster | str,
    workload: Workload,
    *,
    space: Space | None = None,
    target: str | None = None,
    top: int = 5,
    stack: Stack | str = DEFAULT_STACK,
    on_progress: Progress | None = None,
) -> PlanResult:
    """Find the fastest way to train a model on a cluster.

    Args:
        model: a graph, or what ``load_model`` reads: a catalogue name, a path, a config.
        cluster: a cluster, or what ``load_cluster`` reads: a shorthand, a path, TOML.
        workload: batch, sequence, precision, optimizer.
        space: what may vary; everything by default.
        target: a framework that must be able to run the answer.
        top: how many plans to return, the best included.
        stack: the software that trains, or its name.
        on_progress: called with the share done; returning false stops the search.

    Raises:
        InfeasibleError: nothing in the space fits in memory.
        UsageError: an input is wrong (see the tree in ``meshwright.errors``).

    Example:
        >>> import meshwright
        >>> from meshwright.strategy import Workload
        >>> work = Workload(global_batch_size=64, seq_length=2048)
        >>> result = meshwright.plan("llama-3.1-8b", "1x8xH100", work)
        >>> result.best.strategy.num_devices
        8
    """
    graph, machines = _loaded(model, cluster)
    software = find_stack(stack) if isinstance(stack, str) else stack
    check_workload(graph, workload)
    asked = space or Space()
    allowed = asked.narrowed(find_target(target)) if target is not None else asked
    started = time.perf_counter()
    searched = search_space(
        graph,
        machines,
        workload,
        allowed,
        coefficients=software.coefficients,
        on_progress=on_progress,
    )
    if not searched.result.best and not searched.result.complete:
        raise UsageError(
            "the search was stopped before it found a plan that fits",
            where="on_progress",
            allowed="a search that runs until it finds one",
            fix="give it more time, or fix some dimensions of the space",
        )
    if not searched.result.best:
        raise explain_misfit(graph, machines, workload, allowed, searched)
    beyond = 0
    if allowed is not asked:
        whole = UniformSpace(graph, machines, workload, asked, software.coefficients)
        beyond = whole.candidates - searched.candidates
    plans = _plans(searched, graph, software, top=top)
    return _result(searched, plans, beyond_target=beyond, search_s=time.perf_counter() - started)


def _result(
    searched: Searched, plans: list[Plan], *, beyond_target: int, search_s: float
) -> PlanResult:
    """The answer; ``beyond_target`` candidates are those that the target cannot express."""
    space, result = searched.space, searched.result
    excluded = list(searched.excluded)
    excluded[RULE_INDEX["target"]] += beyond_target
    best = plans[0]
    bound_s = result.best[0].step_s
    if not result.complete:
        bound_s = roofline_s(best.model, best.cluster, best.workload)
    return PlanResult(
        best=best,
        alternatives=tuple(plans[1:]),
        pareto=tuple(
            ParetoPoint(
                strategy=space.strategy(point),
                step_time_s=point.step_s,
                peak_memory_bytes=point.peak_bytes,
            )
            for point in result.pareto
        ),
        candidates=searched.candidates + beyond_target,
        evaluated=result.evaluated,
        excluded=tuple(
            Exclusion(rule=rule.name, reason=rule.reason, count=count)
            for rule, count in zip(RULES, excluded, strict=True)
            if count
        ),
        lower_bound_s=bound_s,
        search_s=search_s,
        complete=result.complete,
    )


def _plans(searched: Searched, model: ModelGraph, stack: Stack, *, top: int) -> list[Plan]:
    space = searched.space
    return [
        Plan(
            model=model,
            cluster=space.cluster,
            workload=space.workload,
            strategy=strategy,
            stack=stack,
            prediction=predict(
                model,
                space.cluster,
                space.workload,
                strategy,
                coefficients=space.coefficients,
                catalog=space.catalog,
                models=space.models,
            ),
            assumptions=assumptions_of(model, space.cluster, space.workload, strategy, stack=stack),
        )
        for strategy in distinct_strategies(searched, count=top)
    ]


def estimate(
    model: ModelGraph | str | Mapping[str, object],
    cluster: Cluster | str,
    workload: Workload,
    strategy: Strategy,
    *,
    stack: Stack | str = DEFAULT_STACK,
) -> Plan:
    """Predict one given strategy, whether it fits in memory or not.

    Args:
        model, cluster, workload: as for ``plan``.
        strategy: any strategy; its stages need not be equal.
        stack: the software that trains, or its name.

    Raises:
        UsageError: an input is wrong, or the strategy does not agree with the others.
    """
    graph, machines = _loaded(model, cluster)
    check_workload(graph, workload)
    check_strategy(graph, machines, workload, strategy)
    software = find_stack(stack) if isinstance(stack, str) else stack
    return Plan(
        model=graph,
        cluster=machines,
        workload=workload,
        strategy=strategy,
        stack=software,
        prediction=predict(graph, machines, workload, strategy, coefficients=software.coefficients),
        assumptions=assumptions_of(graph, machines, workload, strategy, stack=software),
    )


def _loaded(
    model: ModelGraph | str | Mapping[str, object], cluster: Cluster | str
) -> tuple[ModelGraph, Cluster]:
    graph = model if isinstance(model, ModelGraph) else load_model(model)
    return graph, cluster if isinstance(cluster, Cluster) else load_cluster(cluster)
