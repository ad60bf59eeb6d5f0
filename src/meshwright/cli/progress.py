"""Progress: of a search, with a bar after a second, a time limit and Ctrl-C; of other work."""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

#: A shorter search shows no bar.
BAR_AFTER_S = 1.0


class SearchProgress:
    """Called by the search with the share done; says whether to go on.

    Once the search has begun, the first Ctrl-C stops it and it returns the best it has; any
    other Ctrl-C ends the program as usual.

    Args:
        time_limit_s: after which the search is stopped, if any.

    Attributes:
        interrupted, timed_out: why the search was stopped.
    """

    def __init__(self, time_limit_s: float | None = None) -> None:
        self._started = time.monotonic()
        self._limit_s = time_limit_s
        self._bar: tuple[Progress, TaskID] | None = None
        self._previous: Callable[[int, FrameType | None], object] | int | None = None
        self._begun = False
        self.interrupted = False
        self.timed_out = False

    def __enter__(self) -> SearchProgress:
        if threading.current_thread() is threading.main_thread():  # others get no signals
            self._previous = signal.signal(signal.SIGINT, self._on_interrupt)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._previous is not None:
            signal.signal(signal.SIGINT, self._previous)
        if self._bar is not None:
            self._bar[0].stop()

    def __call__(self, done: float) -> bool:
        """Show the share done; false stops the search."""
        self._begun = True
        elapsed = time.monotonic() - self._started
        if self._limit_s is not None and elapsed > self._limit_s and done > 0.0:
            self.timed_out = True
        if elapsed > BAR_AFTER_S and sys.stderr.isatty():
            self._show(done)
        return not (self.interrupted or self.timed_out)

    def _show(self, done: float) -> None:
        if self._bar is None:
            from rich.console import Console
            from rich.progress import Progress

            bar = Progress(console=Console(stderr=True), transient=True)
            self._bar = (bar, bar.add_task("searching", total=1.0))
            bar.start()
        progress, task = self._bar
        progress.update(task, completed=done)

    def _on_interrupt(self, number: int, frame: FrameType | None) -> None:
        del number, frame
        if self.interrupted or not self._begun:
            raise KeyboardInterrupt
        self.interrupted = True


@contextmanager
def counting_bar(title: str) -> Iterator[Callable[[int, int], None]]:
    """A function that shows how many things are done, and of how many; on a terminal alone."""
    if not sys.stderr.isatty():
        yield lambda _done, _total: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(title, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)
