"""The prediction of a strategy equals what the search computed for it, and counts add up."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from meshwright.errors import StrategyError
from meshwright.planning.check import check_strategy
from meshwright.planning.predict import predict
from meshwright.planning.searching import search_space
from meshwright.search import reference

from ..strategies import (  # noqa: TID252 - importlib mode
    draw_candidate,
    instances,
    uniform_space,
)


@settings(max_examples=60)
@given(instances(), st.data())
def test_any_candidate_fits_or_not(instance, data):
    space = uniform_space(instance)
    if not len(space.shapes):
        return
    tables = space.tables()
    for _ in range(4):
        chosen = draw_candidate(data.draw, tables)
        if chosen is None:
            return
        expected = reference.evaluate(tables, **chosen)
        strategy = space.strategy(expected)
        check_strategy(instance.model, instance.cluster, instance.workload, strategy)
        found = predict(
            instance.model,
            instance.cluster,
            instance.workload,
            strategy,
            coefficients=instance.coefficients,
        )
        assert found.step_time_s == pytest.approx(expected.step_s, rel=1e-9)
        assert found.peak_memory_bytes == pytest.approx(expected.peak_bytes, rel=1e-9)
        capacity = found.tightest.capacity_bytes
        assert found.headroom_bytes == pytest.approx(expected.headroom_bytes, abs=1e-9 * capacity)


@settings(max_examples=40)
@given(instances())
def test_counts_add_up(instance):
    searched = search_space(
        instance.model,
        instance.cluster,
        instance.workload,
        instance.space,
        coefficients=instance.coefficients,
        top=2,
    )
    assert searched.result.evaluated + sum(searched.excluded) == searched.candidates
    assert all(count >= 0 for count in searched.excluded)


@settings(max_examples=20)
@given(instances())
def test_what_the_search_returns_is_valid_and_sorted(instance):
    searched = search_space(
        instance.model,
        instance.cluster,
        instance.workload,
        instance.space,
        coefficients=instance.coefficients,
        top=2,
    )
    times = [candidate.step_s for candidate in searched.result.best]
    assert times == sorted(times)
    for candidate in searched.result.best[:5]:
        strategy = searched.space.strategy(candidate)
        try:
            check_strategy(instance.model, instance.cluster, instance.workload, strategy)
        except StrategyError as error:
            pytest.fail(f"the search offers what the check refuses: {error}")
        assert candidate.headroom_bytes >= 0
    pareto = searched.result.pareto
    assert [p.step_s for p in pareto] == sorted(p.step_s for p in pareto)
    assert [p.peak_bytes for p in pareto] == sorted((p.peak_bytes for p in pareto), reverse=True)
