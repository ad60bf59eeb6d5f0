"""Small tables of runs, written by hand."""

from __future__ import annotations

import pytest

from meshwright.validation.runs import parse_runs

#: A complete run of a small GPT on one node.
ROW = {
    "source": "made up",
    "locator": "row 1",
    "task": "pretrain",
    "model": "small",
    "arch": "gpt-dense",
    "layers": "8.0",
    "hidden": "1024",
    "heads": "16",
    "kv_heads": "16",
    "head_dim": "64",
    "ffn_hidden": "4096",
    "gated_mlp": "0.0",
    "vocab": "51200",
    "tied_embeddings": "1.0",
    "seq_len": "1024",
    "device_type": "A100-SXM4-80GB",
    "device_mem_gb": "80.0",
    "num_devices": "8",
    "devices_per_node": "8",
    "tp": "2",
    "pp": "2",
    "dp": "2",
    "micro_batch": "2",
    "global_batch": "32",
    "zero_stage": "0",
    "recompute": "full",
    "precision": "fp16",
    "optimizer": "Adam",
    "framework": "Megatron-LM",
    "iter_time_s": "1.0",
    "mem_gb_per_device": "",
    "mem_kind": "",
    "oom": "",
    "check": "ok",
    "fit_ready": "time",
}


def table(*changes, drop=()):
    """CSV text of one row per dict of changes to ``ROW``."""
    named = dict.fromkeys([*ROW, *(name for change in changes for name in change)])
    columns = [name for name in named if name not in drop]
    lines = [",".join(columns)]
    for change in changes:
        cells = {**ROW, **{name: str(value) for name, value in change.items()}}
        lines.append(",".join(f'"{cells.get(name, "")}"' for name in columns))
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="session")
def make_table():
    return table


@pytest.fixture(scope="session")
def make_runs():
    """`make_runs({"tp": 4}, ...)`: rows that differ from the complete one in these cells."""

    def make(*changes, drop=()):
        return parse_runs(table(*changes, drop=drop), where="runs.csv")

    return make
