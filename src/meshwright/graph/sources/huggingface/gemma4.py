"""Gemma 4: normed attention of two shapes, experts beside a dense layer, reused keys."""

from __future__ import annotations

from dataclasses import dataclass

from meshwright.graph.axis import BATCH, SEQ
from meshwright.graph.block import Block, BlockRole
from meshwright.graph.builders import BlockBuilder, MoeSpec, mlp, moe, token_embedding
from meshwright.graph.builders.reused_kv import NormedAttentionSpec, normed_attention
from meshwright.graph.op import Mask, OpKind
from meshwright.graph.sources.huggingface.assembly import assemble, each, tied
from meshwright.graph.sources.huggingface.gemma4_towers import audio_tower, image_tower
from meshwright.graph.sources.huggingface.reader import ConfigReader
from meshwright.graph.sources.huggingface.registry import Architecture, register

#: A sliding layer five times, then a full one, unless ``layer_types`` says otherwise.
PATTERN = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """One layer; ``per_layer`` is the width of the input that every layer gets of its own."""

    hidden: int
    attention: NormedAttentionSpec
    ffn: int
    moe: MoeSpec | None
    per_layer: int


@register("gemma4_text", "gemma4_unified_text")
def gemma4_text(r: ConfigReader) -> Architecture:
    """The language model alone."""
    return _gemma4(r, r)


@register("gemma4", "gemma4_unified")
def gemma4(r: ConfigReader) -> Architecture:
    """The language model behind its towers for images and audio."""
    return _gemma4(r, r.text_model())


def _gemma4(outer: ConfigReader, r: ConfigReader) -> Architecture:
    hidden, layers = r.positive("hidden_size"), r.layers("num_hidden_layers")
    per_layer = r.count("hidden_size_per_layer_input", default=256)
    attentions = _attentions(r, layers=layers)
    ffn = r.positive("intermediate_size")
    experts = _experts(r)
    double = r.flag("use_double_wide_mlp")

    def spec(attention: NormedAttentionSpec) -> Layer:
        wide = 2 if double and attention.reuse else 1
        return Layer(
            hidden=hidden, attention=attention, ffn=ffn * wide, moe=experts, per_layer=per_layer
        )

    share = tied(outer, r, default=True)
    vision = outer.sub("vision_config") if outer is not r else None
    audio = outer.sub("audio_config") if outer is not r else None
    return assemble(
        r,
        family="gemma4",
        layers=each(map(spec, attentions), _layer),
        tied=share,
        towers=(
            image_tower(outer, vision, hidden=hidden) if vision else None,
            audio_tower(outer, audio, hidden=hidden) if audio else None,
        ),
        embedding=_embedding(r, layers=layers, per_layer=per_layer),
    )


def _attentions(r: ConfigReader, *, layers: int) -> tuple[NormedAttentionSpec, ...]:
    """Attention of every layer: sliding or full, with its own keys or those of another."""
    heads = r.positive("num_attention_heads")
    kv_heads = r.kv_heads("num_key_value_heads", heads=heads)
    shared = r.flag("attention_k_eq_v")
    global_kv = kv_heads
    if shared and r.has("num_global_key_value_heads"):
        global_kv = r.kv_heads("num_global_key_value_heads", heads=heads)
    reused = r.count("num_kv_shared_layers")
    bias = r.flag("attention_bias")
    head_dim = r.positive("head_dim", default=256)
    full_dim = r.positive("global_head_dim", default=512)
    window = r.positive("sliding_window", default=512)
    causal = r.text("use_bidirectional_attention") != "all"
    allowed = ("sliding_attention", "full_attention")
    kinds = r.texts("layer_types", length=layers, allowed=allowed)
    if kinds is None:
        kinds = tuple(
            "full_attention" if (i + 1) % PATTERN == 0 or i == layers - 1 else allowed[0]
            for i in range(layers)
        )

    def attention(i: int) -> NormedAttentionSpec:
        full = kinds[i] == "full_attention"
        return NormedAttentionSpec(
            heads=heads,
            kv_heads=global_kv if full else kv_heads,
            head_dim=full_dim if full else head_dim,
            mask=Mask(causal=causal, window=None if full else window),
            bias=bias,
            keys_are_values=full and shared,
            reuse=i >= layers - reused,
        )

    return tuple(attention(i) for i in range(layers))


def _experts(r: ConfigReader) -> MoeSpec | None:
    if not r.flag("enable_moe_block"):
        return None
    experts = r.positive("num_experts")
    return MoeSpec(
        experts=experts,
        top_k=r.top_k("top_k_experts", "num_experts_per_tok", experts=experts),
        width=r.positive("moe_intermediate_size", "expert_intermediate_size"),
    )


def _layer(spec: Layer) -> Block:
    kind = "moe_decoder" if spec.moe else "decoder"
    sliding = "sliding_" if spec.attention.mask.window else ""
    b = BlockBuilder(f"{sliding}{kind}", BlockRole.LAYER)
    b.axis("hidden", spec.hidden)
    x = b.input("x", (BATCH, SEQ, "hidden"))
    y = normed_attention(b, b.norm("attention_norm", x, over="hidden"), spec.attention)
    x = b.residual("attention_residual", x, b.norm("attention_post_norm", y, over="hidden"))
    y = mlp(b, b.norm("mlp_norm", x, over="hidden"), width=spec.ffn, gated=True)
    if spec.moe is not None:
        y = _beside_experts(b, x, y, spec.moe)
    x = b.residual("mlp_residual", x, b.norm("mlp_post_norm", y, over="hidden"))
    if spec.per_layer:
        x = _add_layer_input(b, x, width=spec.per_layer)
    return b.build(output=x, active_experts=spec.moe.top_k if spec.moe else 0)


def _beside_experts(b: BlockBuilder, x: str, dense: str, spec: MoeSpec) -> str:
    """The dense layer's output plus that of the experts, each behind its norm."""
    dense = b.norm("dense_post_norm", dense, over="hidden")
    routed = moe(b, b.norm("moe_norm", x, over="hidden"), spec)
    # The router scales its input, and its choice per expert, by learned vectors.
    b.parameter("moe_router.scale", ("hidden",))
    b.parameter("moe_router.expert_scale", ("moe_router_expert",))
    return b.elementwise("branches", (dense, b.norm("moe_post_norm", routed, over="hidden")))


def _add_layer_input(b: BlockBuilder, x: str, *, width: int) -> str:
    """Gate the layer's own input by the hidden state and add it."""
    axis = b.axis("layer_input", width)
    own = b.input("layer_input", (BATCH, SEQ, axis))
    gate = b.matmul("layer_input_gate", x, contract=("hidden",), produce=(axis,))
    y = b.elementwise("layer_input_gated", (gate, own), saved=(gate, own), factor=9.0)
    y = b.matmul("layer_input_projection", y, contract=(axis,), produce=("hidden",))
    return b.residual("layer_input_residual", x, b.norm("layer_input_norm", y, over="hidden"))


def _embedding(r: ConfigReader, *, layers: int, per_layer: int) -> Block:
    """Token table, and with ``per_layer`` the table and projection of the layers' inputs."""
    b = BlockBuilder("embedding", BlockRole.EMBEDDING)
    x = token_embedding(b, vocab=r.positive("vocab_size"), hidden=r.positive("hidden_size"))
    if per_layer:
        rows = b.axis("layer_vocab", r.positive("vocab_size_per_layer_input", default=262_144))
        layer, width = b.axis("layer", layers), b.axis("layer_input", per_layer)
        table = b.parameter("layer_embedding.weight", (rows, layer, width))
        out = b.activation("layer_embedding", (BATCH, SEQ, layer, width))
        b.op("layer_embedding", OpKind.EMBEDDING, ("tokens", table), (out,), saved=("tokens",))
        mixed = b.matmul("layer_projection", x, contract=("hidden",), produce=(layer, width))
        mixed = b.norm("layer_projection_norm", mixed, over=width)
        b.elementwise("layer_inputs", (mixed, out), factor=2.0)
    return b.build(output=x)
