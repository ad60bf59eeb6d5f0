"""Search: which candidates of a space are best."""

from __future__ import annotations

from meshwright.search.native import search_uniform
from meshwright.search.result import UniformCandidate, UniformResult
from meshwright.search.tables import UniformTables

__all__ = ["UniformCandidate", "UniformResult", "UniformTables", "search_uniform"]
