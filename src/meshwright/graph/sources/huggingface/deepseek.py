"""DeepSeek V2, V3 and V3.2, and Kimi K2, which is built like V3."""

from __future__ import annotations

from dataclasses import replace

from meshwright.graph.block import Block
from meshwright.graph.builders import MoeSpec
from meshwright.graph.builders.layer import Branch, residual_layer
from meshwright.graph.builders.mla import MlaSpec, latent_attention
from meshwright.graph.builders.sparse import IndexerSpec
from meshwright.graph.op import Mask
from meshwright.graph.sources.huggingface.assembly import (
    Tower,
    assemble,
    dense_branch,
    each,
    moe_branch,
    mtp_modules,
    tied,
)
from meshwright.graph.sources.huggingface.reader import ConfigReader
from meshwright.graph.sources.huggingface.registry import Architecture, register

#: Names of the number of routed experts.
EXPERTS = ("n_routed_experts", "num_local_experts", "num_experts")


def mla_spec(r: ConfigReader, *, indexer: bool = False) -> MlaSpec:
    """Shape of the latent attention; ``indexer`` makes it sparse where the fields say so."""
    spec = IndexerSpec(
        heads=r.positive("index_n_heads", default=64),
        head_dim=r.positive("index_head_dim", default=128),
        top_k=r.positive("index_topk", default=2048),
    )
    sparse = indexer or r.has("index_topk")
    query_rank = r.optional("q_lora_rank")
    if sparse and query_rank is None:
        raise r.error(
            "q_lora_rank is missing, and the indexer of sparse attention reads it",
            "q_lora_rank",
            allowed="a positive integer",
            fix="add q_lora_rank, or remove index_topk",
        )
    return MlaSpec(
        heads=r.positive("num_attention_heads"),
        query_rank=query_rank,
        kv_rank=r.positive("kv_lora_rank"),
        nope_dim=r.positive("qk_nope_head_dim"),
        rope_dim=r.positive("qk_rope_head_dim"),
        value_dim=r.positive("v_head_dim"),
        bias=r.flag("attention_bias"),
        mask=Mask(top_k=spec.top_k if sparse else None),
        indexer=spec if sparse else None,
    )


def mla_branch(spec: MlaSpec) -> Branch:
    """Latent attention as a branch."""
    return lambda b, x: latent_attention(b, x, spec)


def deepseek_moe(r: ConfigReader) -> MoeSpec:
    """Routed experts, and shared ones that form one wide expert."""
    experts = r.positive(*EXPERTS)
    width = r.positive("moe_intermediate_size")
    shared = r.count("n_shared_experts", "num_shared_experts", default=0)
    return MoeSpec(
        experts=experts,
        top_k=r.top_k("num_experts_per_tok", "num_experts_per_token", experts=experts),
        width=width,
        shared_width=width * shared,
    )


def sparse_layers(r: ConfigReader, *, layers: int, dense: int = 0) -> tuple[bool, ...]:
    """Per layer, whether it has experts; ``dense`` lead when the field is absent."""
    if not r.has(*EXPERTS):
        return (False,) * layers
    kinds = r.texts("mlp_layer_types", length=layers, allowed=("dense", "sparse"))
    if kinds is not None:
        return tuple(kind == "sparse" for kind in kinds)
    first = r.count("first_k_dense_replace", default=dense)
    every = r.positive("moe_layer_freq", default=1)
    return tuple(i >= first and i % every == 0 for i in range(layers))


def mla_layers(
    r: ConfigReader,
    spec: MlaSpec,
    *,
    indexed: tuple[bool, ...] | None = None,
    dense: int = 0,
) -> tuple[Block, ...]:
    """All layers: latent attention, then a dense layer or experts.

    ``indexed`` says which layers have an indexer of their own; the others use the keys that
    the one before them chose.
    """
    layers = r.layers("num_hidden_layers")
    kinds = sparse_layers(r, layers=layers, dense=dense)
    experts = deepseek_moe(r) if any(kinds) else None
    ffn = r.positive("intermediate_size") if not all(kinds) else 0
    hidden = r.positive("hidden_size")
    own = indexed or (True,) * layers
    shared = replace(spec, indexer=None)

    def build(kind: tuple[bool, bool]) -> Block:
        sparse, index = kind
        moe = experts if sparse else None
        return residual_layer(
            "moe_decoder" if moe else "decoder",
            hidden=hidden,
            mixer=mla_branch(spec if index else shared),
            feed_forward=moe_branch(moe) if moe else dense_branch(ffn),
            active_experts=moe.top_k if moe else 0,
        )

    return each(zip(kinds, own, strict=True), build)


def mla_model(
    r: ConfigReader,
    *,
    family: str,
    indexer: bool = False,
    indexed: tuple[bool, ...] | None = None,
    dense: int = 0,
    outer: ConfigReader | None = None,
    tower: Tower | None = None,
) -> Architecture:
    """A model of latent attention and experts.

    Args:
        r: its fields.
        family: the structure it is read as.
        indexer: attention is sparse even if no field says so.
        indexed: as in ``mla_layers``.
        dense: leading dense layers when the field is absent.
        outer: fields around those of the language model, with a vision ``tower``.
        tower: before the language model.
    """
    spec = mla_spec(r, indexer=indexer)
    layers = mla_layers(r, spec, indexed=indexed, dense=dense)
    share = tied(outer or r, r)
    moe = deepseek_moe(r) if r.has(*EXPERTS) else None
    mtp = mtp_modules(
        r,
        "num_nextn_predict_layers",
        tied=share,
        mixer=mla_branch(spec),
        feed_forward=moe_branch(moe) if moe else dense_branch(r.positive("intermediate_size")),
        active_experts=moe.top_k if moe else 0,
    )
    return assemble(r, family=family, layers=layers, tied=share, mtp=mtp, towers=(tower,))


@register("deepseek_v2")
def deepseek_v2(r: ConfigReader) -> Architecture:
    """DeepSeek V2 and V2-Lite."""
    return mla_model(r, family="deepseek_v2")


@register("deepseek_v3", "kimi_k2")
def deepseek_v3(r: ConfigReader) -> Architecture:
    """DeepSeek V3, V3.1 and R1; Kimi K2."""
    return mla_model(r, family="deepseek_v3", dense=3)


@register("deepseek_v32")
def deepseek_v32(r: ConfigReader) -> Architecture:
    """DeepSeek V3.2: V3 with sparse attention."""
    return mla_model(r, family="deepseek_v32", indexer=True, dense=3)
