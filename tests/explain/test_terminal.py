"""What is rendered fits its width; the data behind it is tested elsewhere."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from meshwright.cluster import load_cluster
from meshwright.explain.inspection import print_cluster, print_model
from meshwright.explain.model_info import model_info
from meshwright.explain.terminal import WIDE, print_estimate, print_result
from meshwright.graph.sources import load_model

WIDTHS = (80, 100, WIDE, 200)


def rendered(show, width, *args, **kwargs):
    stream = io.StringIO()
    show(*args, console=Console(file=stream, width=width), **kwargs)
    return stream.getvalue()


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("which", ["result", "mixed"])
def test_result(request, which, width):
    found = request.getfixturevalue(which)
    text = rendered(print_result, width, found, model="m", cluster="c")
    head = text.partition("\nNext\n")[0]
    assert max(map(len, head.splitlines())) <= width
    table = head.split("\n\n")[1].splitlines()
    plans = 1 + len(found.alternatives)
    rows = [line for line in table if line[:2].strip().isdigit()]
    assert [int(line.split()[0]) for line in rows] == list(range(1, plans + 1))
    assert ("tok/s/dev" in table[0]) is (width >= WIDE), "one line per plan where there is room"
    assert "…" not in head


@pytest.mark.parametrize("width", WIDTHS)
def test_estimate(result, width):
    text = rendered(print_estimate, width, result.best)
    assert max(map(len, text.splitlines())) <= width
    assert "(tightest)" in text
    assert "█" in text
    assert "…" not in text


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", ["llama-3.1-8b", "deepseek-v3", "t5-11b", "vit-h"])
def test_model(width, name):
    text = rendered(print_model, width, model_info(load_model(name)))
    assert max(map(len, text.splitlines())) <= width
    assert "…" not in text


@pytest.mark.parametrize("width", WIDTHS)
def test_cluster(width):
    text = rendered(print_cluster, width, load_cluster("4x8xH100+4x8xAscend910B"))
    assert max(map(len, text.splitlines())) <= width
    assert "…" not in text
    last = max(
        int(line.split("]")[0].strip(" [")) for line in text.splitlines() if line[:3] == "  ["
    )
    for number in range(1, last + 1):
        assert text.count(f"[{number}]") >= 2, "every source is used, every mark is explained"


def test_next_is_left_out_when_no_command_can_be_written(result):
    text = rendered(print_result, 80, result, model="{" + " " * 200 + "}", cluster="c")
    assert "\nNext\n" not in text
