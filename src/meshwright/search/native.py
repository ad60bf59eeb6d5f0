"""The uniform search in the native core."""

from __future__ import annotations

from collections.abc import Callable

from meshwright import _core
from meshwright.search.result import UniformCandidate, UniformResult
from meshwright.search.tables import UniformTables


def search_uniform(
    tables: UniformTables,
    *,
    top_k: int,
    threads: int = 1,
    on_progress: Callable[[float], bool] | None = None,
) -> UniformResult:
    """Evaluate every candidate of a uniform space; equal to ``reference.search_uniform``.

    The result does not depend on ``threads``. The interpreter lock is free meanwhile, and
    Ctrl-C raises ``KeyboardInterrupt`` within about 50 ms.

    Args:
        tables: the space.
        top_k: how many of the fastest to keep.
        threads: how many to use.
        on_progress: called from this thread once before the work and then about every 50 ms
            with the share done; if it returns false, the search stops and returns what it has.

    Raises:
        ValueError: ``top_k`` or ``threads`` is below 1.
    """
    if top_k < 1:
        raise ValueError(f"top_k must be at least 1, is {top_k}")
    if threads < 1:
        raise ValueError(f"threads must be at least 1, is {threads}")
    best, pareto, excluded, candidates, evaluated, misfit, complete = _core.search_uniform(
        tables, top_k, threads, on_progress
    )
    return UniformResult(
        best=tuple(map(_candidate, best)),
        pareto=tuple(map(_candidate, pareto)),
        excluded=tuple(excluded),
        candidates=candidates,
        evaluated=evaluated,
        nearest_misfit=None if misfit is None else _candidate(misfit),
        complete=complete,
    )


def _candidate(row: _core.CandidateRow) -> UniformCandidate:
    shape, layout_row, partition, mode, step_s, peak_bytes, headroom_bytes = row
    return UniformCandidate(
        shape=shape,
        row=layout_row,
        partition=partition,
        mode=mode,
        step_s=step_s,
        peak_bytes=peak_bytes,
        headroom_bytes=headroom_bytes,
    )
