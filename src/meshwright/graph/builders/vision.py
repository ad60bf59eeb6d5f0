"""Vision towers: patches of an image to tokens, transformer layers, and a projector.

A tower sees its own sequence, of as many patches as an image has. One image per sequence of
text is assumed; whoever builds a tower says of what size.
"""

from __future__ import annotations

from dataclasses import dataclass

from meshwright.graph.axis import BATCH, SEQ, Axis, Split
from meshwright.graph.block import Block, BlockRole
from meshwright.graph.builders.attention import AttentionSpec
from meshwright.graph.builders.builder import BlockBuilder
from meshwright.graph.builders.decoder import LayerSpec, transformer_layer
from meshwright.graph.op import Mask, OpKind, Term


def patch_axis(patches: int) -> Axis:
    """The sequence axis of a tower: patches of one image."""
    return Axis(name=SEQ, size=patches, split=Split.CONTEXT)


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchSpec:
    """From pixels to the tower's first hidden state.

    Attributes:
        patches: tokens of one image, with the class token where there is one.
        pixels: values of one patch: channels times height times width (times frames).
        hidden: width of the tower.
        bias: of the projection.
        positions: rows of the learned position table; 0 without one.
        class_token: a learned token before the patches.
        norm: a norm after the sum.
        norm_bias: it has a shift (a layer norm, not an RMS norm).
        projection_norm: an RMS norm before the sum.
    """

    patches: int
    pixels: int
    hidden: int
    bias: bool = False
    positions: int = 0
    class_token: bool = False
    norm: bool = False
    projection_norm: bool = False
    norm_bias: bool = True


def patch_block(spec: PatchSpec, *, name: str = "vision_embedding") -> Block:
    """The block before the tower's layers."""
    b = BlockBuilder(name, BlockRole.EMBEDDING, seq=patch_axis(spec.patches))
    b.axis("hidden", spec.hidden)
    pixel = b.axis("pixel", spec.pixels)
    image = b.input("patches", (BATCH, SEQ, pixel))
    x = b.matmul(
        "patch_projection",
        image,
        contract=(pixel,),
        produce=("hidden",),
        bias=spec.bias,
        kind=OpKind.CONV,
    )
    if spec.projection_norm:
        x = b.norm("projection_norm", x, over="hidden")
    tables: tuple[str, ...] = ()
    if spec.positions:
        position = b.axis("position", spec.positions)
        tables += (b.parameter("position_embedding.weight", (position, "hidden")),)
    if spec.class_token:
        tables += (b.parameter("class_token", ("hidden",)),)
    if tables:
        x = b.elementwise("embedding_sum", (x, *tables))
    if spec.norm:
        x = b.norm("embedding_norm", x, over="hidden", bias=spec.norm_bias)
    return b.build(output=x)


@dataclass(frozen=True, slots=True, kw_only=True)
class TowerSpec:
    """The layers of a tower.

    Attributes:
        patches, hidden: as in ``PatchSpec``.
        heads, head_dim, ffn: of attention and feed-forward layer.
        gated, bias: of the feed-forward layer; biases on all projections.
        layer_norm: layer norms with a shift instead of RMS norms.
        qk_norm: as in ``AttentionSpec``.
        sandwich: norms after the branches too.
        window: patches that a patch attends to, where a layer sees windows only.
    """

    patches: int
    hidden: int
    heads: int
    head_dim: int
    ffn: int
    gated: bool = False
    bias: bool = True
    layer_norm: bool = True
    qk_norm: str | None = None
    sandwich: bool = False
    window: int | None = None


def tower_layer(spec: TowerSpec, *, name: str = "vision_encoder") -> Block:
    """One layer of the tower."""
    attention = AttentionSpec(
        heads=spec.heads,
        kv_heads=spec.heads,
        head_dim=spec.head_dim,
        mask=Mask(causal=False, chunk=spec.window),
        qkv_bias=spec.bias,
        out_bias=spec.bias,
        qk_norm=spec.qk_norm,
    )
    layer = LayerSpec(
        hidden=spec.hidden,
        attention=attention,
        ffn=spec.ffn,
        gated=spec.gated,
        mlp_bias=spec.bias,
        norm_bias=spec.layer_norm,
        sandwich=spec.sandwich,
        seq=patch_axis(spec.patches),
    )
    return transformer_layer(layer, name=name)


@dataclass(frozen=True, slots=True, kw_only=True)
class MergerSpec:
    """From the tower's patches to tokens of the language model.

    Attributes:
        patches, hidden: of the tower.
        merge: patches that become one token.
        average: by their mean (the width stays), not joined.
        widths: of the projections' outputs, in order; the last is the language model's.
        norm: ``"patch"`` before the merge, ``"merged"`` after it, or ``None``.
        norm_bias: the norm has a shift.
        norm_learned: the norm has a scale at all.
        bias: of the projections.
        first_bias: of the first projection, where it differs.
        drop_first: the class token is dropped before the merge.
        final_norm: a norm of every patch that ends the tower itself.
        side: its tokens leave for the language model, and the patches go on through the tower.
    """

    patches: int
    hidden: int
    merge: int
    widths: tuple[int, ...]
    average: bool = False
    norm: str | None = None
    norm_bias: bool = True
    norm_learned: bool = True
    bias: bool = True
    first_bias: bool | None = None
    drop_first: bool = False
    final_norm: bool = False
    side: bool = False


def merger_block(spec: MergerSpec, *, name: str = "vision_merger") -> Block:
    """The projector as a layer of its own: neighbouring patches are merged and projected."""
    b = BlockBuilder(name, BlockRole.LAYER, seq=patch_axis(spec.patches))
    b.axis("hidden", spec.hidden)
    x = b.input("x", (BATCH, SEQ, "hidden"))
    if spec.final_norm:
        x = b.norm("tower_norm", x, over="hidden", bias=True)
    kept = spec.patches - (1 if spec.drop_first else 0)
    token = b.add_axis(
        Axis(name="visual_token", size=max(1, kept // spec.merge), split=Split.CONTEXT)
    )
    merged = b.axis("merged", spec.hidden * (1 if spec.average else spec.merge))

    def norm(y: str, over: str) -> str:
        return b.norm("merge_norm", y, over=over, bias=spec.norm_bias, learned=spec.norm_learned)

    if spec.norm == "patch":
        x = norm(x, "hidden")
    out = b.activation("merged", (BATCH, token, merged))
    b.op("merged", OpKind.ELEMENTWISE, (x,), (out,), terms=(Term(factor=0.0, axes=b.dims(x)),))
    if spec.norm == "merged":
        out = norm(out, merged)
    for i, width in enumerate(spec.widths):
        if i:
            out = b.elementwise(f"projector_activation_{i}", (out,), saved=(out,), factor=8.0)
        produce = b.axis(f"projector_{i}", width)
        out = b.matmul(
            f"projector_{i}",
            out,
            contract=(b.dims(out)[-1],),
            produce=(produce,),
            bias=spec.bias if i or spec.first_bias is None else spec.first_bias,
        )
    return b.build(output="x" if spec.side else out)
