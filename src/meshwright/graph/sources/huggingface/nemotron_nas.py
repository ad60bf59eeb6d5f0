"""Nemotron-NAS and DeciLM: every layer is what an architecture search left of Llama's."""

from __future__ import annotations

import math

from meshwright.graph.block import Block
from meshwright.graph.builders import AttentionSpec, BlockBuilder
from meshwright.graph.builders.layer import Branch, residual_layer
from meshwright.graph.sources.huggingface.assembly import (
    assemble,
    attention_branch,
    dense_branch,
    each,
    tied,
)
from meshwright.graph.sources.huggingface.reader import ConfigReader
from meshwright.graph.sources.huggingface.registry import Architecture, register

#: Feed-forward widths are rounded up to a multiple of this.
WIDTH_STEP = 256
#: A branch that was replaced by one square matrix.
LINEAR = -1


@register("nemotron-nas", "deci", "decilm", "deci_lm")
def nemotron_nas(r: ConfigReader) -> Architecture:
    """Llama-3.1-Nemotron 51B, Llama-3.3-Nemotron-Super-49B, Llama-3.1-Nemotron-Ultra-253B."""
    hidden, layers = r.positive("hidden_size"), r.layers("num_hidden_layers")
    heads = r.positive("num_attention_heads")
    head_dim = r.head_dim(hidden=hidden, heads=heads)
    attention_bias, mlp_bias = r.flag("attention_bias"), r.flag("mlp_bias")
    shapes = _shapes(r, hidden=hidden, heads=heads, layers=layers)

    def mixer(kv_heads: int) -> Branch | None:
        if kv_heads == LINEAR:
            return _linear("attention_linear", bias=attention_bias)
        if not kv_heads:
            return None
        spec = AttentionSpec(
            heads=heads,
            kv_heads=kv_heads,
            head_dim=head_dim,
            qkv_bias=attention_bias,
            out_bias=attention_bias,
        )
        return attention_branch(spec)

    def feed_forward(width: int) -> Branch | None:
        if width == LINEAR:
            return _linear("mlp_linear", bias=mlp_bias)
        return dense_branch(width, bias=mlp_bias) if width else None

    def build(shape: tuple[int, int]) -> Block:
        return residual_layer(
            "decoder", hidden=hidden, mixer=mixer(shape[0]), feed_forward=feed_forward(shape[1])
        )

    present = [shape for shape in shapes if any(shape)]
    if len(present) < layers:
        r.assume(
            f"{layers - len(present)} of the {layers} layers do nothing (both branches are "
            "no_op) and are left out."
        )
    return assemble(r, family="nemotron_nas", layers=each(present, build), tied=tied(r, r))


def _linear(name: str, *, bias: bool) -> Branch:
    def branch(b: BlockBuilder, x: str) -> str:
        out = b.axis("hidden_out", b.axis_value("hidden").size or 1)
        y = b.matmul(name, x, contract=("hidden",), produce=(out,), bias=bias)
        # The next op reads it along the axis of the residual stream again.
        return b.elementwise(f"{name}_out", (y,), dims=b.dims(x), factor=0.0)

    return branch


def _shapes(
    r: ConfigReader, *, hidden: int, heads: int, layers: int
) -> tuple[tuple[int, int], ...]:
    """Per layer, key-value heads and feed-forward width; 0 is nothing, ``LINEAR`` a matrix."""
    per_layer = r.numbers("num_key_value_heads_per_layer", length=layers)
    if per_layer is not None and not r.has("block_configs"):
        return _early_shapes(r, per_layer, heads=heads)
    blocks = r.entries("block_configs", length=layers)
    if blocks is None:
        raise r.error(
            "block_configs is missing",
            "block_configs",
            allowed="one object per layer, with attention and ffn",
            fix="add block_configs",
        )
    return tuple((_kv_heads(block, heads=heads), _width(block, hidden=hidden)) for block in blocks)


def _early_shapes(
    r: ConfigReader, kv_heads: tuple[int, ...], *, heads: int
) -> tuple[tuple[int, int], ...]:
    """DeciLM-7B: only the key-value heads differ between layers."""
    width = r.positive("intermediate_size")
    for i, count in enumerate(kv_heads):
        if not count or heads % count:
            raise r.error(
                f"{heads} attention heads are not divisible by {count} key-value heads",
                f"num_key_value_heads_per_layer[{i}]",
                allowed=f"a divisor of {heads}",
                fix="correct the list",
            )
    return tuple((count, width) for count in kv_heads)


def _part(block: ConfigReader, name: str) -> ConfigReader:
    part = block.sub(name)
    if part is None:
        raise block.error(
            f"{name} is missing", name, allowed="an object", fix=f"add {name} to the block"
        )
    return part


def _kv_heads(block: ConfigReader, *, heads: int) -> int:
    part = _part(block, "attention")
    if part.flag("no_op"):
        return 0
    if part.flag("replace_with_linear"):
        return LINEAR
    if part.has("num_key_value_heads"):
        return part.kv_heads("num_key_value_heads", heads=heads)
    group = part.positive("n_heads_in_group")
    if heads % group:
        raise part.error(
            f"{heads} attention heads are not divisible by groups of {group}",
            "n_heads_in_group",
            allowed=f"a divisor of {heads}",
            fix="correct one of the two",
        )
    return heads // group


def _width(block: ConfigReader, *, hidden: int) -> int:
    """Feed-forward width: 2/3 of ``ffn_mult`` times hidden, rounded up."""
    part = _part(block, "ffn")
    if part.flag("no_op"):
        return 0
    if part.flag("replace_with_linear"):
        return LINEAR
    if part.has("intermediate_size"):
        return part.positive("intermediate_size")
    width = int(2 * part.number("ffn_mult") * hidden / 3)
    if not 1 <= width <= 2**31:
        raise part.error(
            f"ffn_mult gives a feed-forward width of {width}",
            "ffn_mult",
            allowed="a factor that gives a width from 1 to 2147483648",
            fix="correct ffn_mult",
        )
    return math.ceil(width / WIDTH_STEP) * WIDTH_STEP
