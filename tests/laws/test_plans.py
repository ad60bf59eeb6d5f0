"""Laws of the best plan: symmetric, repeatable, and monotone in the space."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import meshwright
from meshwright.cluster import load_cluster
from meshwright.errors import InfeasibleError, StrategyError
from meshwright.graph.sources import load_model
from meshwright.planning.predict import predict
from meshwright.search import search_uniform
from meshwright.strategy import (
    AXIS_ORDERS,
    ContextAlgorithm,
    Offload,
    Recompute,
    Space,
    Workload,
    target_names,
)

from ..strategies import (  # noqa: TID252 - importlib mode
    instances,
    llama_config,
    mixtral_config,
    strategies_of,
    uniform,
    uniform_clusters,
    uniform_space,
)

MORE = {
    "virtual_stages": (1, 2, 3, 4),
    "micro_batch_sizes": (1, 2, 3, 4, 8),
    "zero_stages": (0, 1, 2, 3),
    "recompute": tuple(Recompute),
    "offload": tuple(Offload),
    "context_algorithms": tuple(ContextAlgorithm),
    "axis_orders": AXIS_ORDERS,
}


def best_s(instance, space=None, *, top=1, target=None):
    """Time of the best plan, infinite where there is none."""
    try:
        best = meshwright.plan(
            instance.model,
            instance.cluster,
            instance.workload,
            space=space or instance.space,
            stack=instance.stack,
            top=top,
            target=target,
        ).best
    except (InfeasibleError, StrategyError):
        return float("inf")
    return best.prediction.step_time_s


@settings(max_examples=10)
@given(instances(), st.sampled_from(sorted(MORE)), st.data())
def test_one_more_choice_never_makes_the_best_worse(instance, name, data):
    choice = data.draw(st.sampled_from(MORE[name]))
    mine = getattr(instance.space, name)
    wider = replace(instance.space, **{name: tuple(dict.fromkeys((*mine, choice)))})
    assert best_s(instance, wider) <= best_s(instance)


@settings(max_examples=10)
@given(instances(uniform_clusters), st.sampled_from(["tensor", "context", "pipeline", "data"]))
def test_fixing_a_degree_never_makes_the_best_better(instance, name):
    free = best_s(instance)
    for value in (1, 2):
        fixed = replace(instance.space, **{name: (value,)})
        # A degree that is asked for may leave the scale-up domain or cut short chunks, which a
        # free one may not: `tensor_span` and `context_chunk` are habits, not laws.
        if name in ("tensor", "context") and value > 1:
            continue
        assert best_s(instance, fixed) >= free * (1 - 1e-12)


@settings(max_examples=10)
@given(instances(), st.integers(2, 8))
def test_a_longer_list_has_the_same_head(instance, top):
    assert best_s(instance, top=top) == best_s(instance)


@settings(max_examples=10)
@given(instances(), st.sampled_from(target_names()))
def test_a_framework_never_beats_the_whole_space(instance, target):
    assert best_s(instance, target=target) >= best_s(instance)


@settings(max_examples=10)
@given(instances(), st.sampled_from([2, 4]))
def test_threads_and_repetition_change_nothing(instance, threads):
    space = uniform_space(instance)
    if not len(space.shapes):
        return
    tables = space.tables()
    one = search_uniform(tables, top_k=20, threads=1)
    assert one == search_uniform(tables, top_k=20, threads=threads)
    assert one == search_uniform(uniform_space(instance).tables(), top_k=20, threads=1)


@pytest.mark.parametrize("config", [llama_config(), mixtral_config()])
def test_the_same_inputs_give_the_same_plans(config):
    work = Workload(global_batch_size=16, seq_length=512)
    one, other = (meshwright.plan(config, "2x4xH100", work, top=8) for _ in range(2))
    assert one.best == other.best
    assert one.alternatives == other.alternatives
    assert one.pareto == other.pareto
    assert one.excluded == other.excluded


# ---------------------------------------------------------------- symmetry
@pytest.mark.parametrize("machines", ["1x4xH100+1x4xH100", "1x4xH100+1x4xA100-80GB+1x4xH100"])
def test_swapping_equal_groups_changes_nothing(machines):
    cluster = load_cluster(machines)
    first, *middle, last = cluster.groups
    swapped = replace(cluster, groups=(last, *middle, first))
    work = Workload(global_batch_size=24, seq_length=512)
    model = load_model(llama_config(num_hidden_layers=6))
    one, other = (meshwright.plan(model, c, work) for c in (cluster, swapped))
    assert one.best.strategy == other.best.strategy
    assert one.best.prediction == other.best.prediction
    assert one.excluded == other.excluded


@settings(max_examples=12)
@given(strategies_of(uniform_clusters))
def test_the_order_of_axes_of_degree_one_changes_nothing(drawn):
    """Only the order of the axes that have ranks matters."""
    instance, strategy = drawn
    sizes = strategy.mesh()
    busy = [axis for axis in strategy.axis_order if sizes.size(axis) > 1]

    def seconds(order):
        return predict(
            instance.model,
            instance.cluster,
            instance.workload,
            replace(strategy, axis_order=order),
            coefficients=instance.coefficients,
        ).step_time_s

    alike = [order for order in AXIS_ORDERS if [a for a in order if a in busy] == busy]
    assert {seconds(order) for order in alike} == {seconds(strategy.axis_order)}


@settings(max_examples=10)
@given(instances(st.just(load_cluster("1x1xH100"))))
def test_one_device_has_one_way_to_lay_out(instance):
    """Every degree is one: nothing is communicated and nothing waits."""
    space = replace(
        instance.space,
        zero_stages=(0,),
        micro_batch_sizes=(1,),
        virtual_stages=(1,),
        offload=(Offload.NONE,),
    )
    result = meshwright.plan(
        instance.model,
        instance.cluster,
        instance.workload,
        space=space,
        stack=instance.stack,
    )
    time = result.best.prediction.time
    assert time.communication_s == time.bubble_s == time.data_total_s == 0.0
    layers = instance.model.num_layers
    alone = uniform(
        layers,
        micro_batches=instance.workload.global_batch_size,
        recompute=result.best.strategy.stages[0].recompute,
        context_algorithm=instance.space.context_algorithms[0],
    )
    assert result.best.strategy.stages == alone.stages


def test_on_one_node_every_axis_order_is_placed_alike():
    """All orders but one are excluded as equivalent."""
    work = Workload(global_batch_size=16, seq_length=512)
    whole = meshwright.plan(llama_config(), "1x8xH100", work)
    usual = Space(axis_orders=AXIS_ORDERS[:1])
    few = meshwright.plan(llama_config(), "1x8xH100", work, space=usual)
    assert whole.evaluated == few.evaluated
    assert whole.candidates == len(Space().axis_orders) * few.candidates
    assert whole.best == few.best
