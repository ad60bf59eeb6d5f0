"""Mamba-2: a state-space recurrence computed in chunks.

Source: Dao & Gu, "Transformers are SSMs" (arXiv 2405.21060), section 6 and listing 1, for
the chunked form. Legend: T tokens, Q chunk length, H heads of width P, G groups of B and C
with N states each. Per sequence::

    scores of a chunk   C B^T          2 T Q N G
    inside a chunk      (L o C B^T) X  2 T Q P H
    states of a chunk   B^T X          2 T N P H
    from earlier chunks C h            2 T N P H
    passing states on   h <- a h + s   2 (T / Q) N P H
    skip                D X            2 T P H
"""

from __future__ import annotations

from dataclasses import dataclass

from meshwright.graph.axis import BATCH, SEQ, Axis, Split
from meshwright.graph.builders.builder import BlockBuilder
from meshwright.graph.op import OpKind, Term
from meshwright.graph.tensor import Dtype


@dataclass(frozen=True, slots=True, kw_only=True)
class Mamba2Spec:
    """Shape of one Mamba-2 mixer.

    Attributes:
        heads, head_dim: H and P.
        groups, state: G and N.
        kernel: taps of the causal convolution.
        chunk: Q.
        conv_bias, proj_bias: learned biases.
        norm: a gated norm before the output projection (a plain gate without it).
    """

    heads: int
    head_dim: int
    groups: int
    state: int
    kernel: int
    chunk: int
    conv_bias: bool = True
    proj_bias: bool = False
    norm: bool = True


def causal_conv(
    b: BlockBuilder, x: str, *, kernel: int, bias: bool, name: str, fused: bool = False
) -> str:
    """Depthwise convolution over the sequence, and its activation; memory bound."""
    taps = b.axis("conv_tap", kernel)
    channels = b.dims(x)[2:]
    inputs: tuple[str, ...] = (x, b.parameter(f"{name}.weight", (*channels, taps)))
    if bias:
        inputs += (b.parameter(f"{name}.bias", channels),)
    # One multiply-add per tap, then SiLU.
    return b.elementwise(name, inputs, saved=(x,), factor=2.0 * kernel + 4.0, fused=fused)


def chunk_axis(b: BlockBuilder, chunk: int) -> str:
    """The axis of chunks of ``chunk`` tokens."""
    scale = b.axis_value(SEQ).scale / chunk
    return b.add_axis(Axis(name="chunk", scale=scale, split=Split.CONTEXT))


def mamba2(b: BlockBuilder, x: str, spec: Mamba2Spec) -> str:
    """The mixer on ``x`` (batch, seq, hidden)."""
    head = b.axis("ssm_head", spec.heads, Split.TENSOR)
    dim = b.axis("ssm_dim", spec.head_dim)
    group = b.axis("ssm_group", spec.groups, Split.TENSOR)
    state = b.axis("ssm_state", spec.state)

    def project(name: str, produce: tuple[str, ...], *, fused: bool = True) -> str:
        return b.matmul(
            name, x, contract=("hidden",), produce=produce, bias=spec.proj_bias, fused=fused
        )

    gate = project("ssm_gate", (head, dim), fused=False)
    parts = [
        project("ssm_x", (head, dim)),
        project("ssm_b", (group, state)),
        project("ssm_c", (group, state)),
    ]
    step = project("ssm_step", (head,))
    value, enter, leave = (
        causal_conv(
            b,
            part,
            kernel=spec.kernel,
            bias=spec.conv_bias,
            name=f"{part}_conv",
            fused=i > 0,
        )
        for i, part in enumerate(parts)
    )
    y = _scan(b, value, enter, leave, step, chunk=spec.chunk)
    y = b.elementwise("ssm_gated", (y, gate), saved=(y, gate), factor=5.0)
    if spec.norm:
        y = b.norm("ssm_norm", y, over=(head, dim))
    return b.matmul("ssm_out", y, contract=(head, dim), produce=("hidden",), bias=spec.proj_bias)


def _scan(b: BlockBuilder, x: str, enter: str, leave: str, step: str, *, chunk: int) -> str:
    """The recurrence. The fused kernels keep its inputs and recompute the states."""
    head, dim = b.dims(x)[2:]
    group, state = b.dims(enter)[2:]
    # The scores of a group serve all its heads: their share per head keeps the count along the
    # axis that tensor parallelism splits.
    per_head = (b.axis_value(group).size or 1) / (b.axis_value(head).size or 1)
    chunks = chunk_axis(b, chunk)
    inside = b.axis("chunk_token", chunk)
    learned = tuple(b.parameter(f"ssm_scan.{n}", (head,)) for n in ("a_log", "d", "step_bias"))
    states = b.activation("ssm_states", (BATCH, chunks, head, dim, state), Dtype.FP32)
    out = b.activation("ssm_scan", b.dims(x))
    tokens = (BATCH, SEQ)
    b.op(
        "ssm_scan",
        OpKind.SCAN,
        (x, enter, leave, step, *learned),
        (out, states),
        terms=(
            Term(factor=2.0 * per_head, axes=(*tokens, inside, head, state)),
            Term(factor=2.0, axes=(*tokens, inside, head, dim)),
            Term(factor=4.0, axes=(*tokens, head, dim, state)),
            Term(factor=2.0, axes=(BATCH, chunks, head, dim, state)),
            Term(factor=2.0, axes=(*tokens, head, dim)),
        ),
        saved=(x, enter, leave, step),
        saved_unfused=(states,),
    )
    return out
