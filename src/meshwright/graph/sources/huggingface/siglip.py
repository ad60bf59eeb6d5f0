"""The SigLIP vision tower, in front of a language model."""

from __future__ import annotations

from dataclasses import replace

from meshwright.graph.builders.vision import (
    MergerSpec,
    PatchSpec,
    TowerSpec,
    merger_block,
    patch_block,
    tower_layer,
)
from meshwright.graph.sources.huggingface.assembly import Tower
from meshwright.graph.sources.huggingface.reader import ConfigReader
from meshwright.graph.sources.huggingface.registry import Architecture


def siglip_tower(v: ConfigReader, *, tokens: int, out: int) -> Tower:
    """SigLIP without its pooling head, averaged to ``tokens`` and projected to ``out``.

    Args:
        v: the ``vision_config``; absent fields have the defaults of SigLIP base.
        tokens: that the language model sees of one image.
        out: width of the language model.
    """
    hidden = v.positive("hidden_size", default=768)
    heads = v.positive("num_attention_heads", default=12)
    side = v.positive("image_size", default=224, limit=2**16)
    patch = v.positive("patch_size", default=16, limit=2**16)
    patches = max(1, side // patch) ** 2
    if patches % tokens:
        raise v.error(
            f"the {patches} patches of an image do not average to {tokens} tokens",
            "image_size",
            allowed=f"a number of patches that is a multiple of {tokens}",
            fix="correct image_size, patch_size or mm_tokens_per_image",
        )
    v.assume(f"Every sequence holds one image of {patches} patches ({side} x {side} pixels).")
    layer = tower_layer(
        TowerSpec(
            patches=patches,
            hidden=hidden,
            heads=heads,
            head_dim=v.head_dim(hidden=hidden, heads=heads),
            ffn=v.positive("intermediate_size", default=3072),
        )
    )
    pixels = v.positive("num_channels", default=3, limit=2**16) * patch * patch
    merger = MergerSpec(
        patches=patches,
        hidden=hidden,
        merge=patches // tokens,
        average=True,
        widths=(out,),
        norm="merged",
        norm_bias=False,
        bias=False,
        final_norm=True,
    )
    embedding = PatchSpec(
        patches=patches, pixels=pixels, hidden=hidden, bias=True, positions=patches
    )
    layers = (layer,) * v.layers("num_hidden_layers", default=12)
    return Tower(embedding=patch_block(embedding), layers=(*layers, merger_block(merger)))


def behind(tower: Tower, architecture: Architecture) -> Architecture:
    """The language model behind a tower: its first block stays among the embeddings."""
    first, *rest = architecture.blocks
    return replace(architecture, blocks=(tower.embedding, first, *tower.layers, *rest))
