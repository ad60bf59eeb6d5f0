"""Models from the dimensions of a row."""

from __future__ import annotations

import csv

import pytest

from meshwright.graph import BlockRole
from meshwright.units import GIGA
from meshwright.validation import published_runs, read_runs
from meshwright.validation.inputs import Architecture
from meshwright.validation.models import model_of
from meshwright.validation.skips import RowSkippedError

GPT = Architecture(
    model="small",
    arch="gpt-dense",
    layers=4,
    hidden=256,
    heads=4,
    kv_heads=4,
    head_dim=64,
    ffn_hidden=1024,
    gated_mlp=False,
    vocab=1000,
    tied_embeddings=True,
)


def change(**changes):
    from dataclasses import replace

    return replace(GPT, **changes)


def test_a_gpt_counts_its_biases_norms_and_positions():
    layer = 4 * 256 * 256 + 2 * 256 * 1024 + 4 * 256 + 1024 + 256 + 4 * 256
    ends = 1000 * 256 + 128 * 256 + 2 * 256
    model = model_of(GPT, seq_length=128, dropout=True)
    assert model.parameter_count() == 4 * layer + ends


def test_a_llama_has_no_biases_and_its_own_logits():
    wanted = change(arch="llama-dense", gated_mlp=True, tied_embeddings=False, kv_heads=2)
    layer = 2 * 256 * 256 + 2 * 256 * 128 + 3 * 256 * 1024 + 2 * 256
    model = model_of(wanted, seq_length=128, dropout=True)
    assert model.parameter_count() == 4 * layer + 2 * 1000 * 256 + 256


def test_experts_follow_the_dense_layers_or_alternate_with_them():
    sparse = {
        "moe_experts": 8,
        "moe_topk": 2,
        "moe_ffn_hidden": 128,
        "moe_dense_layers": 2,
        "gated_mlp": True,
    }
    first = model_of(change(arch="moe", **sparse), seq_length=128, dropout=False)
    mixed = model_of(change(arch="moe-interleaved", **sparse), seq_length=128, dropout=False)
    assert first.parameter_count() == mixed.parameter_count()
    kinds = [
        [run.block.name for run in model.runs if run.block.role is BlockRole.LAYER]
        for model in (first, mixed)
    ]
    assert kinds == [
        ["decoder", "moe_decoder"],
        ["decoder", "moe_decoder", "decoder", "moe_decoder"],
    ]


def test_a_name_of_the_catalogue_counts_only_with_the_same_dimensions():
    wanted = Architecture(
        model="Llama3-8B",
        arch="llama-dense",
        layers=32,
        hidden=4096,
        heads=32,
        kv_heads=8,
        head_dim=128,
        ffn_hidden=14336,
        gated_mlp=True,
        vocab=128256,
        tied_embeddings=False,
    )
    from dataclasses import replace

    assert model_of(wanted, seq_length=8192, dropout=False).name == "llama-3.1-8b"
    cut = model_of(replace(wanted, layers=8), seq_length=8192, dropout=False)
    assert (cut.name, cut.num_layers) == ("Llama3-8B", 8)


def test_latent_attention_from_its_ranks():
    wanted = change(arch="moe", mla="q_lora=64;kv_lora=32;qk_nope=16;qk_rope=8;v=16")
    layer = (
        (256 * 64 + 64 + 64 * 4 * 24)  # queries
        + (256 * 40 + 32 + 32 * 4 * 32)  # keys and values
        + (4 * 16 * 256 + 2 * 256 * 1024 + 2 * 256)  # output, feed-forward, norms
    )
    model = model_of(wanted, seq_length=128, dropout=False)
    assert model.parameter_count() == 4 * layer + 1000 * 256 + 256 + 128 * 256 * 0


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"arch": "cnn-resnet50"}, "not_a_transformer"),
        ({"arch": "hybrid-mamba"}, "layers_not_described"),
        ({"vocab": None}, "dimensions_missing"),
        ({"heads": 0}, "dimensions_missing"),
        ({"mla": "something"}, "dimensions_missing"),
    ],
)
def test_what_cannot_be_built_has_a_reason(changes, key):
    with pytest.raises(RowSkippedError) as caught:
        model_of(change(**changes), seq_length=128, dropout=False)
    assert caught.value.key == key


def test_every_model_of_the_tables_counts_what_its_table_says(shared):
    """The truth table counts parameters from the same columns, by its own formula."""
    if shared is None:
        assert model_of(GPT, seq_length=128, dropout=False).parameter_count() > 0
        return
    path = shared / "truth" / "training_runs.csv"
    with path.open(encoding="utf-8", newline="") as file:
        counts = [row["params_b_computed"] for row in csv.DictReader(file)]
    compared = 0
    for run, count in zip(read_runs(path), counts, strict=True):
        i = run.inputs
        if not count or not run.quality.fit_ready or "mamba" in i.architecture.arch:
            continue
        model = model_of(i.architecture, seq_length=i.seq_len, dropout=False)
        # BERT's head and token types are not in the table's formula.
        tolerance = 0.015 if "bert" in i.architecture.arch else 0.01
        assert model.parameter_count() == pytest.approx(float(count) * GIGA, rel=tolerance)
        compared += 1
    assert compared > 2000


def test_the_table_that_comes_along_names_known_columns_only():
    runs = read_runs(published_runs())
    assert 300 < len(runs) < 400
    assert published_runs().stat().st_size < 300_000
    assert all(run.quality.source and run.quality.locator for run in runs)
    assert {run.quality.trust for run in runs} == {"A", "B"}
