"""ViT: patches of an image, an encoder, classes."""

from __future__ import annotations

from meshwright.graph.builders import AttentionSpec, LayerSpec, transformer_layers
from meshwright.graph.builders.heads import classifier_head_block
from meshwright.graph.builders.vision import PatchSpec, patch_axis, patch_block
from meshwright.graph.op import Mask
from meshwright.graph.sources.huggingface.decoder_only import (
    attention_dropout,
    hidden_dropout,
)
from meshwright.graph.sources.huggingface.reader import ConfigReader
from meshwright.graph.sources.huggingface.registry import Architecture, register

#: Classes of ImageNet-1k, what the published models end in unless labels are given.
_IMAGENET_CLASSES = 1000


@register("vit")
def vit(r: ConfigReader) -> Architecture:
    """ViT: one token per patch and a class token; the sequence length is fixed."""
    hidden, heads = r.positive("hidden_size"), r.positive("num_attention_heads")
    layers = r.layers("num_hidden_layers")
    side = _patches_per_side(r)
    patch = r.positive("patch_size", default=16)
    tokens = side * side + 1
    dropout = hidden_dropout(r)
    layer = LayerSpec(
        hidden=hidden,
        attention=AttentionSpec(
            heads=heads,
            kv_heads=heads,
            head_dim=r.head_dim(hidden=hidden, heads=heads),
            mask=Mask(causal=False),
            qkv_bias=r.flag("qkv_bias", default=True),
            out_bias=True,
            rotary=False,
            dropout=attention_dropout(r),
        ),
        ffn=r.positive("intermediate_size"),
        gated=False,
        mlp_bias=True,
        norm_bias=True,
        dropout=dropout,
        seq=patch_axis(tokens),
    )
    embedding = patch_block(
        PatchSpec(
            patches=tokens,
            pixels=r.positive("num_channels", default=3) * patch * patch,
            hidden=hidden,
            bias=True,
            positions=tokens,
            class_token=True,
        ),
        name="embedding",
    )
    head = classifier_head_block(classes=_classes(r), hidden=hidden, seq=patch_axis(tokens))
    return Architecture(
        family="vit",
        blocks=(embedding, *transformer_layers((layer,) * layers, name="encoder"), head),
        max_seq_length=tokens,
        default_seq_length=tokens,
    )


def _patches_per_side(r: ConfigReader) -> int:
    image = r.positive("image_size", default=224, limit=2**16)
    patch = r.positive("patch_size", default=16, limit=2**16)
    if image % patch:
        raise r.error(
            f"an image of {image} pixels does not divide into patches of {patch}",
            "patch_size",
            allowed=f"a divisor of image_size ({image})",
            fix="correct one of the two",
        )
    return image // patch


def _classes(r: ConfigReader) -> int:
    labels = r.sub("id2label")
    named = len(labels.names) if labels else 0
    return r.positive("num_labels", default=named or _IMAGENET_CLASSES)
