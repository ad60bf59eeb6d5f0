"""Clusters from TOML: the whole schema, and every way to get it wrong."""

from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from meshwright.cluster import load_cluster, load_device
from meshwright.cluster.toml_source import FILE_LIMIT_BYTES, parse_toml
from meshwright.errors import ClusterError, FileError, MeshwrightError, UnknownDeviceError
from meshwright.provenance import Provenance

FULL = """
name = "my-cluster"

[device.MyH100]
base = "H100"
memory_gib = 94
peak_tflops = { bf16 = 900, fp8 = 1800 }

[[group]]
device = "my-h100"
nodes = 32
devices_per_node = 8
name = "fast"

[[group.level]]
name = "leaf"
size = 128
bandwidth_gb_per_s = 40
latency_us = 5
ramp_us = 2
efficiency = 0.9
shared_by = 2

[[group.level]]
name = "spine"
size = 256
bandwidth_gb_per_s = 40
latency_us = 6.5
oversubscription = 4.0
source = "our own test in May"
kind = "measured"

[[group]]
device = "A100"
nodes = 16

[boundary]
bandwidth_gb_per_s = 12.5
latency_us = 20
"""

ONE = '[[group]]\ndevice = "H100"\nnodes = 4\n'


def test_the_whole_schema():
    cluster = load_cluster(FULL)
    fast, slow = cluster.groups
    assert (cluster.name, fast.name, slow.name) == ("my-cluster", "fast", "A100-80GB")
    assert (fast.count, slow.count, cluster.num_devices) == (256, 128, 384)

    device = fast.device
    assert device.name == "MyH100"
    assert device.memory_bytes == 94 * 2**30
    assert device.peak("bf16") == 900e12
    assert device.peak("fp32") == 900e12  # the table of peaks is replaced as a whole
    assert device.link_bandwidth_bytes_per_s == load_device("H100").link_bandwidth_bytes_per_s
    assert device.sources["memory_bytes"].text == "as given in TOML"
    assert device.sources["nic_latency_s"].text.startswith("as H100")

    node, leaf, spine = fast.levels
    assert (node.name, node.size) == ("node", 8)
    assert (leaf.size, leaf.shared_by, leaf.ramp_s) == (128, 2, pytest.approx(2e-6))
    assert leaf.effective_bandwidth_bytes_per_s == pytest.approx(36e9)
    assert spine.effective_bandwidth_bytes_per_s == pytest.approx(40e9 * 0.94 / 4)
    assert spine.latency_s == pytest.approx(6.5e-6)
    assert spine.source.kind is Provenance.MEASURED
    assert spine.source.text == "our own test in May"

    assert cluster.boundary is not None
    assert cluster.boundary.size == 384
    assert cluster.boundary.bandwidth_bytes_per_s == pytest.approx(12.5e9)
    # Only what was made up is an assumption: the network of the second group.
    (sentence,) = cluster.assumptions
    assert sentence.startswith("A100-80GB:")


def test_a_file_is_read_like_its_text(tmp_path):
    path = tmp_path / "big.toml"
    path.write_text(ONE, encoding="utf-8")
    for given_path in (path, str(path)):
        cluster = load_cluster(given_path)
        assert cluster.name == "big"
        assert cluster.groups == load_cluster("4x8xH100").groups


def test_a_level_inside_the_node_replaces_the_node():
    text = ONE + '[[group.level]]\nname = "pair"\nsize = 2\nbandwidth_gb_per_s = 100\n'
    text += '[[group.level]]\nname = "net"\nsize = 32\nbandwidth_gb_per_s = 10\n'
    (group,) = load_cluster(text).groups
    assert [(level.name, level.size) for level in group.levels] == [("pair", 2), ("net", 32)]
    pair, net = group.levels
    assert pair.latency_s == group.device.link_latency_s
    assert net.latency_s == group.device.nic_latency_s


def test_an_efficiency_of_a_level_is_that_of_all_its_collectives():
    text = ONE + '[[group.level]]\nname = "node"\nsize = 8\nbandwidth_gb_per_s = 100\n'
    text += 'efficiency = 0.5\n[[group.level]]\nname = "net"\nsize = 32\nbandwidth_gb_per_s = 10\n'
    node = load_cluster(text).groups[0].levels[0]
    assert node.all_reduce_bandwidth_bytes_per_s == pytest.approx(50e9)
    assert node.all_to_all_bandwidth_bytes_per_s == pytest.approx(50e9)


def test_toml_may_describe_a_node_that_the_shorthand_refuses():
    cluster = load_cluster('[[group]]\ndevice = "V100"\nnodes = 2\ndevices_per_node = 16\n')
    assert [level.size for level in cluster.groups[0].levels] == [16, 32]


def test_a_device_may_build_on_another_of_the_file():
    text = '[device.A]\nbase = "H100"\nmemory_gib = 90\n[device.B]\nbase = "A"\nlaunch_us = 9\n'
    device = load_cluster(text + '[[group]]\ndevice = "B"\nnodes = 1\n').groups[0].device
    assert (device.memory_bytes, device.launch_s) == (90 * 2**30, pytest.approx(9e-6))


LEVEL = ONE + '[[group.level]]\nname = "net"\nsize = 32\nbandwidth_gb_per_s = 10\n'


@pytest.mark.parametrize(
    ("text", "what", "where"),
    [
        ("\n", "'group' is missing", "TOML:"),
        ("group = []\n", "[]", "TOML:group"),
        ("group = 3\n", "3", "TOML:group"),
        ("group = [1]\n", "not a table", "group[0]"),
        ('[[group]]\ndevice = "H100"\n', "'nodes' is missing", "group[0]"),
        ('[[group]]\ndevise = "H100"\nnodes = 4\n', "'device' is missing", "group[0]"),
        (ONE + "nodess = 3\n", "nodess", "group[0]"),
        (ONE.replace("4", "0"), "0", "group[0].nodes"),
        (ONE.replace("4", "-4"), "-4", "group[0].nodes"),
        (ONE.replace("4", "true"), "True", "group[0].nodes"),
        (ONE.replace("4", "4.0"), "4.0", "group[0].nodes"),
        (ONE.replace("4", '"4"'), "'4'", "group[0].nodes"),
        (ONE.replace("4", "99999999"), "799999992", "group[0]: devices"),
        (ONE.replace("4", "9" * 4000), "bits", "group[0]"),
        (ONE.replace("4", "9" * 5000), "cannot be read", "TOML"),
        (ONE.replace('"H100"', "7"), "7", "group[0].device"),
        (ONE.replace('"H100"', '""'), "''", "group[0].device"),
        (ONE + "devices_per_node = 0\n", "0", "group[0].devices_per_node"),
        (LEVEL.replace("32", "16"), "joins 16", "H100.levels"),
        (LEVEL.replace("32", "36"), "36", "H100.levels"),
        (LEVEL.replace("10\n", "nan\n"), "nan", "level[0].bandwidth_gb_per_s"),
        (LEVEL.replace("10\n", "inf\n"), "inf", "level[0].bandwidth_gb_per_s"),
        (LEVEL.replace("10\n", "-1\n"), "-1", "level[0].bandwidth_gb_per_s"),
        (LEVEL.replace("10\n", "0\n"), "0", "level[0].bandwidth_gb_per_s"),
        (LEVEL.replace("10\n", "false\n"), "False", "level[0].bandwidth_gb_per_s"),
        (LEVEL.replace("10\n", "1" + "0" * 400 + "\n"), "bits", "level[0].bandwidth_gb_per_s"),
        (LEVEL + "latency_us = -1\n", "-1", "level[0].latency_us"),
        (LEVEL + "latency_us = 1e9\n", "1000", "latency_s"),
        (LEVEL + "efficiency = 1.5\n", "1.5", "efficiency"),
        (LEVEL + "oversubscription = 0.5\n", "0.5", "oversubscription"),
        (LEVEL + "shared_by = 0\n", "0", "level[0].shared_by"),
        (LEVEL + 'kind = "guess"\n', "guess", "level[0].kind"),
        (LEVEL + "bandwith_gb_per_s = 3\n", "bandwith_gb_per_s", "level[0]"),
        (ONE + "[boundary]\nbandwidth_gb_per_s = 3\n", "two groups", "boundary"),
        (ONE + "[bounds]\nbandwidth_gb_per_s = 3\n", "bounds", "TOML:"),
        ("name = 3\n" + ONE, "3", "TOML:name"),
        ("device = 3\n" + ONE, "3", "TOML:device"),
        ("[device.X]\nmemory_gib = 3\n" + ONE, "lacks", "device.X"),
        ('[device.X]\nbase = "H100"\nmemory_gib = 0\n' + ONE, "0", "device.X.memory_gib"),
        ('[device.X]\nbase = "H100"\nmemory_gib = 1e300\n' + ONE, "", "X.memory_bytes"),
        ('[device.X]\nbase = "H100"\nmemory_gb = 3\n' + ONE, "memory_gb", "device.X"),
        ('[device.X]\nbase = "H100"\npeak_tflops = {}\n' + ONE, "no precision", "X.peak_flops"),
        ('[device.X]\nbase = "H100"\npeak_tflops = {bf17 = 1}\n' + ONE, "bf17", "X.peak_flops"),
        ('[device.X]\nbase = "H100"\ngemm = {bf16 = {limit = 0.5}}\n' + ONE, "m_half", "gemm.bf16"),
        ('[device.X]\nbase = "H100"\nlink_domain = 1.5\n' + ONE, "1.5", "device.X.link_domain"),
        ('[device.X]\nbase = "H100"\nnic_efficiency = 2\n' + ONE, "2", "X.nic_efficiency"),
        ("a = [[[\n", "not TOML", "TOML"),
        ("a = " + "[" * 100_000 + "\n", "", "TOML"),
        ("a = 2020-13-45\n", "", "TOML"),
        (ONE + ONE.replace("nodes = 4", "nodes = 4\nnodes = 5"), "line 7", "TOML"),
    ],
)
def test_bad_toml_is_explained(text, what, where):
    with pytest.raises(ClusterError) as caught:
        load_cluster(text)
    assert what in caught.value.what
    assert where in caught.value.where
    assert caught.value.allowed or caught.value.fix
    assert len(str(caught.value)) < 1200


def test_near_keys_are_offered():
    with pytest.raises(ClusterError) as caught:
        load_cluster(ONE + "device_per_node = 8\n")
    assert "devices_per_node" in caught.value.fix
    with pytest.raises(ClusterError) as caught:
        load_cluster('[[group]]\ndevise = "H100"\nnodes = 4\n')
    assert "devise" in caught.value.fix


def test_an_unknown_device_or_base_is_named():
    for text in (ONE.replace("H100", "H101"), '[device.X]\nbase = "H101"\n' + ONE):
        with pytest.raises(UnknownDeviceError, match="H101"):
            load_cluster(text)


def test_bad_files_are_explained(tmp_path):
    missing = tmp_path / "none.toml"
    folder = tmp_path / "folder.toml"
    folder.mkdir()
    latin = tmp_path / "latin.toml"
    latin.write_bytes(b'name = "caf\xe9"\n')
    large = tmp_path / "large.toml"
    large.touch()
    os.truncate(large, 2**30)  # sparse: refused by its size, before it is read
    for path, what in ((missing, "no such"), (folder, "directory"), (latin, "UTF-8")):
        with pytest.raises(FileError, match=what):
            load_cluster(str(path))
    with pytest.raises(FileError, match="too large"):
        load_cluster(large)
    with pytest.raises(FileError):
        load_cluster("null\0byte.toml")


def test_the_limit_of_a_file_is_exact(tmp_path):
    path = tmp_path / "edge.toml"
    text = ONE + "#" * (FILE_LIMIT_BYTES - len(ONE))
    path.write_text(text, encoding="utf-8")
    assert load_cluster(path).num_devices == 32
    path.write_text(text + "#", encoding="utf-8")
    with pytest.raises(FileError, match="too large"):
        load_cluster(path)


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused_cleanly(text):
    with pytest.raises(MeshwrightError):
        parse_toml(text)


VALUES = st.one_of(
    st.integers(-3, 10**8),
    st.floats(),
    st.booleans(),
    st.text(max_size=5),
    st.just("H100"),
    st.lists(st.integers(), max_size=2),
)
KEYS = (
    "device",
    "nodes",
    "devices_per_node",
    "name",
    "size",
    "bandwidth_gb_per_s",
    "latency_us",
    "efficiency",
    "oversubscription",
    "shared_by",
    "level",
    "kind",
    "base",
)


def as_toml(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return '"' + "".join(c for c in value if c.isalnum()) + '"'
    return str(value)


@given(
    st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=4),
    st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=5),
)
def test_any_table_is_read_or_refused_cleanly(group, level):
    base = {"device": "H100", "nodes": 2} | group
    text = "[[group]]\n" + "".join(f"{k} = {as_toml(v)}\n" for k, v in base.items())
    if level:
        filled = {"name": "net", "size": 16, "bandwidth_gb_per_s": 5} | level
        text += "[[group.level]]\n" + "".join(f"{k} = {as_toml(v)}\n" for k, v in filled.items())
    try:
        cluster = load_cluster(text)
    except ClusterError as error:
        where = error.where
    else:
        where = None
    if where is not None:
        assert where
        return
    for found in cluster.groups[0].levels:
        assert 0 < found.effective_bandwidth_bytes_per_s < float("inf")
