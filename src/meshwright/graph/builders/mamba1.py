"""Mamba: the selective state space of the first kind, one state vector per channel.

Source: Gu & Dao (arXiv 2312.00752), section 3. Per token, channel and state, eight operations,
counted from its recurrence: dt A, exp, dt x, times B, h times the decay, plus, times C, sum;
and two per token and channel for the skip.
"""

from __future__ import annotations

from dataclasses import dataclass

from meshwright.graph.axis import BATCH, SEQ, Split
from meshwright.graph.builders.builder import BlockBuilder
from meshwright.graph.builders.mamba import causal_conv
from meshwright.graph.op import OpKind, Term


@dataclass(frozen=True, slots=True, kw_only=True)
class Mamba1Spec:
    """Shape of one mixer.

    Attributes:
        inner: channels.
        state: numbers of state per channel.
        rank: of the step size, which is projected back to all channels.
        kernel: taps of the causal convolution.
        conv_bias, proj_bias: learned biases.
        norms: step, B and C are normed (Jamba).
    """

    inner: int
    state: int
    rank: int
    kernel: int
    conv_bias: bool = True
    proj_bias: bool = False
    norms: bool = False


def mamba1(b: BlockBuilder, x: str, spec: Mamba1Spec) -> str:
    """The mixer on ``x`` (batch, seq, hidden)."""
    inner = b.axis("ssm_inner", spec.inner, Split.TENSOR)
    state, rank = b.axis("ssm_state", spec.state), b.axis("ssm_rank", spec.rank)
    bias = spec.proj_bias
    value = b.matmul("ssm_x", x, contract=("hidden",), produce=(inner,), bias=bias)
    gate = b.matmul("ssm_gate", x, contract=("hidden",), produce=(inner,), bias=bias, fused=True)
    value = causal_conv(b, value, kernel=spec.kernel, bias=spec.conv_bias, name="ssm_conv")

    def select(name: str, axis: str, *, fused: bool = True) -> str:
        y = b.matmul(name, value, contract=(inner,), produce=(axis,), fused=fused)
        return b.norm(f"{name}_norm", y, over=axis) if spec.norms else y

    step = select("ssm_step_rank", rank, fused=False)
    enter, leave = select("ssm_b", state), select("ssm_c", state)
    step = b.matmul("ssm_step", step, contract=(rank,), produce=(inner,), bias=True)
    learned = (
        b.parameter("ssm_scan.a_log", (inner, state)),
        b.parameter("ssm_scan.d", (inner,)),
    )
    out = b.activation("ssm_scan", b.dims(value))
    # The fused kernel keeps the inputs and recomputes the states.
    b.op(
        "ssm_scan",
        OpKind.SCAN,
        (value, enter, leave, step, *learned),
        (out,),
        terms=(
            Term(factor=8.0, axes=(BATCH, SEQ, inner, state)),
            Term(factor=2.0, axes=(BATCH, SEQ, inner)),
        ),
        saved=(value, enter, leave, step),
    )
    y = b.elementwise("ssm_gated", (out, gate), saved=(out, gate), factor=5.0)
    return b.matmul("ssm_out", y, contract=(inner,), produce=("hidden",), bias=bias)
