"""What the readers of mixture-of-experts families share."""

from __future__ import annotations

from dataclasses import replace

from meshwright.graph.builders import AttentionSpec, LayerSpec, MoeSpec
from meshwright.graph.sources.huggingface.reader import ConfigReader

EXPERTS = (
    "num_local_experts",
    "num_experts",
    "n_routed_experts",
    "moe_num_experts",
    "num_moe_experts",
    "num_routed_experts",
    "n_experts",
)
TOP_K = (
    "num_experts_per_tok",
    "num_experts_per_token",
    "moe_k",
    "moe_topk",
    "moe_top_k",
    "moe_router_topk",
    "top_k",
)


def moe_layer(*, hidden: int, attention: AttentionSpec, moe: MoeSpec) -> LayerSpec:
    """A pre-norm RMS layer whose feed-forward is a mixture of experts."""
    return LayerSpec(hidden=hidden, attention=attention, moe=moe)


def read_moe(
    r: ConfigReader, *, width: int, shared_width: int = 0, shared_gate: bool = False
) -> MoeSpec:
    """A mixture of gated experts of ``width`` without biases."""
    experts = r.positive(*EXPERTS)
    return MoeSpec(
        experts=experts,
        top_k=r.top_k(*TOP_K, experts=experts),
        width=width,
        shared_width=shared_width,
        shared_gate=shared_gate,
    )


def alternate(
    r: ConfigReader, *, sparse: LayerSpec, dense_names: tuple[str, ...], layers: int
) -> tuple[LayerSpec, ...]:
    """Qwen's rule: sparse every ``decoder_sparse_step`` layers, except ``mlp_only_layers``.

    Args:
        r: the configuration.
        sparse: a layer with experts.
        dense_names: of the field with the width of a dense layer, read only if there is one.
        layers: their number.
    """
    step = r.positive("decoder_sparse_step", default=1)
    exceptions = set(r.numbers("mlp_only_layers") or ())
    is_sparse = [i not in exceptions and (i + 1) % step == 0 for i in range(layers)]
    if all(is_sparse):
        return (sparse,) * layers
    dense = replace(sparse, moe=None, ffn=r.positive(*dense_names))
    return tuple(sparse if chosen else dense for chosen in is_sparse)
