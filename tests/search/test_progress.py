"""Progress, cancellation and interruption of the native search."""

from __future__ import annotations

import signal
import threading

import pytest

from meshwright.search import native


@pytest.fixture(scope="module")
def endless(make_tables, repeat_shapes):
    """A space that takes minutes."""
    return repeat_shapes(make_tables(5), 1_000_000)


def test_progress_starts_at_zero_and_rises(endless):
    seen = []

    def on_progress(done):
        seen.append(done)
        return len(seen) < 4

    result = native.search_uniform(endless, top_k=3, threads=2, on_progress=on_progress)
    assert not result.complete
    assert seen[0] == 0.0
    assert seen == sorted(seen)
    assert 0.0 < seen[-1] < 1.0
    assert 0 < result.evaluated + sum(result.excluded) < result.candidates
    assert len(result.best) == 3


def test_cancelled_before_it_starts(make_tables):
    tables = make_tables(5)
    result = native.search_uniform(tables, top_k=3, on_progress=lambda _done: False)
    assert not result.complete
    assert (result.best, result.evaluated, sum(result.excluded)) == ((), 0, 0)
    assert result.candidates == tables.candidates


def test_an_error_in_the_hook_reaches_the_caller(endless):
    calls = []

    def on_progress(done):
        calls.append(done)
        if len(calls) == 2:
            raise RuntimeError("from the hook")
        return True

    with pytest.raises(RuntimeError, match="from the hook"):
        native.search_uniform(endless, top_k=1, on_progress=on_progress)


def test_the_hook_must_answer(make_tables):
    with pytest.raises(TypeError, match="must return a bool"):
        native.search_uniform(make_tables(5), top_k=1, on_progress=lambda _done: None)


def test_a_signal_interrupts_without_a_hook(endless):
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        with pytest.raises(KeyboardInterrupt):
            native.search_uniform(endless, top_k=1)
    finally:
        signal.signal(signal.SIGALRM, before)


def test_other_python_threads_run_meanwhile(endless):
    ran = threading.Event()
    threading.Thread(target=ran.set).start()
    # The search ends only once the other thread has had the interpreter.
    result = native.search_uniform(endless, top_k=1, on_progress=lambda _done: not ran.is_set())
    assert not result.complete


@pytest.mark.parametrize("limits", [{"top_k": 0}, {"top_k": 1, "threads": 0}])
def test_limits_must_be_positive(make_tables, limits):
    with pytest.raises(ValueError, match="must be at least 1"):
        native.search_uniform(make_tables(0), **limits)
