"""Mistral with images: the Pixtral tower in front of any of its language models."""

from __future__ import annotations

from meshwright.graph.builders.vision import (
    MergerSpec,
    PatchSpec,
    TowerSpec,
    merger_block,
    patch_block,
    tower_layer,
)
from meshwright.graph.sources.huggingface.assembly import Tower
from meshwright.graph.sources.huggingface.mistral import mistral
from meshwright.graph.sources.huggingface.reader import ConfigReader
from meshwright.graph.sources.huggingface.registry import Architecture, reader_of, register
from meshwright.graph.sources.huggingface.siglip import behind


@register("mistral3")
def mistral3(r: ConfigReader) -> Architecture:
    """Mistral Small 3.1 and later: patches are merged, projected, and join the text."""
    text = r.text_model()
    read_text = mistral if text is r else reader_of(text.text("model_type")) or mistral
    architecture = read_text(text)
    vision = r.sub("vision_config")
    if vision is None:
        return architecture
    merge = r.positive("spatial_merge_size", default=2, limit=64) ** 2
    bias = r.flag("multimodal_projector_bias")
    out = architecture.blocks[0].axis("hidden").size
    assert out is not None
    return behind(pixtral_tower(vision, merge=merge, out=out, bias=bias), architecture)


def pixtral_tower(v: ConfigReader, *, merge: int, out: int, bias: bool) -> Tower:
    """Pixtral's encoder with Mistral's projector.

    Args:
        v: the ``vision_config``; absent fields have the defaults of Pixtral.
        merge: patches that become one token.
        out: width of the language model.
        bias: of the projector's two last matrices.
    """
    hidden = v.positive("hidden_size", default=1024)
    heads = v.positive("num_attention_heads", default=16)
    side = v.positive("image_size", default=1024, limit=2**16)
    patch = v.positive("patch_size", default=16, limit=2**16)
    patches = max(1, side // patch) ** 2
    v.assume(f"Every sequence holds one image of {patches} patches ({side} x {side} pixels).")
    layer = tower_layer(
        TowerSpec(
            patches=patches,
            hidden=hidden,
            heads=heads,
            head_dim=v.head_dim(hidden=hidden, heads=heads),
            ffn=v.positive("intermediate_size", default=4096),
            gated=True,
            bias=False,
            layer_norm=False,
        )
    )
    pixels = v.positive("num_channels", default=3, limit=2**16) * patch * patch
    embedding = PatchSpec(patches=patches, pixels=pixels, hidden=hidden, norm=True, norm_bias=False)
    merger = MergerSpec(
        patches=patches,
        hidden=hidden,
        merge=merge,
        widths=(hidden, out, out),
        norm="patch",
        norm_bias=False,
        bias=bias,
        first_bias=False,
    )
    layers = (layer,) * v.layers("num_hidden_layers", default=24)
    return Tower(embedding=patch_block(embedding), layers=(*layers, merger_block(merger)))
