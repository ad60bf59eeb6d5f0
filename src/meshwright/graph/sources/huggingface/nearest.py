"""A model type that nobody registered, read as the nearest known structure."""

from __future__ import annotations

import warnings
from dataclasses import replace

from meshwright.errors import AssumptionWarning
from meshwright.graph.builders import AttentionSpec, LayerSpec, MoeSpec, head_block
from meshwright.graph.sources.huggingface.decoder_only import (
    FFN,
    Sizes,
    attention,
    decoder_only,
    hidden_dropout,
    layer_masks,
    read_sizes,
    window,
)
from meshwright.graph.sources.huggingface.mixture import EXPERTS, read_moe
from meshwright.graph.sources.huggingface.reader import ConfigReader
from meshwright.graph.sources.huggingface.registry import Architecture, reader_of

#: Activations that come with one matrix into the feed-forward layer, not two.
_PLAIN = ("relu", "relu2", "gelu", "gelu_new", "gelu_fast", "gelu_python", "quick_gelu", "xielu")
_QKV_BIAS = ("attention_bias", "qkv_bias", "use_qkv_bias", "add_qkv_bias", "use_bias", "bias")
_OUT_BIAS = ("attention_out_bias", "o_bias", "attention_bias", "use_bias", "bias")
_MLP_BIAS = ("mlp_bias", "use_mlp_bias", "use_bias", "bias")
_QK_NORM = ("use_qk_norm", "qk_norm", "qk_layernorm", "use_qk_layernorm")
_MOE_WIDTH = ("moe_intermediate_size", "expert_intermediate_size", "moe_ffn_hidden_size")


def read_nearest(r: ConfigReader) -> Architecture:
    """The nearest known structure, with a warning that says what was assumed.

    Structure is judged by the fields: a nested language model, latent attention, GPT-2's
    own spelling, experts, and otherwise a dense decoder in the manner of Llama.

    Raises:
        ModelError: essential fields are missing, or the model is of a kind not known here.
    """
    architecture, read_as = _read(r)
    model_type = r.text("model_type")
    unknown = f"Model type {model_type!r} is unknown" if model_type else "No model type is given"
    sentence = f"{unknown}; it was read as {read_as}."
    warnings.warn(sentence, AssumptionWarning, stacklevel=4)
    return replace(architecture, assumptions=(*architecture.assumptions, sentence))


def _read(r: ConfigReader) -> tuple[Architecture, str]:
    text = r.text_model()
    if text is not r:
        family = reader_of(text.text("model_type"))
        architecture, kind = (family(text), "") if family else _read(text)
        kind = kind or f"the family {architecture.family!r}"
        return architecture, f"its language model alone ({kind}), without its other parts"
    if r.flag("is_encoder_decoder"):
        raise r.error(
            f"model type {r.text('model_type')!r} is an encoder-decoder that is not known",
            "model_type",
            allowed="t5 and mt5, or any decoder-only model",
            fix="describe it with T5's fields and model_type t5",
        )
    for fields, model_type, words in _BY_FIELD:
        family = reader_of(model_type)
        if family is not None and all(r.has(field) for field in fields):
            return family(r), words
    return _generic(r)


#: Fields that only one structure has, the reader that knows it, and its name in words.
_BY_FIELD = (
    (("kv_lora_rank",), "deepseek_v3", "a model with latent attention like DeepSeek V3"),
    (("hybrid_override_pattern",), "nemotron_h", "a hybrid like Nemotron-H"),
    (("linear_num_value_heads",), "qwen3_next", "a linear-attention hybrid like Qwen3-Next"),
    (("n_embd", "n_positions"), "gpt2", "a decoder like GPT-2 (learned positions, biases)"),
)


def _generic(r: ConfigReader) -> tuple[Architecture, str]:
    sizes = read_sizes(r)
    spec = attention(
        r,
        sizes,
        qkv_bias=r.flag(*_QKV_BIAS),
        out_bias=r.flag(*_OUT_BIAS),
        qk_norm="head" if r.flag(*_QK_NORM) else None,
    )
    layer_norm = r.has("layer_norm_eps", "layer_norm_epsilon") and not r.has("rms_norm_eps")
    layers = _layers(r, sizes, spec, layer_norm=layer_norm)
    tied = r.flag("tie_word_embeddings")
    head = head_block(vocab=sizes.vocab, hidden=sizes.hidden, tied=tied, norm_bias=layer_norm)
    architecture = decoder_only("generic", sizes, layers, tied=tied, head=head)
    return architecture, _described(layers, tied=tied)


def _layers(
    r: ConfigReader, sizes: Sizes, spec: AttentionSpec, *, layer_norm: bool
) -> tuple[LayerSpec, ...]:
    moe = _moe(r)
    sparse = _sparse(r, sizes.layers) if moe else (False,) * sizes.layers
    dense_width = 0 if all(sparse) else r.positive(*FFN, default=4 * sizes.hidden)
    gated = r.text("hidden_act", "activation_function", "hidden_activation") not in _PLAIN
    local = window(r) is not None and r.flag("use_sliding_window", default=True)
    kind = "sliding_attention" if local else "full_attention"
    masks = layer_masks(r, sizes.layers, pattern=(kind,))
    return tuple(
        LayerSpec(
            hidden=sizes.hidden,
            attention=replace(spec, mask=mask),
            ffn=0 if has_experts else dense_width,
            gated=gated,
            mlp_bias=r.flag(*_MLP_BIAS),
            moe=moe if has_experts else None,
            norm_bias=layer_norm,
            dropout=hidden_dropout(r),
        )
        for mask, has_experts in zip(masks, sparse, strict=True)
    )


def _sparse(r: ConfigReader, layers: int) -> tuple[bool, ...]:
    """Which layers have experts: by their list, or all but the leading dense ones."""
    kinds = r.texts("mlp_layer_types", length=layers, allowed=("dense", "sparse"))
    if kinds is not None:
        return tuple(kind == "sparse" for kind in kinds)
    leading = r.count("first_k_dense_replace", "num_dense_layers", "moe_layer_start_index")
    return tuple(i >= leading for i in range(layers))


def _moe(r: ConfigReader) -> MoeSpec | None:
    if not r.has(*EXPERTS) or r.count(*EXPERTS) < 2:
        return None
    width = r.positive(*_MOE_WIDTH, *FFN)
    shared = r.count("n_shared_experts", "num_shared_experts", "moe_num_shared_experts") * width
    names = ("shared_expert_intermediate_size", "shared_intermediate_size")
    return read_moe(r, width=width, shared_width=r.count(*names, default=shared))


def _described(layers: tuple[LayerSpec, ...], *, tied: bool) -> str:
    """What was assumed, in words."""
    last = layers[-1]
    attention_biases = "biases" if last.attention.qkv_bias else "no biases"
    queries = ", norms on queries and keys" if last.attention.qk_norm else ""
    if last.moe:
        feed_forward = f"{last.moe.experts} gated experts of which a token visits {last.moe.top_k}"
        if last.moe.shared_width:
            feed_forward += f" and a shared one of width {last.moe.shared_width}"
    else:
        feed_forward = f"a {'gated' if last.gated else 'plain'} feed-forward layer"
    norms = "layer norms" if last.norm_bias else "RMS norms"
    table = "shared with" if tied else "apart from"
    return (
        f"a decoder-only transformer with rotary attention ({attention_biases}{queries}), "
        f"{feed_forward}, {norms} before both, and logits {table} the token table"
    )
