"""The towers of Gemma 4: pooled patches of an image, and a conformer for audio."""

from __future__ import annotations

from meshwright.graph.builders.audio import (
    AudioSpec,
    audio_embedding,
    audio_projector,
    conformer_layer,
)
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

#: Tokens of the longest clip, 30 seconds at 40 milliseconds each.
CLIP_TOKENS = 750


def image_tower(outer: ConfigReader, v: ConfigReader, *, hidden: int) -> Tower:
    """The vision tower: pooled patches become the tokens of one image."""
    width, heads = v.positive("hidden_size"), v.positive("num_attention_heads")
    merge = v.positive("pooling_kernel_size", default=3, limit=64) ** 2
    tokens = v.positive("default_output_length", default=280, limit=2**20)
    patches = tokens * merge
    outer.assume(f"Every sequence holds one image of {patches} patches ({tokens} tokens).")
    spec = TowerSpec(
        patches=patches,
        hidden=width,
        heads=heads,
        head_dim=v.head_dim(hidden=width, heads=heads),
        ffn=v.positive("intermediate_size"),
        gated=True,
        bias=False,
        layer_norm=False,
        qk_norm="head",
        sandwich=True,
    )
    embedding = patch_block(
        PatchSpec(
            patches=patches,
            pixels=3 * v.positive("patch_size", default=16, limit=4096) ** 2,
            hidden=width,
            # Two tables: one per direction.
            positions=2 * v.positive("position_embedding_size", default=10_240),
        )
    )
    # Patches are averaged, not joined, so that the projector keeps the tower's width.
    merger = MergerSpec(
        patches=patches,
        hidden=width,
        merge=merge,
        average=True,
        widths=(hidden,),
        norm="merged",
        norm_bias=False,
        norm_learned=False,
        bias=False,
    )
    layers = (tower_layer(spec),) * v.layers("num_hidden_layers")
    return Tower(embedding=embedding, layers=(*layers, merger_block(merger)))


def audio_tower(outer: ConfigReader, a: ConfigReader, *, hidden: int) -> Tower:
    """The conformer of the small models."""
    channels = a.numbers("subsampling_conv_channels", length=2) or (128, 32)
    if min(channels) < 1 or channels[0] % 4:
        raise a.error(
            f"subsampling_conv_channels is {list(channels)}",
            "subsampling_conv_channels",
            allowed="two positive numbers, the first a multiple of 4",
            fix="correct subsampling_conv_channels",
        )
    width = a.positive("hidden_size", default=1024)
    heads = a.positive("num_attention_heads", default=8)
    a.head_dim(hidden=width, heads=heads, names=())
    outer.assume(f"Every sequence holds one clip of 30 seconds of audio ({CLIP_TOKENS} tokens).")
    spec = AudioSpec(
        tokens=CLIP_TOKENS,
        hidden=width,
        heads=heads,
        channels=(channels[0], channels[1]),
        kernel=a.positive("conv_kernel_size", default=5, limit=1024),
        window=a.positive("attention_context_left", default=13),
        output=a.positive("output_proj_dims", default=1536),
        text=hidden,
    )
    layers = (conformer_layer(spec),) * a.layers("num_hidden_layers", default=12)
    return Tower(embedding=audio_embedding(spec), layers=(*layers, audio_projector(spec)))
