"""Text that breaks well, at any width."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from meshwright.explain.console import MAX_WIDTH, MIN_WIDTH, opened, paragraph


def console_of(width):
    return Console(file=io.StringIO(), width=width)


@given(width=st.integers(20, 60))
def test_a_number_is_never_torn_from_its_unit(width):
    units = ("s", "ms", "GiB", "%", "TFLOP/s", "TFLOP", "B", "GB/s", "tokens/s")
    text = "it takes " + " and ".join(f"12.5 {unit}," for unit in units)
    lines = paragraph(console_of(width), text).splitlines()
    assert not any(line.rstrip().endswith("12.5") for line in lines)
    assert " ".join(lines) == text


def test_words_after_numbers_may_break():
    assert paragraph(console_of(20), "stage 2 of 16 sings 123 songs") == (
        "stage 2 of 16 sings\n123 songs"
    )


@pytest.mark.parametrize(("asked", "got"), [(10, MIN_WIDTH), (100, 100), (1000, MAX_WIDTH)])
def test_widths_are_bounded_and_lines_trimmed(asked, got):
    stream = io.StringIO()
    with opened(Console(file=stream, width=asked)) as out:
        assert out.width == got
        out.print("x   ")
        out.print("y")
    assert stream.getvalue() == "x\ny\n"


def test_nothing_is_printed_when_rendering_fails():
    stream = io.StringIO()

    def fail():
        with opened(Console(file=stream)) as out:
            out.print("half")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert stream.getvalue() == ""
