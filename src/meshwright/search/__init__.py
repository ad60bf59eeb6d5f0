"""Search: which candidates of a space are best."""

from __future__ import annotations

from meshwright.search.native import search_uniform
from meshwright.search.result import UniformCandidate, UniformResult
from meshwright.search.tables import NO_PIPELINE_LIMIT, UniformTables

__all__ = [
    "NO_PIPELINE_LIMIT",
    "UniformCandidate",
    "UniformResult",
    "UniformTables",
    "search_uniform",
]
