"""Feed-forward layers: plain, gated, and mixtures of experts."""

from __future__ import annotations

from dataclasses import dataclass

from meshwright.graph.axis import BATCH, CHOICE, Split
from meshwright.graph.builders.builder import BlockBuilder
from meshwright.graph.op import OpKind, Term


def mlp(
    b: BlockBuilder,
    x: str,
    *,
    width: int,
    gated: bool,
    bias: bool = False,
    inner_dropout: bool = False,
    activation_parameters: int = 0,
    prefix: str = "",
) -> str:
    """A dense feed-forward layer of ``width`` (two matrices, or three when gated).

    ``inner_dropout`` drops the activation between them (T5). ``activation_parameters`` are
    learned numbers of the activation itself (xIELU).
    """
    ffn = b.axis(f"{prefix}ffn", width, Split.TENSOR)

    def into(name: str, *, fused: bool = False) -> str:
        return b.matmul(
            f"{prefix}{name}", x, contract=("hidden",), produce=(ffn,), bias=bias, fused=fused
        )

    if gated:
        gate, up = into("gate"), into("up", fused=True)
        y = b.elementwise(f"{prefix}activation", (gate, up), saved=(gate, up), factor=6.0)
    else:
        up = into("up")
        read: tuple[str, ...] = (up,)
        if activation_parameters:
            shape = b.axis(f"{prefix}activation_shape", activation_parameters)
            read += (b.parameter(f"{prefix}activation.weight", (shape,)),)
        y = b.elementwise(f"{prefix}activation", read, saved=(up,), factor=8.0)
    if inner_dropout:
        y = b.dropout(f"{prefix}activation_dropout", y)
    return b.matmul(f"{prefix}down", y, contract=(ffn,), produce=("hidden",), bias=bias)


@dataclass(frozen=True, slots=True, kw_only=True)
class MoeSpec:
    """Shape of a mixture of experts.

    Attributes:
        experts, top_k: routed experts; how many of them a token visits.
        width: feed-forward width of one expert.
        gated: three matrices per expert instead of two.
        expert_bias: biases on the experts' matrices.
        router_bias: a learned bias on the router's logits.
        shared_width: width of the always-on shared expert; 0 without one.
        shared_bias: biases on the shared expert's matrices.
        shared_gate: the shared expert is scaled by a learned scalar gate.
        latent: channels that the routed experts work on, behind a projection and before one
            back (their biases are ``latent_bias``); ``None`` for the whole hidden state.
    """

    experts: int
    top_k: int
    width: int
    gated: bool = True
    expert_bias: bool = False
    router_bias: bool = False
    shared_width: int = 0
    shared_bias: bool = False
    shared_gate: bool = False
    latent: int | None = None
    latent_bias: bool = False


def moe(b: BlockBuilder, x: str, spec: MoeSpec, *, prefix: str = "moe_") -> str:
    """Router, dispatch, experts, combine and shared expert."""
    weights = _route(b, x, spec, prefix=prefix)
    inner, entering = "hidden", x
    if spec.latent is not None:
        inner = b.axis(f"{prefix}latent", spec.latent)
        entering = b.matmul(
            f"{prefix}into_latent", x, contract=("hidden",), produce=(inner,), bias=spec.latent_bias
        )
    combined = _experts(b, entering, weights, spec, inner=inner, prefix=prefix)
    if spec.latent is not None:
        combined = b.matmul(
            f"{prefix}out_of_latent",
            combined,
            contract=(inner,),
            produce=("hidden",),
            bias=spec.latent_bias,
        )
    if not spec.shared_width:
        return combined
    return b.elementwise(f"{prefix}sum", (combined, _shared(b, x, spec, prefix=prefix)))


def _route(b: BlockBuilder, x: str, spec: MoeSpec, *, prefix: str) -> str:
    """Logits of all experts, and the weights of the chosen ones."""
    router = b.axis(f"{prefix}router_expert", spec.experts)
    b.axis(CHOICE, spec.top_k)
    logits = b.matmul(
        f"{prefix}router", x, contract=("hidden",), produce=(router,), bias=spec.router_bias
    )
    weights = b.activation(f"{prefix}weights", (BATCH, b.dims(x)[1], CHOICE))
    b.op(
        f"{prefix}top_k",
        OpKind.ROUTER,
        (logits,),
        (weights,),
        terms=(Term(factor=4.0, axes=b.dims(logits)),),
        saved=(logits, weights),
    )
    return weights


def _experts(
    b: BlockBuilder, x: str, weights: str, spec: MoeSpec, *, inner: str, prefix: str
) -> str:
    """Tokens to their experts, through them, and back."""
    expert = b.axis(f"{prefix}expert", spec.experts, Split.EXPERT)
    width = b.axis(f"{prefix}expert_ffn", spec.width, Split.EXPERT_TENSOR)
    seq = b.dims(x)[1]
    routed = b.activation(f"{prefix}routed", (BATCH, seq, CHOICE, inner))
    b.op(f"{prefix}dispatch", OpKind.DISPATCH, (x,), (routed,))

    def grouped(name: str, y: str, contract: str, produce: str, *, fused: bool = False) -> str:
        return b.matmul(
            f"{prefix}{name}",
            y,
            contract=(contract,),
            produce=(produce,),
            per=(expert,),
            bias=spec.expert_bias,
            kind=OpKind.GROUPED_MATMUL,
            fused=fused,
        )

    if spec.gated:
        gate = grouped("expert_gate", routed, inner, width)
        up = grouped("expert_up", routed, inner, width, fused=True)
        y = b.elementwise(f"{prefix}expert_activation", (gate, up), saved=(gate, up), factor=6.0)
    else:
        up = grouped("expert_up", routed, inner, width)
        y = b.elementwise(f"{prefix}expert_activation", (up,), saved=(up,), factor=8.0)
    y = grouped("expert_down", y, width, inner)
    combined = b.activation(f"{prefix}combined", (BATCH, seq, inner))
    b.op(
        f"{prefix}combine",
        OpKind.COMBINE,
        (y, weights),
        (combined,),
        terms=(Term(factor=2.0, axes=b.dims(y)),),
        saved=(y,),
    )
    return combined


def _shared(b: BlockBuilder, x: str, spec: MoeSpec, *, prefix: str) -> str:
    """The expert that every token visits."""
    shared = mlp(
        b,
        x,
        width=spec.shared_width,
        gated=spec.gated,
        bias=spec.shared_bias,
        prefix=f"{prefix}shared_",
    )
    if not spec.shared_gate:
        return shared
    one = b.axis(f"{prefix}one", 1)
    scalar = b.matmul(f"{prefix}shared_gate_logit", x, contract=("hidden",), produce=(one,))
    return b.elementwise(f"{prefix}shared_gated", (shared, scalar), saved=(shared, scalar))
