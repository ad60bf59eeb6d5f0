"""GLM 4.5 and later: experts with grouped heads (glm4_moe), or latent sparse attention."""

from __future__ import annotations

from meshwright.graph.block import Block
from meshwright.graph.builders import AttentionSpec
from meshwright.graph.builders.layer import residual_layer
from meshwright.graph.sources.huggingface.assembly import (
    assemble,
    attention_branch,
    dense_branch,
    each,
    moe_branch,
    mtp_modules,
    tied,
)
from meshwright.graph.sources.huggingface.deepseek import (
    deepseek_moe,
    mla_model,
    sparse_layers,
)
from meshwright.graph.sources.huggingface.reader import ConfigReader
from meshwright.graph.sources.huggingface.registry import Architecture, register


@register("glm4_moe")
def glm4_moe(r: ConfigReader) -> Architecture:
    """GLM 4.5, 4.6 and 4.5-Air."""
    hidden, layers = r.positive("hidden_size"), r.layers("num_hidden_layers")
    heads = r.positive("num_attention_heads")
    spec = AttentionSpec(
        heads=heads,
        kv_heads=r.kv_heads("num_key_value_heads", heads=heads),
        head_dim=r.head_dim(hidden=hidden, heads=heads),
        qkv_bias=r.flag("attention_bias"),
        qk_norm="head" if r.flag("use_qk_norm") else None,
    )
    kinds = sparse_layers(r, layers=layers)
    moe = deepseek_moe(r)
    ffn = 0 if all(kinds) else r.positive("intermediate_size")
    share = tied(r, r)
    mixer = attention_branch(spec)

    def build(sparse: bool) -> Block:
        return residual_layer(
            "moe_decoder" if sparse else "decoder",
            hidden=hidden,
            mixer=mixer,
            feed_forward=moe_branch(moe) if sparse else dense_branch(ffn),
            active_experts=moe.top_k if sparse else 0,
        )

    mtp = mtp_modules(
        r,
        "num_nextn_predict_layers",
        tied=share,
        mixer=mixer,
        feed_forward=moe_branch(moe),
        active_experts=moe.top_k,
    )
    return assemble(r, family="glm4_moe", layers=each(kinds, build), tied=share, mtp=mtp)


@register("glm4_moe_lite")
def glm4_moe_lite(r: ConfigReader) -> Architecture:
    """GLM 4.7 Flash: latent attention and experts."""
    return mla_model(r, family="glm4_moe_lite", dense=1)


@register("glm_moe_dsa")
def glm_moe_dsa(r: ConfigReader) -> Architecture:
    """GLM 5: latent sparse attention; later versions share one indexer among layers."""
    indexed = _indexed(r, layers=r.layers("num_hidden_layers"))
    return mla_model(r, family="glm_moe_dsa", indexer=True, indexed=indexed, dense=3)


def _indexed(r: ConfigReader, *, layers: int) -> tuple[bool, ...]:
    """Per layer, whether it has an indexer; the others reuse the last choice of keys."""
    kinds = r.texts("indexer_types", length=layers, allowed=("full", "shared"))
    if kinds is not None:
        return tuple(kind == "full" for kind in kinds)
    pattern = r.text("index_topk_pattern")
    if pattern:
        if len(pattern) != layers or set(pattern) - {"F", "S"}:
            raise r.error(
                f"index_topk_pattern has {len(pattern)} letters for {layers} layers",
                "index_topk_pattern",
                allowed=f"{layers} letters, F (full) or S (shared)",
                fix="correct the pattern or the number of layers",
            )
        return tuple(letter == "F" for letter in pattern)
    every = max(1, r.count("index_topk_freq", default=1))
    offset = r.count("index_skip_topk_offset", default=2)
    return tuple(max(i - offset + 1, 0) % every == 0 for i in range(layers))
