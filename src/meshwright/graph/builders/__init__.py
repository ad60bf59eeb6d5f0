"""Builders: from the dimensions of an architecture to blocks of ops on named axes."""

from __future__ import annotations

from meshwright.graph.builders.attention import (
    AttentionSpec,
    attention_core,
    cross_attention,
    self_attention,
)
from meshwright.graph.builders.builder import BlockBuilder
from meshwright.graph.builders.decoder import LayerSpec, transformer_layer, transformer_layers
from meshwright.graph.builders.ends import (
    TOKEN_TABLE,
    embedding_block,
    head_block,
    loss,
    token_embedding,
)
from meshwright.graph.builders.mlp import MoeSpec, mlp, moe

__all__ = [
    "TOKEN_TABLE",
    "AttentionSpec",
    "BlockBuilder",
    "LayerSpec",
    "MoeSpec",
    "attention_core",
    "cross_attention",
    "embedding_block",
    "head_block",
    "loss",
    "mlp",
    "moe",
    "self_attention",
    "token_embedding",
    "transformer_layer",
    "transformer_layers",
]
