"""Llama 4: chunked attention, experts every few layers with a shared one, a vision tower."""

from __future__ import annotations

from meshwright.graph.builders import AttentionSpec, LayerSpec, MoeSpec, transformer_layers
from meshwright.graph.builders.vision import (
    MergerSpec,
    PatchSpec,
    TowerSpec,
    merger_block,
    patch_block,
    tower_layer,
)
from meshwright.graph.op import Mask
from meshwright.graph.sources.huggingface.assembly import Tower, assemble, tied
from meshwright.graph.sources.huggingface.reader import ConfigReader
from meshwright.graph.sources.huggingface.registry import Architecture, register


@register("llama4_text")
def llama4_text(r: ConfigReader) -> Architecture:
    """The language model alone."""
    return _llama4(r, r, tower=None)


@register("llama4")
def llama4(r: ConfigReader) -> Architecture:
    """The language model behind its vision tower."""
    text = r.text_model()
    hidden = text.positive("hidden_size")
    vision = r.sub("vision_config")
    if vision is None and r.has("text_config"):
        r.assume("The configuration has no vision_config: the vision tower is Llama 4's own.")
        vision = ConfigReader({})
    return _llama4(r, text, tower=_tower(r, vision, hidden=hidden) if vision else None)


def _llama4(outer: ConfigReader, r: ConfigReader, *, tower: Tower | None) -> Architecture:
    layers, hidden = r.layers("num_hidden_layers"), r.positive("hidden_size")
    masks = _masks(r, layers=layers)
    sparse = _sparse(r, layers=layers)
    width = r.positive("intermediate_size")
    experts = r.positive("num_local_experts", default=16)
    top_k = r.top_k("num_experts_per_tok", experts=experts, default=1)
    moe = MoeSpec(experts=experts, top_k=top_k, width=width, shared_width=width)
    dense = r.positive("intermediate_size_mlp", default=16_384) if not all(sparse) else 0
    attentions = [_attention(r, mask, rotary=rotary) for mask, rotary in masks]
    specs = (
        LayerSpec(hidden=hidden, attention=attention, moe=moe)
        if has_experts
        else LayerSpec(hidden=hidden, attention=attention, ffn=dense)
        for attention, has_experts in zip(attentions, sparse, strict=True)
    )
    return assemble(
        r, family="llama4", layers=transformer_layers(specs), tied=tied(outer, r), towers=(tower,)
    )


def _attention(r: ConfigReader, mask: Mask, *, rotary: bool) -> AttentionSpec:
    heads = r.positive("num_attention_heads")
    bias = r.flag("attention_bias")
    return AttentionSpec(
        heads=heads,
        kv_heads=r.kv_heads("num_key_value_heads", heads=heads),
        head_dim=r.head_dim(hidden=r.positive("hidden_size"), heads=heads),
        mask=mask,
        qkv_bias=bias,
        out_bias=bias,
        # Queries and keys are scaled to unit length where they are rotated.
        qk_norm="head" if rotary and r.flag("use_qk_norm", default=True) else None,
        qk_norm_learned=False,
        rotary=rotary,
    )


def _masks(r: ConfigReader, *, layers: int) -> tuple[tuple[Mask, bool], ...]:
    """Per layer, its mask and whether positions are rotated (every fourth is not)."""
    every = r.positive("no_rope_layer_interval", default=4)
    rotated = r.numbers("no_rope_layers") or None
    if rotated is None:
        rotated = tuple(int((i + 1) % every != 0) for i in range(layers))
    if len(rotated) < layers:
        raise r.error(
            f"no_rope_layers has {len(rotated)} entries for {layers} layers",
            "no_rope_layers",
            allowed="one entry per layer: 1 rotates positions, 0 does not",
            fix="correct the list or the number of layers",
        )
    chunk = Mask(chunk=r.optional("attention_chunk_size") or 8192)
    allowed = ("chunked_attention", "full_attention")
    kinds = r.texts("layer_types", length=layers, allowed=allowed)
    if kinds is None:
        kinds = tuple(allowed[0] if rotated[i] else allowed[1] for i in range(layers))
    return tuple(
        (chunk if kinds[i] == "chunked_attention" else Mask(), bool(rotated[i]))
        for i in range(layers)
    )


def _sparse(r: ConfigReader, *, layers: int) -> tuple[bool, ...]:
    """Per layer, whether it has experts."""
    chosen = r.numbers("moe_layers")
    if chosen is not None:
        return tuple(i in set(chosen) for i in range(layers))
    every = r.positive("interleave_moe_layer_step", default=1)
    return tuple((i + 1) % every == 0 for i in range(layers))


def _tower(outer: ConfigReader, v: ConfigReader, *, hidden: int) -> Tower:
    """The vision tower; every field has Llama 4's own value as its default."""
    width = v.positive("hidden_size", default=1408)
    heads = v.positive("num_attention_heads", default=16)
    image = v.positive("image_size", default=336, limit=2**16)
    patch = v.positive("patch_size", default=14, limit=4096)
    if image < patch:
        raise v.error(
            f"the image of {image} pixels is smaller than a patch of {patch}",
            "image_size",
            allowed=f"at least {patch}",
            fix="correct one of the two",
        )
    patches = (image // patch) ** 2 + 1
    outer.assume(f"Every sequence holds one image of {patches - 1} patches.")
    spec = TowerSpec(
        patches=patches,
        hidden=width,
        heads=heads,
        head_dim=v.head_dim(hidden=width, heads=heads),
        ffn=v.positive("intermediate_size", default=5632),
    )
    embedding = patch_block(
        PatchSpec(
            patches=patches,
            pixels=v.positive("num_channels", default=3, limit=4096) * patch**2,
            hidden=width,
            positions=patches,
            class_token=True,
            norm=True,
        )
    )
    ratio = v.number("pixel_shuffle_ratio", default=0.5) or 0.5
    merger = MergerSpec(
        patches=patches,
        hidden=width,
        merge=max(1, round(1 / ratio**2)),
        widths=(
            v.positive("projector_input_dim", default=4096),
            v.positive("projector_output_dim", default=4096),
            hidden,
        ),
        bias=False,
        drop_first=True,
        final_norm=True,
    )
    layers = (tower_layer(spec),) * v.layers("num_hidden_layers", default=34)
    return Tower(embedding=embedding, layers=(*layers, merger_block(merger)))
