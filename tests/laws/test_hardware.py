"""Better hardware never makes things worse.

The laws hold strategy by strategy, although communication hides behind compute: of each second
that compute (or the communication inside it) gets shorter, at most the share of
``OverlapFactors`` of one second comes into view behind it, which is less than one. They would
not hold for a share above one, nor if a step ended on a stage whose passes are not on its path.
"""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from meshwright.cluster.device import GemmCurve
from meshwright.planning.predict import predict
from meshwright.planning.searching import search_space

from ..strategies import (  # noqa: TID252 - importlib mode
    instances,
    strategies_of,
    with_devices,
    with_level,
    with_memory,
)

ROUNDING = 1 + 1e-9
factors = st.floats(1.0, 50.0)


def step_s(instance, strategy, cluster):
    return predict(
        instance.model, cluster, instance.workload, strategy, coefficients=instance.coefficients
    ).step_time_s


def chord_slack_s(instance, strategy):
    """What a chord may add to the communication of blocks far smaller than a bucket.

    ``Network.linear`` is exact at the bucket and at twice it. When another algorithm becomes the
    fastest at one of the two only, the line tilts, and at 0.1 MB it may rise by 8 %.
    """
    found = predict(
        instance.model,
        instance.cluster,
        instance.workload,
        strategy,
        coefficients=instance.coefficients,
    )
    return 0.1 * found.time.data_total_s


def best_s(instance, cluster):
    """Time of the best plan, infinite where nothing fits."""
    result = search_space(
        instance.model,
        cluster,
        instance.workload,
        instance.space,
        coefficients=instance.coefficients,
        top=1,
    ).result
    return result.best[0].step_s if result.best else float("inf")


def levels_of(cluster):
    return range(-1 if cluster.boundary else 0, min(len(g.levels) for g in cluster.groups))


@settings(max_examples=30)
@given(strategies_of(), factors, st.data())
def test_more_bandwidth_is_never_slower(drawn, factor, data):
    instance, strategy = drawn
    level = data.draw(st.sampled_from(levels_of(instance.cluster)))
    faster = with_level(instance.cluster, level, bandwidth_bytes_per_s=factor)
    before = step_s(instance, strategy, instance.cluster)
    allowed = before * ROUNDING + chord_slack_s(instance, strategy)
    assert step_s(instance, strategy, faster) <= allowed


@settings(max_examples=30)
@given(strategies_of(), st.floats(0.0, 1.0), st.data())
def test_less_latency_is_never_slower(drawn, factor, data):
    instance, strategy = drawn
    level = data.draw(st.sampled_from(levels_of(instance.cluster)))
    faster = with_level(instance.cluster, level, latency_s=factor, ramp_s=factor)
    before = step_s(instance, strategy, instance.cluster)
    allowed = before * ROUNDING + chord_slack_s(instance, strategy)
    assert step_s(instance, strategy, faster) <= allowed


@settings(max_examples=10)
@given(instances(), factors, st.data())
def test_more_bandwidth_never_makes_the_best_plan_slower(instance, factor, data):
    level = data.draw(st.sampled_from(levels_of(instance.cluster)))
    faster = with_level(instance.cluster, level, bandwidth_bytes_per_s=factor)
    assert best_s(instance, faster) <= best_s(instance, instance.cluster) * ROUNDING


def faster_devices(cluster, factor):
    """Every peak and the memory bandwidth times ``factor``."""
    groups = tuple(
        replace(
            group,
            device=replace(
                group.device,
                peak_flops={k: v * factor for k, v in group.device.peak_flops.items()},
                memory_bandwidth_bytes_per_s=group.device.memory_bandwidth_bytes_per_s * factor,
            ),
        )
        for group in cluster.groups
    )
    return replace(cluster, groups=groups)


@settings(max_examples=30)
@given(strategies_of(), factors)
def test_faster_devices_are_never_slower(drawn, factor):
    """All groups alike: one that is not the slowest of its stage is not on the path."""
    instance, strategy = drawn
    faster = faster_devices(instance.cluster, factor)
    before = step_s(instance, strategy, instance.cluster)
    assert step_s(instance, strategy, faster) <= before * ROUNDING


@settings(max_examples=10)
@given(strategies_of(), st.floats(1.0, 4.0))
def test_more_memory_changes_no_time_and_adds_headroom(drawn, factor):
    instance, strategy = drawn
    larger = with_devices(
        instance.cluster,
        memory_bytes=int(factor * max(g.device.memory_bytes for g in instance.cluster.groups)),
    )
    before, after = (
        predict(
            instance.model,
            cluster,
            instance.workload,
            strategy,
            coefficients=instance.coefficients,
        )
        for cluster in (instance.cluster, larger)
    )
    assert after.time == before.time
    assert after.headroom_bytes >= before.headroom_bytes


@settings(max_examples=12)
@given(instances(), st.floats(1.0, 3.0), st.floats(1.0, 3.0))
def test_more_memory_never_makes_a_plan_infeasible_nor_slower(instance, tight, factor):
    framework = max(g.device.framework_bytes for g in instance.cluster.groups)
    small = with_memory(instance.cluster, framework * 1.07 + tight * 2e7)
    large = with_memory(instance.cluster, framework * 1.07 + factor * tight * 2e7)
    assert best_s(instance, large) <= best_s(instance, small)


@settings(max_examples=10)
@given(strategies_of(), st.floats(1.0, 100.0))
def test_a_curve_that_rises_sooner_is_never_slower(drawn, factor):
    instance, strategy = drawn

    def curve(old):
        return GemmCurve(
            limit=old.limit,
            m_half=old.m_half / factor,
            n_half=old.n_half / factor,
            k_half=old.k_half / factor,
        )

    better = replace(
        instance.cluster,
        groups=tuple(
            replace(
                g,
                device=replace(g.device, gemm={k: curve(v) for k, v in g.device.gemm.items()}),
            )
            for g in instance.cluster.groups
        ),
    )
    before = step_s(instance, strategy, instance.cluster)
    assert step_s(instance, strategy, better) <= before * ROUNDING
