"""Levels, groups, clusters, rows and the JSON form, by hand."""

from __future__ import annotations

import copy
import json
import pickle
from dataclasses import replace

import msgspec
import pytest

from meshwright.cluster import (
    Cluster,
    DeviceGroup,
    Level,
    device_names,
    level_rows,
    load_cluster,
    load_device,
)
from meshwright.errors import ClusterError
from meshwright.provenance import Figure, Provenance, Source

SOURCE = Source(kind=Provenance.ANALYTIC, text="made up for a test")


def level(**changes) -> Level:
    values = {"name": "x", "size": 8, "bandwidth_bytes_per_s": 100e9, "latency_s": 1e-6}
    return Level(**values | {"source": SOURCE} | changes)


def group(**changes) -> DeviceGroup:
    values = {
        "name": "g",
        "device": load_device("H100"),
        "count": 16,
        "num_nodes": 2,
        "levels": (level(), level(name="y", size=16)),
    }
    return DeviceGroup(**values | changes)


def test_effective_bandwidth_by_hand():
    found = level(efficiency=0.8, oversubscription=2.0)
    assert found.effective_bandwidth_bytes_per_s == pytest.approx(40e9)
    assert found.all_reduce_bandwidth_bytes_per_s == pytest.approx(40e9)
    found = level(efficiency=0.8, all_reduce_efficiency=1.1, all_to_all_efficiency=0.5)
    assert found.all_reduce_bandwidth_bytes_per_s == pytest.approx(110e9)
    assert found.all_to_all_bandwidth_bytes_per_s == pytest.approx(50e9)


@pytest.mark.parametrize(("sending", "factor"), [(0, 4), (1, 4), (2, 2), (4, 1), (9, 1)])
def test_a_device_that_sends_alone_has_the_port(sending, factor):
    assert level(shared_by=4).alone_factor(sending=sending) == factor


@pytest.mark.parametrize(
    "changes",
    [
        {"size": 0},
        {"size": True},
        {"bandwidth_bytes_per_s": 0.0},
        {"bandwidth_bytes_per_s": float("nan")},
        {"latency_s": -1e-9},
        {"latency_s": float("nan")},
        {"ramp_s": 2.0},
        {"efficiency": 0.0},
        {"efficiency": 1.01},
        {"all_reduce_efficiency": 2.01},
        {"all_to_all_efficiency": 1.01},
        {"oversubscription": 0.99},
        {"oversubscription": float("inf")},
        {"shared_by": 0},
    ],
)
def test_levels_refuse_nonsense(changes):
    with pytest.raises(ClusterError) as caught:
        level(**changes)
    assert next(iter(changes)) in caught.value.where


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({"count": 15}, "divide"),
        ({"count": 0}, "0"),
        ({"num_nodes": 0}, "0"),
        ({"levels": ()}, "no level"),
        ({"levels": (level(),)}, "joins 8"),
        ({"levels": (level(), level(name="y", size=20))}, "20"),
        ({"levels": (level(), level(name="y", size=8))}, "8"),
    ],
)
def test_groups_refuse_nonsense(changes, part):
    with pytest.raises(ClusterError) as caught:
        group(**changes)
    assert part in caught.value.what


def test_clusters_refuse_nonsense():
    other = replace(load_device("H100"), launch_s=1e-3)
    boundary = level(name="boundary", size=32)
    for groups, joined, part in (
        ((), None, "no devices"),
        ((group(), group()), boundary, "two groups"),
        ((group(), group(name="h")), None, "joins"),
        ((group(),), boundary, "two groups or more"),
        ((group(), group(name="h", device=other)), boundary, "two different devices"),
    ):
        with pytest.raises(ClusterError) as caught:
            Cluster(name="c", groups=groups, boundary=joined)
        assert part in caught.value.what


def test_counts_of_a_mixed_cluster():
    cluster = load_cluster("2x8xH100+3x4xT4")
    assert (cluster.num_devices, cluster.num_nodes, cluster.devices_per_node) == (28, 5, 4)
    assert [device.name for device in cluster.devices] == ["H100", "T4"]
    assert [found.scale_up_size for found in cluster.groups] == [8, 4]


def test_figures_carry_their_source():
    device = load_device("H100")
    figure = device.figure("memory_bandwidth_bytes_per_s")
    assert isinstance(figure, Figure)
    assert figure.value == 3350e9
    assert figure.source.kind is Provenance.DATASHEET
    assert str(figure.source).startswith("datasheet: NVIDIA H100")


def test_rows_of_levels_by_hand():
    rows = level_rows(load_cluster("40x8xH100+2x4xT4"))
    table = [(row.group, row.level, row.size, row.domains) for row in rows]
    assert table == [
        ("H100", "node", 8, 40),
        ("H100", "leaf", 256, 2),
        ("H100", "spine", 512, 1),
        ("T4", "node", 4, 2),
        ("T4", "leaf", 8, 1),
        ("", "boundary", 328, 1),
    ]
    assert rows[0].bandwidth_bytes_per_s == pytest.approx(450e9)
    assert rows[0].source.kind is Provenance.DATASHEET


@pytest.mark.parametrize("name", device_names())
def test_json_gives_back_an_equal_cluster(name):
    cluster = load_cluster(f"3x1x{name}+2x4xH100")
    text = json.dumps(msgspec.to_builtins(cluster), allow_nan=False)
    back = msgspec.convert(json.loads(text), Cluster)
    assert back == cluster
    assert json.dumps(msgspec.to_builtins(back)) == text


def test_clusters_can_be_copied_and_pickled():
    cluster = load_cluster("4x8xH100+2x8xA100")
    assert copy.deepcopy(cluster) == cluster
    assert pickle.loads(pickle.dumps(cluster)) == cluster
    assert hash(cluster) == hash(load_cluster("4x8xH100+2x8xA100"))
