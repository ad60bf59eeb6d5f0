"""Where model graphs come from: configurations, catalogue names, files."""

from __future__ import annotations

from meshwright.graph.sources.load import load_model

__all__ = ["load_model"]
