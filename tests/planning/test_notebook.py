"""Plans in a notebook and in ``print``."""

from __future__ import annotations

from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest

from meshwright.planning import plan
from meshwright.strategy import Workload


@pytest.fixture(scope="module")
def result():
    return plan("llama-3.1-8b", "1x8xH100", Workload(global_batch_size=64, seq_length=2048), top=3)


def rows_of(html):
    return ET.fromstring(f"<div>{html}</div>").findall("./table/tbody/tr")


def test_html_is_well_formed_and_has_a_row_per_plan(result):
    assert len(rows_of(result._repr_html_())) == 3
    assert len(rows_of(result.best._repr_html_())) == 1
    first = [cell.text for cell in rows_of(result._repr_html_())[0]]
    assert first[0] == "1"
    assert first[1] == f"dp{result.best.strategy.data}" or "tp" in first[1]


def test_names_are_escaped(result):
    plan_ = replace(result.best, model=replace(result.best.model, name="<script>&"))
    html = plan_._repr_html_()
    assert "<script>" not in html
    assert "&lt;script&gt;&amp;" in html


def test_print_gives_a_sentence_and_a_table(result):
    sentence, head, *rows = str(result).splitlines()
    assert sentence == str(result.best)
    assert sentence.startswith("llama-3.1-8b on 1x8xH100: ")
    assert head.split()[:2] == ["degrees", "with"]
    assert [row.split()[0] for row in rows] == ["1", "2", "3"]
