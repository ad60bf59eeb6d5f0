"""Builders: from the dimensions of an architecture to blocks of ops on named axes."""

from __future__ import annotations

from meshwright.graph.builders.attention import AttentionSpec, attention_core, self_attention
from meshwright.graph.builders.builder import BlockBuilder
from meshwright.graph.builders.decoder import LayerSpec, transformer_layer
from meshwright.graph.builders.ends import embedding_block, head_block, loss, token_embedding
from meshwright.graph.builders.mlp import MoeSpec, mlp, moe

__all__ = [
    "AttentionSpec",
    "BlockBuilder",
    "LayerSpec",
    "MoeSpec",
    "attention_core",
    "embedding_block",
    "head_block",
    "loss",
    "mlp",
    "moe",
    "self_attention",
    "token_embedding",
    "transformer_layer",
]
