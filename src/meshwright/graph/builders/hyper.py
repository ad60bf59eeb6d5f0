"""Hyper-connections: several residual streams, mixed by learned weights at every branch.

Source: DeepSeek-V4 technical report, section 2.2 (manifold-constrained hyper-connections,
arXiv 2512.24880). With n streams a branch reads one weighted sum of them and writes back
to all: a projection of n x hidden to n (n + 2) mixing weights per token.
"""

from __future__ import annotations

from meshwright.graph.axis import BATCH, SEQ
from meshwright.graph.builders.builder import BlockBuilder
from meshwright.graph.builders.layer import Branch
from meshwright.graph.op import OpKind, Term
from meshwright.graph.tensor import Dtype

#: Axis over the residual streams.
STREAM = "stream"


def to_streams(b: BlockBuilder, x: str, *, streams: int) -> str:
    """Copy (batch, seq, hidden) to every stream."""
    stream = b.axis(STREAM, streams)
    return b.elementwise("streams", (x,), dims=(BATCH, SEQ, stream, "hidden"))


def hyper_branch(b: BlockBuilder, x: str, branch: Branch, *, label: str, streams: int) -> str:
    """One branch on the streams ``x`` (batch, seq, stream, hidden)."""
    mix = b.axis("stream_mix", streams * (streams + 2))
    weights = _mixing(b, x, label=label, mix=mix, scales=3)
    y = b.elementwise(
        f"{label}_read",
        (x, weights),
        dims=(BATCH, SEQ, "hidden"),
        saved=(x, weights),
        factor=2.0 * streams,
    )
    y = branch(b, b.norm(f"{label}_norm", y, over="hidden"))
    # Every new stream is a combination of all the old ones plus its share of the branch.
    return b.elementwise(
        f"{label}_write", (x, y, weights), saved=(x, y, weights), factor=2.0 * streams + 2.0
    )


def from_streams(b: BlockBuilder, x: str, *, streams: int) -> str:
    """Weighted sum of the streams, for the head."""
    weights = _mixing(b, x, label="streams", mix=STREAM, scales=1)
    return b.elementwise(
        "streams_read",
        (x, weights),
        dims=(BATCH, SEQ, "hidden"),
        saved=(x, weights),
        factor=2.0 * streams,
    )


def _mixing(b: BlockBuilder, x: str, *, label: str, mix: str, scales: int) -> str:
    """Mixing weights of every token, from all its streams."""
    scale = b.axis(f"stream_scale_{scales}", scales)
    # The division by the norm comes after the product (mHC, section 4.3): only the norm itself,
    # one number per token, is kept besides the streams.
    rms = b.activation(f"{label}_mix_rms", (BATCH, SEQ), Dtype.FP32)
    terms = (Term(factor=2.0, axes=b.dims(x)),)
    b.op(f"{label}_mix_rms", OpKind.NORM, (x,), (rms,), terms=terms, saved=(x,))
    # The output axis is named apart from the streams that are summed over.
    out = b.axis("stream_out", b.axis_value(STREAM).size or 1) if mix == STREAM else mix
    raw = b.matmul(f"{label}_mix", x, contract=(STREAM, "hidden"), produce=(out,), fused=True)
    base = b.parameter(f"{label}_mix.base", (out,))
    gain = b.parameter(f"{label}_mix.scale", (scale,))
    return b.elementwise(f"{label}_weights", (raw, rms, base, gain), saved=(raw, rms), factor=8.0)
