"""Whatever a table holds: a prediction, a reason to skip, or an error of the file."""

from __future__ import annotations

import math
from dataclasses import fields, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from meshwright.errors import FileError
from meshwright.validation.inputs import Architecture, Hardware, Parallel, RunInputs, Software
from meshwright.validation.outcomes import RowPredictor
from meshwright.validation.runs import parse_runs
from meshwright.validation.skips import SKIPS, RowSkippedError

SIZES = st.one_of(st.none(), st.sampled_from([0, 1, 2, 3, 7, 8, 16, 64, 128, 4096, 10**9]))
SMALL = st.one_of(st.none(), st.sampled_from([0, 1, 1, 1, 2, 3, 4, 8, 10**9]))
FLAGS = st.sampled_from([None, False, True])


def words(*known):
    return st.sampled_from(["", "?", "0x7", *known])


ARCHITECTURES = st.builds(
    Architecture,
    model=words("Llama3-8B", "bert-large"),
    arch=words("gpt-dense", "llama-dense", "moe", "moe-interleaved", "bert-dense", "mpt-dense"),
    layers=SIZES,
    hidden=SIZES,
    heads=SIZES,
    kv_heads=SIZES,
    head_dim=SIZES,
    ffn_hidden=SIZES,
    gated_mlp=FLAGS,
    vocab=SIZES,
    tied_embeddings=FLAGS,
    moe_experts=SMALL,
    moe_topk=SMALL,
    moe_ffn_hidden=SIZES,
    moe_shared_ffn=SIZES,
    moe_dense_layers=SMALL,
    mla=words("q_lora=8;kv_lora=8;qk_nope=8;qk_rope=8;v=8", "kv_lora=0;qk_nope=0;qk_rope=0;v=0"),
)
HARDWARE = st.builds(
    Hardware,
    device_type=words("A100", "H100-SXM-80GB", "GB200", "T4"),
    device_mem_gb=st.sampled_from([None, 0.0, 1e-9, 16.0, 80.0, 1e12]),
    num_devices=SIZES,
    devices_per_node=SIZES,
    intra_node_link=words("PCIe", "NVLink"),
    inter_node_network=words("8x400Gb/s", "0x0Gb/s", "0 Gb/s", "9999999999x9999Gb/s per node"),
)
PARALLEL = st.builds(
    Parallel,
    **dict.fromkeys(("tp", "pp", "dp", "cp", "ep", "etp", "vpp"), SMALL),
    micro_batch=SMALL,
    num_microbatches=SMALL,
    sequence_parallel=FLAGS,
    zero_stage=words("1", "3 (FSDP axis)", "1 (shard group 0)", "1 (shard group 3)"),
    fsdp=FLAGS,
    recompute=words("full", "full:block:99999999999999999999", "selective:mlp", "selective:"),
    offload=words("cpu full"),
)
INPUTS = st.builds(
    RunInputs,
    architecture=ARCHITECTURES,
    hardware=HARDWARE,
    parallel=PARALLEL,
    software=st.builds(Software, framework=words("NeMo", "Megatron-LM")),
    task=words("lora", "pretrain"),
    seq_len=SIZES,
    global_batch=SIZES,
    precision=words("fp8", "bf16"),
    optimizer=words("Adam", "SGD"),
)


def predict_or_skip(inputs):
    skipped = None
    try:
        predicted = RowPredictor()(inputs)
    except RowSkippedError as skip:
        skipped = skip
    if skipped is not None:
        assert skipped.key in SKIPS
        assert skipped.detail
    else:
        assert 0.0 < predicted.prediction.step_time_s < math.inf
        assert predicted.prediction.peak_memory_bytes > 0.0


@given(INPUTS)
@settings(max_examples=300)
def test_any_inputs_are_predicted_or_skipped_for_a_reason(inputs):
    predict_or_skip(inputs)


GOOD = {
    "architecture": Architecture(
        arch="gpt-dense", layers=8, hidden=1024, heads=16, vocab=51200, moe_experts=None
    ),
    "hardware": Hardware(device_type="A100", num_devices=8),
    "parallel": Parallel(tp=2, pp=2, micro_batch=1),
    "seq_len": 1024,
    "global_batch": 64,
}


@pytest.mark.parametrize("part", ["architecture", "hardware", "parallel"])
def test_one_odd_part_of_a_good_row(part):
    """The rest of the row is right, so that the odd part is reached."""
    strategy = {"architecture": ARCHITECTURES, "hardware": HARDWARE, "parallel": PARALLEL}[part]

    @given(strategy)
    @settings(max_examples=200)
    def check(odd):
        predict_or_skip(RunInputs(**{**GOOD, part: odd}))

    check()


@given(st.data())
def test_one_odd_dimension_of_a_good_row(data):
    """One cell alone is odd: what the mixtures above seldom reach."""
    part = data.draw(st.sampled_from(["architecture", "hardware", "parallel"]))
    good = GOOD[part]
    name = data.draw(st.sampled_from([f.name for f in fields(good) if "int" in str(f.type)]))
    odd = replace(good, **{name: data.draw(SIZES)})
    inputs = RunInputs(**{**GOOD, part: odd})
    predict_or_skip(inputs)


def read_or_refuse(text):
    refused = None
    try:
        return parse_runs(text, where="runs.csv")
    except FileError as error:
        refused = error
    assert refused.where.startswith("runs.csv, line ")
    return ()


@given(st.text(max_size=300))
def test_any_text_is_no_table_or_one(text):
    read_or_refuse(text)


@given(cell=st.text(max_size=20), column=st.integers(0, 5))
def test_any_cell_is_read_or_an_error_with_its_line(cell, column):
    cells = ["8", "1024", "16", "H100", "8", "32"]
    cells[column] = '"' + cell.replace('"', '""') + '"'
    text = "layers,hidden,heads,device_type,num_devices,global_batch\n" + ",".join(cells) + "\n"
    for run in read_or_refuse(text):
        assert (run.inputs.hardware.num_devices or 0) >= 0
