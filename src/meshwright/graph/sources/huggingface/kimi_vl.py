"""Kimi VL and Kimi K2.5: DeepSeek V3's language model behind a vision tower."""

from __future__ import annotations

from math import prod

from meshwright.graph.builders.vision import (
    MergerSpec,
    PatchSpec,
    TowerSpec,
    merger_block,
    patch_block,
    tower_layer,
)
from meshwright.graph.sources.huggingface.assembly import Tower
from meshwright.graph.sources.huggingface.deepseek import mla_model
from meshwright.graph.sources.huggingface.reader import ConfigReader
from meshwright.graph.sources.huggingface.registry import Architecture, register


@register("kimi_vl", "kimi_k25")
def kimi_vl(r: ConfigReader) -> Architecture:
    """Kimi-VL-A3B, Kimi K2.5 and K2.6."""
    text, vision = r.text_model(), r.sub("vision_config")
    tower = _tower(vision, hidden=text.positive("hidden_size")) if vision else None
    return mla_model(text, family="kimi_vl", dense=3, outer=r, tower=tower)


def _tower(v: ConfigReader, *, hidden: int) -> Tower:
    """The tower; Kimi K2.5 spells its fields with ``vt_`` in front."""
    width = v.positive("vt_hidden_size", "hidden_size", default=1152)
    heads = v.positive("vt_num_attention_heads", "num_attention_heads", default=16)
    layers = v.layers("vt_num_hidden_layers", "num_hidden_layers", default=27)
    rows = v.positive("init_pos_emb_height", "pos_emb_height", default=64, limit=4096)
    columns = v.positive("init_pos_emb_width", "pos_emb_width", default=64, limit=4096)
    patches = rows * columns
    v.assume(f"Every sequence holds one image of {patches} patches, the tower's own grid.")
    spec = TowerSpec(
        patches=patches,
        hidden=width,
        heads=heads,
        head_dim=v.head_dim(hidden=width, heads=heads),
        ffn=v.positive("vt_intermediate_size", "intermediate_size", default=4304),
    )
    patch = v.positive("patch_size", default=14, limit=4096)
    embedding = patch_block(
        PatchSpec(patches=patches, pixels=3 * patch**2, hidden=width, bias=True, positions=patches)
    )
    merge = prod(v.numbers("merge_kernel_size", length=2) or (2, 2))
    if not 1 <= merge <= patches:
        raise v.error(
            f"merge_kernel_size merges {merge} patches to one",
            "merge_kernel_size",
            allowed=f"two positive numbers with a product up to {patches}",
            fix="correct merge_kernel_size",
        )
    merger = MergerSpec(
        patches=patches,
        hidden=width,
        merge=merge,
        widths=(width * merge, hidden),
        norm="patch",
        final_norm=True,
    )
    return Tower(embedding=embedding, layers=(*(tower_layer(spec),) * layers, merger_block(merger)))
