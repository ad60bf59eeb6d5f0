"""When nothing fits: by how much, and remedies that do make it fit."""

from __future__ import annotations

import re

import pytest

import meshwright
from meshwright.cluster import load_cluster
from meshwright.errors import InfeasibleError, StrategyError
from meshwright.graph.sources import load_model
from meshwright.planning.remedies import scaled
from meshwright.strategy import Offload, Recompute, Space, Workload

from ..strategies import llama_config  # noqa: TID252 - importlib mode

WORK = Workload(global_batch_size=64, seq_length=4096)


def misfit(model, cluster, workload=WORK, **more):
    with pytest.raises(InfeasibleError) as caught:
        meshwright.plan(model, cluster, workload, **more)
    error = caught.value
    assert error.exit_code == 3
    assert "does not fit" in error.what
    assert "per device" in error.what
    assert error.fix
    return error


def nodes_offered(error):
    found = re.search(r"use ([\d,]+) nodes instead of ([\d,]+)", error.fix)
    return int(found[1].replace(",", "")) if found else None


def test_more_nodes_do_make_it_fit():
    error = misfit("llama-3.1-70b", "1x8xA100-40GB")
    nodes = nodes_offered(error)
    assert nodes is not None
    assert meshwright.plan("llama-3.1-70b", f"{nodes}x8xA100-40GB", WORK).best.prediction.fits


def test_offload_where_it_is_offered_does_make_it_fit():
    error = misfit("llama-3.1-8b", "1x1xH100")
    assert "--offload optimizer" in error.fix
    space = Space(offload=tuple(Offload))
    best = meshwright.plan("llama-3.1-8b", "1x1xH100", WORK, space=space).best
    assert best.prediction.fits
    assert best.strategy.stages[0].offload is Offload.OPTIMIZER


def test_full_recomputation_where_it_is_forbidden():
    space = Space(recompute=(Recompute.NONE,), micro_batch_sizes=(16,))
    work = Workload(global_batch_size=64, seq_length=16384)
    error = misfit("llama-3.1-8b", "1x8xH100", work, space=space)
    assert "allow full recomputation" in error.fix
    allowed = Space(recompute=tuple(Recompute), micro_batch_sizes=(16,))
    best = meshwright.plan("llama-3.1-8b", "1x8xH100", work, space=allowed).best
    assert best.prediction.fits


def test_fixed_degrees_may_be_freed():
    space = Space(tensor=(1,), pipeline=(1,), zero_stages=(0,))
    error = misfit("llama-3.1-8b", "1x8xH100", space=space)
    assert "free the degrees that were fixed" in error.fix
    assert meshwright.plan("llama-3.1-8b", "1x8xH100", WORK).best.prediction.fits


def test_at_most_three_remedies():
    error = misfit("llama-3.1-405b", "1x8xH100")
    assert 1 <= len(error.fix.split("; or ")) <= 3


def test_a_request_that_contradicts_itself_says_which_rules_excluded_everything():
    space = Space(tensor=(3,))
    with pytest.raises(StrategyError) as caught:
        meshwright.plan(llama_config(), "1x3xH100", WORK, space=space)
    assert "excluded" in caught.value.fix
    assert "tensor degree" in caught.value.fix


def test_a_batch_that_no_strategy_divides():
    # 7 devices cannot split a model of 8 heads and 4 layers otherwise than over the data.
    work = Workload(global_batch_size=4, seq_length=512)
    with pytest.raises(StrategyError) as caught:
        meshwright.plan(llama_config(), "1x7xH100", work)
    assert "batch" in caught.value.fix


@pytest.mark.parametrize("text", ["2x8xH100", "1x8xH100", "1x8xH100+2x8xA100-80GB", "64x8xH100"])
@pytest.mark.parametrize("factor", [2, 8])
def test_scaled_clusters_are_whole(text, factor):
    before = load_cluster(text)
    after = scaled(before, factor)
    assert after.num_devices == factor * before.num_devices
    assert after.num_nodes == factor * before.num_nodes
    for old, new in zip(before.groups, after.groups, strict=True):
        assert new.device == old.device
        assert new.devices_per_node == old.devices_per_node
        assert new.levels[0].size == old.levels[0].size
        assert new.levels[-1].size >= new.count
    model = load_model(llama_config())
    work = Workload(global_batch_size=after.num_devices, seq_length=512)
    space = Space(axis_orders=(("tensor", "context", "data", "pipeline"),), virtual_stages=(1,))
    assert meshwright.plan(model, after, work, space=space).best.prediction.fits
