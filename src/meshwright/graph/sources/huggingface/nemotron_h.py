"""Nemotron-H and Nemotron 3: one mixer per layer, by a pattern of letters."""

from __future__ import annotations

from meshwright.graph.axis import BATCH, SEQ
from meshwright.graph.block import Block, BlockRole
from meshwright.graph.builders import AttentionSpec, BlockBuilder, MoeSpec
from meshwright.graph.builders.ends import TOKEN_TABLE, token_embedding
from meshwright.graph.builders.layer import Branch, residual_branch, residual_layer
from meshwright.graph.builders.mamba import Mamba2Spec, mamba2
from meshwright.graph.builders.mtp import finish, join
from meshwright.graph.sources.huggingface.assembly import (
    MAX_MTP,
    assemble,
    attention_branch,
    dense_branch,
    each,
    moe_branch,
    tied,
)
from meshwright.graph.sources.huggingface.reader import MAX_LAYERS, ConfigReader
from meshwright.graph.sources.huggingface.registry import Architecture, register

#: What each letter of the pattern stands for.
LETTERS = {"M": "mamba", "E": "moe", "*": "attention", "-": "mlp"}
#: Names of the same in later configurations.
NAMES = {
    "linear_attention": "mamba",
    "mamba": "mamba",
    "moe": "moe",
    "full_attention": "attention",
    "attention": "attention",
    "mlp": "mlp",
}


@register("nemotron_h")
def nemotron_h(r: ConfigReader) -> Architecture:
    """Nemotron-H, Nemotron Nano 2 and 3, Nemotron 3 Super."""
    hidden = r.positive("hidden_size")
    kinds = _kinds(r, "hybrid_override_pattern", "layers_block_type", "layer_types")
    if not kinds:
        raise r.error(
            "hybrid_override_pattern is missing",
            "hybrid_override_pattern",
            allowed="one letter per layer: M (Mamba), E (experts), * (attention), - (dense)",
            fix="add the pattern",
        )
    layers = r.layers("num_hidden_layers", default=len(kinds))
    if layers != len(kinds):
        raise r.error(
            f"hybrid_override_pattern has {len(kinds)} letters for {layers} layers",
            "hybrid_override_pattern",
            allowed=f"{layers} letters",
            fix="correct the pattern or num_hidden_layers",
        )
    share = tied(r, r)
    modules = r.count("num_nextn_predict_layers", limit=MAX_MTP)
    mtp = (_mtp(r, hidden=hidden, share=share),) * modules if modules else ()

    def build(kind: str) -> Block:
        return residual_layer(
            kind,
            hidden=hidden,
            mixer=_branch(r, kind),
            feed_forward=None,
            active_experts=_active(r, kind),
        )

    return assemble(r, family="nemotron_h", layers=each(kinds, build), tied=share, mtp=mtp)


def _kinds(r: ConfigReader, pattern: str, *lists: str) -> tuple[str, ...]:
    """The kind of every layer, or nothing when no field says."""
    letters = r.text(pattern)
    if letters:
        unknown = sorted(set(letters) - set(LETTERS))
        if unknown or len(letters) > MAX_LAYERS:
            raise r.error(
                f"{pattern} has unknown letters {unknown}" if unknown else f"{pattern} is too long",
                pattern,
                allowed="M (Mamba), E (experts), * (attention), - (dense)",
                fix="use one of these letters per layer",
            )
        return tuple(LETTERS[letter] for letter in letters)
    names = r.texts(*lists, allowed=tuple(NAMES))
    return tuple(NAMES[name] for name in names or ())


def _branch(r: ConfigReader, kind: str) -> Branch:
    """The mixer of a layer of that kind."""
    if kind == "mamba":
        spec = _mamba(r)
        return lambda b, x: mamba2(b, x, spec)
    if kind == "attention":
        attention = _attention(r)
        return attention_branch(attention)
    if kind == "moe":
        return moe_branch(_moe(r))
    return dense_branch(r.positive("intermediate_size"), gated=False, bias=r.flag("mlp_bias"))


def _active(r: ConfigReader, kind: str) -> int:
    return _moe(r).top_k if kind == "moe" else 0


def _mamba(r: ConfigReader) -> Mamba2Spec:
    heads, groups = r.positive("mamba_num_heads"), r.positive("n_groups", "mamba_n_groups")
    if heads % groups:
        raise r.error(
            f"{heads} Mamba heads are not divisible by {groups} groups",
            "n_groups",
            allowed=f"a divisor of {heads}",
            fix="correct one of the two",
        )
    return Mamba2Spec(
        heads=heads,
        head_dim=r.positive("mamba_head_dim"),
        groups=groups,
        state=r.positive("ssm_state_size"),
        kernel=r.positive("conv_kernel", "mamba_d_conv", default=4, limit=1024),
        chunk=r.positive("chunk_size", "mamba_chunk_size", default=128, limit=2**20),
        conv_bias=r.flag("use_conv_bias", "mamba_conv_bias", default=True),
        proj_bias=r.flag("use_bias", "mamba_proj_bias"),
    )


def _attention(r: ConfigReader) -> AttentionSpec:
    heads = r.positive("num_attention_heads")
    names = ("head_dim", "attention_head_dim")
    return AttentionSpec(
        heads=heads,
        kv_heads=r.kv_heads("num_key_value_heads", heads=heads),
        head_dim=r.head_dim(hidden=r.positive("hidden_size"), heads=heads, names=names),
        qkv_bias=r.flag("attention_bias"),
        out_bias=r.flag("attention_bias"),
        # Positions come from the recurrence.
        rotary=False,
    )


def _moe(r: ConfigReader) -> MoeSpec:
    experts = r.positive("n_routed_experts")
    width = r.positive("moe_intermediate_size")
    shared = r.count("n_shared_experts", default=1)
    return MoeSpec(
        experts=experts,
        top_k=r.top_k("num_experts_per_tok", experts=experts),
        width=width,
        gated=False,
        shared_width=r.positive("moe_shared_expert_intermediate_size", default=width)
        if shared
        else 0,
        shared_bias=r.flag("mlp_bias"),
        latent=r.optional("moe_latent_size"),
        latent_bias=r.flag("mlp_bias"),
    )


def _mtp(r: ConfigReader, *, hidden: int, share: bool) -> Block:
    """A prediction module: its layers have a pattern of their own."""
    kinds = _kinds(r, "mtp_hybrid_override_pattern", "mtp_layers_block_type")
    kinds = kinds or ("attention", "moe")
    if len(set(kinds)) != len(kinds):
        raise r.error(
            "a prediction module repeats a kind of layer",
            "mtp_hybrid_override_pattern",
            allowed="every kind once",
            fix="correct the pattern",
        )
    b = BlockBuilder("mtp", BlockRole.HEAD)
    b.axis("hidden", hidden)
    x = b.input("x", (BATCH, SEQ, "hidden"))
    vocab = r.positive("vocab_size")
    token = token_embedding(b, vocab=vocab, hidden=hidden, tied_to=TOKEN_TABLE)
    x = join(b, x, token, hidden=hidden)
    for kind in kinds:
        x = residual_branch(b, x, _branch(r, kind), label=kind)
    active = max(_active(r, kind) for kind in kinds)
    return finish(b, x, vocab=vocab, tied=share, active_experts=active)
