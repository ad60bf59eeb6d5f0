"""GLM 4.1V, 4.5V and 4.6V: GLM-4 or GLM-4.5 behind a vision tower."""

from __future__ import annotations

from dataclasses import replace

from meshwright.graph.axis import BATCH, SEQ, Axis, Split
from meshwright.graph.block import Block, BlockRole
from meshwright.graph.builders import BlockBuilder, mlp
from meshwright.graph.builders.vision import (
    PatchSpec,
    TowerSpec,
    patch_axis,
    patch_block,
    tower_layer,
)
from meshwright.graph.op import OpKind, Term
from meshwright.graph.sources.huggingface.assembly import Tower
from meshwright.graph.sources.huggingface.glm import glm4
from meshwright.graph.sources.huggingface.glm_moe import glm4_moe
from meshwright.graph.sources.huggingface.reader import ConfigReader
from meshwright.graph.sources.huggingface.registry import Architecture, register


@register("glm4v", "glm4v_text", "glm46v")
def glm4v(r: ConfigReader) -> Architecture:
    """GLM 4.1V 9B and GLM 4.6V Flash."""
    return _behind_tower(r, glm4(r.text_model()))


@register("glm4v_moe", "glm4v_moe_text")
def glm4v_moe(r: ConfigReader) -> Architecture:
    """GLM 4.5V and GLM 4.6V."""
    return _behind_tower(r, glm4_moe(r.text_model()))


def _behind_tower(r: ConfigReader, text: Architecture) -> Architecture:
    vision = r.sub("vision_config")
    if vision is None:
        return text
    hidden = r.text_model().positive("hidden_size")
    tower = _tower(vision, hidden=hidden)
    embedding, *others = text.blocks
    return replace(text, blocks=(tower.embedding, embedding, *tower.layers, *others))


def _tower(v: ConfigReader, *, hidden: int) -> Tower:
    width, heads = v.positive("hidden_size"), v.positive("num_heads", default=12)
    image = v.positive("image_size", default=336, limit=2**16)
    patch = v.positive("patch_size", default=14, limit=4096)
    merge = v.positive("spatial_merge_size", default=2, limit=64)
    out = v.positive("out_hidden_size", default=hidden)
    if image < patch * merge:
        raise v.error(
            f"the image of {image} pixels is smaller than {merge} patches of {patch}",
            "image_size",
            allowed=f"at least {patch * merge}",
            fix="correct image_size, patch_size or spatial_merge_size",
        )
    patches = (image // patch) ** 2
    v.assume(f"Every sequence holds one image of {patches} patches, the tower's own grid.")
    frames = v.positive("temporal_patch_size", default=2, limit=4096)
    channels = v.positive("in_channels", default=3, limit=4096)
    embedding = patch_block(
        PatchSpec(
            patches=patches,
            pixels=channels * frames * patch**2,
            hidden=width,
            bias=True,
            positions=patches,
            projection_norm=True,
        )
    )
    spec = TowerSpec(
        patches=patches,
        hidden=width,
        heads=heads,
        head_dim=v.head_dim(hidden=width, heads=heads),
        ffn=out,
        gated=True,
        bias=False,
        layer_norm=False,
    )
    layer = tower_layer(spec)
    merger = _merger(
        patches=patches, hidden=width, merge=merge**2, out=out, ffn=v.positive("intermediate_size")
    )
    return Tower(embedding=embedding, layers=(*(layer,) * v.layers("depth", default=24), merger))


def _merger(*, patches: int, hidden: int, merge: int, out: int, ffn: int) -> Block:
    """Patches are joined and projected, then a gated feed-forward layer."""
    b = BlockBuilder("vision_merger", BlockRole.LAYER, seq=patch_axis(patches))
    tower = b.axis("tower_hidden", hidden)
    token = b.add_axis(
        Axis(name="visual_token", size=max(1, patches // merge), split=Split.CONTEXT)
    )
    merged, b_hidden = b.axis("merged", hidden * merge), b.axis("hidden", out)
    x = b.input("x", (BATCH, SEQ, tower))
    x = b.norm("tower_norm", x, over=tower)
    joined = b.activation("merged", (BATCH, token, merged))
    terms = (Term(factor=0.0, axes=b.dims(x)),)
    b.op("merged", OpKind.ELEMENTWISE, (x,), (joined,), terms=terms)
    x = b.matmul("downsample", joined, contract=(merged,), produce=(b_hidden,), bias=True)
    projected = b.axis("projected", out)
    y = b.matmul("projection", x, contract=("hidden",), produce=(projected,))
    y = b.norm("projection_norm", y, over=projected, bias=True)
    y = b.elementwise("projection_activation", (y,), dims=b.dims(x), saved=(y,), factor=8.0)
    return b.build(output=mlp(b, y, width=ffn, gated=True))
