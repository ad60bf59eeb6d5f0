"""From a parsed configuration to the model graph."""

from __future__ import annotations

from collections.abc import Mapping

from meshwright.graph.model import ModelGraph, fold
from meshwright.graph.sources.huggingface.nearest import read_nearest
from meshwright.graph.sources.huggingface.reader import ConfigReader
from meshwright.graph.sources.huggingface.registry import reader_of


def load_huggingface(config: Mapping[str, object], *, name: str, source: str = "") -> ModelGraph:
    """The model that a parsed ``config.json`` describes.

    Args:
        config: the JSON object.
        name: what the model is called in the answer.
        source: where the description comes from; the messages name it.

    Raises:
        ModelError: a field is missing, wrong or contradicts another.

    Warns:
        AssumptionWarning: the model type is unknown, and a known structure was assumed.
    """
    reader = ConfigReader(config, where=source or "config.json")
    family = reader_of(reader.text("model_type"))
    architecture = family(reader) if family else read_nearest(reader)
    return ModelGraph(
        name=name,
        family=architecture.family,
        runs=fold(architecture.blocks),
        max_seq_length=architecture.max_seq_length,
        default_seq_length=architecture.default_seq_length,
        vocab_size=architecture.vocab_size,
        assumptions=tuple(dict.fromkeys(architecture.assumptions + reader.assumptions)),
        source=source,
    )
