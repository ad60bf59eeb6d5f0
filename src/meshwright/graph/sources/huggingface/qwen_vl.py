"""Qwen VL: the vision towers of Qwen2-VL to Qwen3.5, and the Qwen2 and Qwen3 models on them."""

from __future__ import annotations

from dataclasses import replace

from meshwright.graph.block import Block
from meshwright.graph.builders import AttentionSpec, LayerSpec, MoeSpec, transformer_layers
from meshwright.graph.builders.vision import (
    MergerSpec,
    PatchSpec,
    TowerSpec,
    merger_block,
    patch_block,
    tower_layer,
)
from meshwright.graph.sources.huggingface.assembly import Tower, assemble, tied
from meshwright.graph.sources.huggingface.reader import ConfigReader
from meshwright.graph.sources.huggingface.registry import Architecture, register

#: Patches of an image of 448 x 448 pixels in patches of 14: the towers of Qwen2-VL take
#: images of any size, so one had to be chosen.
ANY_SIZE_PATCHES = 1024


def qwen3_tower(v: ConfigReader) -> Tower:
    """The tower of Qwen3-VL and Qwen3.5: learned positions, deep outputs at some layers."""
    hidden, heads = v.positive("hidden_size"), v.positive("num_heads", default=16)
    depth, merge = v.layers("depth"), v.positive("spatial_merge_size", default=2, limit=64)
    positions = v.positive("num_position_embeddings", default=2304)
    deep = v.numbers("deepstack_visual_indexes") or ()
    if any(i >= depth for i in deep):
        raise v.error(
            f"deepstack_visual_indexes names a layer beyond the {depth} of the tower",
            "deepstack_visual_indexes",
            allowed=f"indices from 0 to {depth - 1}",
            fix="correct the list or the depth",
        )
    v.assume(f"Every sequence holds one image of {positions} patches, the tower's own grid.")
    spec = TowerSpec(
        patches=positions,
        hidden=hidden,
        heads=heads,
        head_dim=v.head_dim(hidden=hidden, heads=heads),
        ffn=v.positive("intermediate_size"),
    )
    out = v.positive("out_hidden_size", default=3584)
    merger = MergerSpec(
        patches=positions,
        hidden=hidden,
        merge=merge**2,
        widths=(hidden * merge**2, out),
        norm="patch",
    )
    layer = tower_layer(spec)
    layers: list[Block] = []
    for i in range(depth):
        layers.append(layer)
        if i in deep:
            deepstack = replace(merger, norm="merged", side=True)
            layers.append(merger_block(deepstack, name="vision_deepstack"))
    patch = v.positive("patch_size", default=16, limit=4096)
    pixels = _pixels(v, patch=patch)
    embedding = patch_block(
        PatchSpec(patches=positions, pixels=pixels, hidden=hidden, bias=True, positions=positions)
    )
    return Tower(embedding=embedding, layers=(*layers, merger_block(merger)))


def _pixels(v: ConfigReader, *, patch: int) -> int:
    """Values of one patch: channels x frames x height x width."""
    channels = v.positive("in_channels", "in_chans", default=3, limit=4096)
    return channels * v.positive("temporal_patch_size", default=2, limit=4096) * patch**2


def _tower2(v: ConfigReader) -> Tower:
    """The tower of Qwen2-VL: layer norms, plain feed-forward layers."""
    hidden = v.positive("embed_dim", default=1280)
    ffn = round(hidden * v.number("mlp_ratio", default=4.0))
    out = v.positive("hidden_size", default=3584)
    return _rotary_tower(v, hidden=hidden, ffn=max(1, ffn), out=out, modern=False)


def _tower25(v: ConfigReader) -> Tower:
    """The tower of Qwen2.5-VL: RMS norms, gated feed-forward layers, mostly windows."""
    hidden = v.positive("hidden_size", default=1280)
    ffn = v.positive("intermediate_size", default=3420)
    out = v.positive("out_hidden_size", default=3584)
    return _rotary_tower(v, hidden=hidden, ffn=ffn, out=out, modern=True)


def _rotary_tower(v: ConfigReader, *, hidden: int, ffn: int, out: int, modern: bool) -> Tower:
    heads, depth = v.positive("num_heads", default=16), v.layers("depth", default=32)
    merge = v.positive("spatial_merge_size", default=2, limit=64)
    patch = v.positive("patch_size", "spatial_patch_size", default=14, limit=4096)
    patches = ANY_SIZE_PATCHES
    v.assume(f"Every sequence holds one image of {patches} patches.")
    spec = TowerSpec(
        patches=patches,
        hidden=hidden,
        heads=heads,
        head_dim=v.head_dim(hidden=hidden, heads=heads),
        ffn=ffn,
        gated=modern,
        layer_norm=not modern,
    )
    whole = tower_layer(spec)
    layers = [whole] * depth
    if modern:
        side = max(1, v.positive("window_size", default=112) // patch)
        windowed = tower_layer(replace(spec, window=side**2), name="vision_window_encoder")
        full = set(v.numbers("fullatt_block_indexes") or (7, 15, 23, 31))
        layers = [whole if i in full else windowed for i in range(depth)]
    merger = MergerSpec(
        patches=patches,
        hidden=hidden,
        merge=merge**2,
        widths=(hidden * merge**2, out),
        norm="patch",
        norm_bias=not modern,
    )
    pixels = _pixels(v, patch=patch)
    embedding = patch_block(PatchSpec(patches=patches, pixels=pixels, hidden=hidden))
    return Tower(embedding=embedding, layers=(*layers, merger_block(merger)))


def _text_layers(r: ConfigReader, *, qwen3: bool) -> tuple[Block, ...]:
    """Qwen2 layers (biases on queries, keys and values) or Qwen3 layers (norms on them)."""
    hidden, heads = r.positive("hidden_size"), r.positive("num_attention_heads")
    layers = r.layers("num_hidden_layers")
    bias = r.flag("attention_bias", default=not qwen3)
    attention = AttentionSpec(
        heads=heads,
        kv_heads=r.kv_heads("num_key_value_heads", heads=heads),
        head_dim=r.head_dim(hidden=hidden, heads=heads),
        qkv_bias=bias,
        out_bias=bias and qwen3,
        qk_norm="head" if qwen3 else None,
    )
    moe = None
    if r.has("num_experts"):
        experts = r.positive("num_experts")
        moe = MoeSpec(
            experts=experts,
            top_k=r.top_k("num_experts_per_tok", experts=experts),
            width=r.positive("moe_intermediate_size"),
        )
    step = r.positive("decoder_sparse_step", default=1)
    dense_only = set(r.numbers("mlp_only_layers") or ())
    sparse = [moe and i not in dense_only and (i + 1) % step == 0 for i in range(layers)]
    ffn = 0 if all(sparse) else r.positive("intermediate_size")
    return transformer_layers(
        LayerSpec(hidden=hidden, attention=attention, moe=moe)
        if has_experts
        else LayerSpec(hidden=hidden, attention=attention, ffn=ffn)
        for has_experts in sparse
    )


@register("qwen3_vl", "qwen3_vl_moe")
def qwen3_vl(r: ConfigReader) -> Architecture:
    """Qwen3-VL."""
    text, vision = r.text_model(), r.sub("vision_config")
    return assemble(
        text,
        family="qwen3_vl",
        layers=_text_layers(text, qwen3=True),
        tied=tied(r, text),
        towers=(qwen3_tower(vision),) if vision else (),
    )


@register("qwen2_vl")
def qwen2_vl(r: ConfigReader) -> Architecture:
    """Qwen2-VL."""
    text, vision = r.text_model(), r.sub("vision_config")
    return assemble(
        text,
        family="qwen2_vl",
        layers=_text_layers(text, qwen3=False),
        tied=tied(r, text),
        towers=(_tower2(vision),) if vision else (),
    )


@register("qwen2_5_vl")
def qwen2_5_vl(r: ConfigReader) -> Architecture:
    """Qwen2.5-VL."""
    text, vision = r.text_model(), r.sub("vision_config")
    return assemble(
        text,
        family="qwen2_5_vl",
        layers=_text_layers(text, qwen3=False),
        tied=tied(r, text),
        towers=(_tower25(vision),) if vision else (),
    )
