"""A conformer tower for audio: convolutions to tokens, layers that also convolve, a projector.

Source: the model code of Gemma 4 in Hugging Face transformers (a universal speech model,
arXiv 2303.01037). Two convolutions of stride 2 take 4 frames to one token; a layer is half a
feed-forward layer, local attention, a gated convolution and half a feed-forward layer.
"""

from __future__ import annotations

from dataclasses import dataclass

from meshwright.graph.axis import BATCH, SEQ, Axis, Split
from meshwright.graph.block import Block, BlockRole
from meshwright.graph.builders.attention import attention_core
from meshwright.graph.builders.builder import BlockBuilder
from meshwright.graph.builders.mlp import mlp
from meshwright.graph.op import Mask, OpKind, Term

#: Mel bands of a frame, taps of a convolution, frames per token: fixed in the architecture.
BANDS, TAPS, FRAMES = 128, 9, 4


@dataclass(frozen=True, slots=True, kw_only=True)
class AudioSpec:
    """Shape of the tower.

    Attributes:
        tokens: of one clip.
        hidden, heads: of the layers.
        channels: of the two convolutions.
        kernel: taps of the layers' convolution over time.
        window: tokens back that a token attends to.
        output: width of the tower's last projection; ``text`` that of the language model.
    """

    tokens: int
    hidden: int
    heads: int
    channels: tuple[int, int]
    kernel: int
    window: int
    output: int
    text: int


def _builder(name: str, role: BlockRole, spec: AudioSpec) -> BlockBuilder:
    b = BlockBuilder(name, role, seq=Axis(name=SEQ, size=spec.tokens, split=Split.CONTEXT))
    b.axis("hidden", spec.hidden)
    return b


def audio_embedding(spec: AudioSpec, *, name: str = "audio_embedding") -> Block:
    """From mel frames to the tower's first hidden state."""
    b = _builder(name, BlockRole.EMBEDDING, spec)
    first, second = spec.channels
    taps = b.axis("conv_tap", TAPS)
    inner, outer = b.axis("channel_1", first), b.axis("channel_2", second)
    # Per token: half the frames in half the bands, then one frame in a quarter of the bands.
    half, quarter = b.axis("half", FRAMES // 2 * BANDS // 2), b.axis("quarter", BANDS // 4)
    frames = b.input("frames", (BATCH, SEQ, b.axis("frame_values", FRAMES * BANDS)))
    x = b.activation("conv_1", (BATCH, SEQ, half, inner))
    weight = b.parameter("conv_1.weight", (taps, inner))
    terms = (Term(factor=2.0, axes=(BATCH, SEQ, half, taps, inner)),)
    b.op("conv_1", OpKind.CONV, (frames, weight), (x,), terms=terms, saved=(frames,))
    x = b.norm("conv_1_norm", x, over=inner)
    y = b.activation("conv_2", (BATCH, SEQ, quarter, outer))
    weight = b.parameter("conv_2.weight", (taps, inner, outer))
    terms = (Term(factor=2.0, axes=(BATCH, SEQ, quarter, taps, inner, outer)),)
    b.op("conv_2", OpKind.CONV, (x, weight), (y,), terms=terms, saved=(x,))
    y = b.norm("conv_2_norm", y, over=outer)
    # The projection reads as many bands as the first convolution has channels, over four.
    bands = b.axis("bands", max(1, first // 4))
    y = b.elementwise("conv_activation", (y,), dims=(BATCH, SEQ, bands, outer), saved=(y,))
    return b.build(
        output=b.matmul("conv_projection", y, contract=(bands, outer), produce=("hidden",))
    )


def conformer_layer(spec: AudioSpec, *, name: str = "audio_encoder") -> Block:
    """One layer."""
    b = _builder(name, BlockRole.LAYER, spec)
    x = b.input("x", (BATCH, SEQ, "hidden"))
    x = _half(b, x, spec, prefix="first_")
    y = _attention(b, b.norm("attention_norm", x, over="hidden"), spec)
    x = b.residual("attention_residual", x, b.norm("attention_post_norm", y, over="hidden"))
    x = b.residual("conv_residual", x, _convolution(b, x, spec))
    x = _half(b, x, spec, prefix="second_")
    return b.build(output=b.norm("norm", x, over="hidden"))


def _half(b: BlockBuilder, x: str, spec: AudioSpec, *, prefix: str) -> str:
    y = b.norm(f"{prefix}norm", x, over="hidden")
    y = mlp(b, y, width=4 * spec.hidden, gated=False, prefix=prefix)
    return b.residual(f"{prefix}residual", x, b.norm(f"{prefix}post_norm", y, over="hidden"))


def _attention(b: BlockBuilder, x: str, spec: AudioSpec) -> str:
    head = b.axis("head", spec.heads, Split.TENSOR)
    dim = b.axis("head_dim", spec.hidden // spec.heads)
    q, k, v = (
        b.matmul(part, x, contract=("hidden",), produce=(head, dim), fused=i > 0)
        for i, part in enumerate(("query", "key", "value"))
    )
    # Projects the few relative positions, and scales each channel of the queries.
    b.parameter("relative_key.weight", ("hidden", head, dim))
    q = b.elementwise("query_scaled", (q, b.parameter("query_scale", (dim,))), saved=(q,))
    keys = Axis(name="keys", size=spec.tokens)
    context = attention_core(b, q, k, v, mask=Mask(window=spec.window), keys=keys)
    return b.matmul("attention_out", context, contract=(head, dim), produce=("hidden",))


def _convolution(b: BlockBuilder, x: str, spec: AudioSpec) -> str:
    """Gated projection, depthwise convolution over time, projection."""
    channel = b.axis("conv_channel", spec.hidden, Split.TENSOR)
    x = b.norm("conv_norm", x, over="hidden")
    value = b.matmul("conv_value", x, contract=("hidden",), produce=(channel,))
    gate = b.matmul("conv_gate", x, contract=("hidden",), produce=(channel,), fused=True)
    y = b.elementwise("conv_gated", (value, gate), saved=(value, gate), factor=5.0)
    weight = b.parameter("conv.weight", (channel, b.axis("kernel", spec.kernel)))
    y = b.elementwise("conv", (y, weight), saved=(y,), factor=2.0 * spec.kernel)
    y = b.norm("conv_inner_norm", y, over=channel)
    return b.matmul("conv_out", y, contract=(channel,), produce=("hidden",))


def audio_projector(spec: AudioSpec, *, name: str = "audio_projector") -> Block:
    """The tower's last projection, and the one to the language model, as a layer."""
    b = _builder(name, BlockRole.LAYER, spec)
    x = b.input("x", (BATCH, SEQ, "hidden"))
    output, text = b.axis("tower_output", spec.output), b.axis("text", spec.text)
    x = b.matmul("tower_output", x, contract=("hidden",), produce=(output,), bias=True)
    x = b.norm("projector_norm", x, over=output, learned=False)
    return b.build(output=b.matmul("projector", x, contract=(output,), produce=(text,)))
