"""Model descriptions in the form of Hugging Face's ``config.json``."""

from __future__ import annotations

from meshwright.graph.sources.huggingface.load import load_huggingface
from meshwright.graph.sources.huggingface.reader import ConfigReader
from meshwright.graph.sources.huggingface.registry import (
    Architecture,
    register,
    registered,
)

__all__ = ["Architecture", "ConfigReader", "load_huggingface", "register", "registered"]
