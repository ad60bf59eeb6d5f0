"""The group: help, version, unknown commands, and what becomes of every kind of failure."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import time
import warnings

import pytest

import meshwright
from meshwright.cli import app, options
from meshwright.cli.failures import MAX_CHARS, MAX_LINES, report_error, shortened
from meshwright.cli.options import OFFLOAD, RECOMPUTE
from meshwright.cli.progress import SearchProgress
from meshwright.errors import AssumptionWarning, InfeasibleError, ModelError
from meshwright.strategy import (
    OPTIMIZERS,
    PRECISIONS,
    AttentionKernel,
    ContextAlgorithm,
    Offload,
    Recompute,
)

MAIN = "import sys; from meshwright.cli import main; sys.exit(main())"
SMALL = ("plan", "gpt2-xl", "-c", "1x2xA100-40GB", "-b", "8", "-s", "512")


def start(*args, **kwargs):
    return subprocess.Popen([sys.executable, "-c", MAIN, *args], text=True, **kwargs)


def test_version(run):
    outcome = run("--version")
    assert (outcome.code, outcome.out) == (0, f"meshwright {meshwright.__version__}\n")


@pytest.mark.parametrize("args", [(), ("--help",), ("-h",)])
def test_help_lists_the_commands_and_shows_examples(run, args):
    outcome = run(*args)
    assert outcome.code == 0
    for words in ("plan ", "estimate ", "inspect ", "validate ", "Examples:", "Exit codes:"):
        assert words in outcome.out


@pytest.mark.parametrize(
    ("command", "sections"),
    [
        ("plan", ("Cluster and workload:", "Space (", "Other:")),
        ("estimate", ("Cluster and workload:", "Strategy:", "Other:")),
        ("inspect", ("Options:",)),
        ("validate", ("Options:",)),
    ],
)
def test_help_of_commands_is_grouped(run, command, sections):
    outcome = run(command, "--help")
    places = [outcome.out.index(section) for section in sections]
    assert places == sorted(places)
    assert "Examples:" in outcome.out
    assert max(map(len, outcome.out.splitlines())) <= 100


def test_help_loads_no_numpy():
    code = "import sys; from meshwright.cli import main; main(['plan', '-h']); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = done.stdout.split("\n")[-2].split()
    assert "click" in loaded
    assert not {"numpy", "rich", "msgspec"} & set(loaded)


def test_unknown_command(run):
    outcome = run("estimat", "x")
    assert outcome.code == 2
    assert "did you mean `meshwright estimate`?" in outcome.err


@pytest.mark.parametrize(
    "args", [("plan",), ("plan", "x", "--no-such"), ("inspect",), ("inspect", "a", "b")]
)
def test_clicks_own_errors_have_our_form(run, args):
    outcome = run(*args)
    assert outcome.code == 2
    assert outcome.err.startswith("error:   ")
    assert f"fix:     see `meshwright {args[0]} --help`" in outcome.err
    found = json.loads(run(*args, "--json").out)
    assert found["error"]["type"] == "UsageError"


def test_the_words_of_options_are_those_of_the_strategy_room():
    assert set(PRECISIONS) == set(options.PRECISIONS)
    assert set(OPTIMIZERS) == set(options.OPTIMIZERS)
    assert tuple(kernel.value for kernel in AttentionKernel) == options.ATTENTION
    assert tuple(mode.value for mode in Recompute) == RECOMPUTE
    assert tuple(kind.value for kind in Offload) == OFFLOAD
    assert tuple(kind.value for kind in ContextAlgorithm) == options.CONTEXT_ALGORITHMS


def test_a_bug_is_said_to_be_one(run, monkeypatch):
    def fail(*_args, **_kwargs):
        raise KeyError("x")

    monkeypatch.setattr("meshwright.graph.sources.load_model", fail)
    outcome = run("inspect", "llama-3.1-8b")
    assert outcome.code == 1
    assert "this is a bug in meshwright: KeyError: 'x'" in outcome.err
    assert "Traceback" not in outcome.err
    monkeypatch.setenv("MESHWRIGHT_DEBUG", "1")
    assert "Traceback" in run("inspect", "llama-3.1-8b").err


def test_warnings_are_one_line_on_stderr(run, monkeypatch):
    from meshwright.graph import sources

    real = sources.load_model

    def warn(model):
        warnings.warn(AssumptionWarning("something\nwas assumed"), stacklevel=2)
        return real(model)

    monkeypatch.setattr("meshwright.graph.sources.load_model", warn)
    outcome = run("inspect", "gpt2-xl", "--json")
    assert outcome.code == 0
    assert outcome.err == "note: something was assumed\n"
    assert json.loads(outcome.out)["name"] == "gpt2-xl"


def test_messages_fill_one_screen_at_most(capsys):
    error = ModelError("a " * 10_000, where="b " * 9000, allowed="c " * 9000, fix="d\n" * 9000)
    assert report_error(error, as_json=False) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) <= MAX_LINES
    assert max(map(len, lines)) <= 80


def test_an_infeasible_request_is_an_object_alone_with_json(capsys):
    assert report_error(InfeasibleError("no"), as_json=True) == 3
    printed = capsys.readouterr()
    assert json.loads(printed.out)["error"]["what"] == "no"
    assert printed.err == ""


@pytest.mark.parametrize(
    ("text", "short"),
    [("a  b\nc", "a b c"), ("x" * 30, "x" * 9 + "…"), ("\x1b[31m", "?[31m"), ("\ud800", "?")],
)
def test_shortened(text, short):
    assert shortened(text, 10) == short
    assert set(MAX_CHARS) == {"what", "where", "allowed", "fix"}


def test_a_reader_that_leaves_is_no_error():
    child = start(*SMALL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    child.stdout.close()
    assert child.stderr.read() == ""
    assert child.wait(timeout=60) == 0
    child.stderr.close()


def test_output_that_cannot_be_written(run, monkeypatch):
    def refuse(_value):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("meshwright.cli.inspect.print_json", refuse)
    outcome = run("inspect", "gpt2-xl", "--json")
    assert outcome.code == 2
    assert "the output cannot be written: No space left on device" in outcome.err


def test_interrupts_end_with_130_and_no_traceback():
    args = ("plan", "deepseek-v3", "-c", "256x8xH800", "-b", "15360", "-s", "4096")
    for delay_s in (0.3, 2.5):
        child = start(*args, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        time.sleep(delay_s)
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=120)
        assert child.returncode == 130, err
        assert "Traceback" not in err
        assert not out or "then stopped" in " ".join(out.split())


def test_the_best_so_far_is_printed_on_interrupt(run, monkeypatch):
    class Interrupted(SearchProgress):
        def __call__(self, done):
            go_on = super().__call__(done)
            self._on_interrupt(signal.SIGINT, None) if not self.interrupted else None
            return go_on

    monkeypatch.setattr("meshwright.cli.plan.SearchProgress", Interrupted)
    outcome = run(*SMALL, "--json")
    assert outcome.code == 130
    assert json.loads(outcome.out)["best"]["fits"]


def test_progress_stops_the_search_and_a_second_interrupt_ends_it():
    progress = SearchProgress()
    with pytest.raises(KeyboardInterrupt):  # nothing has been searched: nothing to show
        progress._on_interrupt(signal.SIGINT, None)
    assert progress(0.0)
    progress._on_interrupt(signal.SIGINT, None)
    assert not progress(0.5)
    with pytest.raises(KeyboardInterrupt):
        progress._on_interrupt(signal.SIGINT, None)


def test_progress_keeps_the_time_limit_but_lets_the_search_begin():
    progress = SearchProgress(1e-9)
    assert progress(0.0)
    assert not progress(0.01)
    assert progress.timed_out
    assert not progress.interrupted


def test_all_commands_are_listed():
    assert app.cli.list_commands(None) == [
        *("plan", "estimate", "inspect", "validate", "calibrate")
    ]
