"""DeepSeek V4: pooled sparse attention, hyper-connections, hash-routed first layers."""

from __future__ import annotations

from meshwright.graph.axis import BATCH, SEQ, Split
from meshwright.graph.block import Block, BlockRole
from meshwright.graph.builders import TOKEN_TABLE, BlockBuilder, MoeSpec, loss, token_embedding
from meshwright.graph.builders.hyper import STREAM, from_streams, hyper_branch, to_streams
from meshwright.graph.builders.mtp import finish
from meshwright.graph.builders.pooled_attention import PooledSpec, pooled_attention
from meshwright.graph.builders.sparse import IndexerSpec
from meshwright.graph.sources.huggingface.assembly import (
    MAX_MTP,
    assemble,
    each,
    moe_branch,
    tied,
)
from meshwright.graph.sources.huggingface.deepseek import deepseek_moe
from meshwright.graph.sources.huggingface.reader import ConfigReader
from meshwright.graph.sources.huggingface.registry import Architecture, register

#: Tokens per pooled key by the name of the layer's kind, as ``compress_ratios`` gives them.
RATIOS = {
    "sliding_attention": 0,
    "compressed_sparse_attention": 4,
    "heavily_compressed_attention": 128,
}
#: What a layer of each ratio is called.
NAMES = {0: "window_moe_decoder", 4: "sparse_moe_decoder", 128: "pooled_moe_decoder"}


@register("deepseek_v4")
def deepseek_v4(r: ConfigReader) -> Architecture:
    """DeepSeek V4-Flash and V4-Pro."""
    hidden, layers = r.positive("hidden_size"), r.layers("num_hidden_layers")
    vocab, streams = r.positive("vocab_size"), r.positive("hc_mult", default=4, limit=1024)
    share = tied(r, r)
    moe = deepseek_moe(r)
    ratios = _ratios(r, layers=layers)

    def build(ratio: int) -> Block:
        return _layer(hidden=hidden, streams=streams, attention=_attention(r, ratio), moe=moe)

    # The last entry of compress_ratios beyond the layers is the prediction module's.
    mtp = _mtp(r, hidden=hidden, vocab=vocab, streams=streams, moe=moe, share=share)
    modules = r.count("num_nextn_predict_layers", limit=MAX_MTP)
    return assemble(
        r,
        family="deepseek_v4",
        layers=each(ratios, build),
        tied=share,
        mtp=(mtp,) * modules,
        embedding=_embedding(hidden=hidden, vocab=vocab, streams=streams),
        head=_head(hidden=hidden, vocab=vocab, streams=streams, share=share),
    )


def _ratios(r: ConfigReader, *, layers: int) -> tuple[int, ...]:
    """Per layer, tokens per pooled key; 0 for layers that see a window only."""
    kinds = r.texts("layer_types", length=layers, allowed=tuple(RATIOS))
    if kinds is not None:
        return tuple(RATIOS[kind] for kind in kinds)
    ratios = r.numbers("compress_ratios")
    if ratios is None:
        # Two heavily compressed layers, then the two kinds in turn.
        return tuple(128 if i < 2 or i % 2 == 0 else 4 for i in range(layers))
    if len(ratios) < layers:
        raise r.error(
            f"compress_ratios has {len(ratios)} entries for {layers} layers",
            "compress_ratios",
            allowed="one entry per layer, then those of the prediction modules",
            fix="correct the list or the number of layers",
        )
    for i, ratio in enumerate(ratios):
        if ratio not in RATIOS.values():
            raise r.error(
                f"compress_ratios[{i}] is {ratio}",
                f"compress_ratios[{i}]",
                allowed="0, 4 or 128",
                fix="use one of these",
            )
    return ratios[:layers]


def _attention(r: ConfigReader, ratio: int) -> PooledSpec:
    heads, groups = r.positive("num_attention_heads"), r.positive("o_groups", default=8)
    if heads % groups:
        raise r.error(
            f"{heads} attention heads are not divisible by {groups} groups",
            "o_groups",
            allowed=f"a divisor of {heads}",
            fix="correct one of the two",
        )
    indexer = IndexerSpec(
        heads=r.positive("index_n_heads", default=64),
        head_dim=r.positive("index_head_dim", default=128),
        top_k=r.positive("index_topk", default=512),
    )
    return PooledSpec(
        heads=heads,
        head_dim=r.positive("head_dim"),
        query_rank=r.positive("q_lora_rank"),
        groups=groups,
        group_rank=r.positive("o_lora_rank"),
        window=r.positive("sliding_window", default=128),
        ratio=ratio,
        indexer=indexer if ratio == RATIOS["compressed_sparse_attention"] else None,
    )


def _layer(*, hidden: int, streams: int, attention: PooledSpec, moe: MoeSpec) -> Block:
    b = BlockBuilder(NAMES[attention.ratio], BlockRole.LAYER)
    b.axis("hidden", hidden)
    x = b.input("x", (BATCH, SEQ, b.axis(STREAM, streams), "hidden"))
    x = _branches(b, x, streams=streams, attention=attention, moe=moe)
    return b.build(output=x, active_experts=moe.top_k)


def _branches(b: BlockBuilder, x: str, *, streams: int, attention: PooledSpec, moe: MoeSpec) -> str:
    x = hyper_branch(
        b,
        x,
        lambda b, y: pooled_attention(b, y, attention),
        label="attention",
        streams=streams,
    )
    return hyper_branch(b, x, moe_branch(moe), label="mlp", streams=streams)


def _embedding(*, hidden: int, vocab: int, streams: int) -> Block:
    b = BlockBuilder("embedding", BlockRole.EMBEDDING)
    x = token_embedding(b, vocab=vocab, hidden=hidden)
    return b.build(output=to_streams(b, x, streams=streams))


def _head(*, hidden: int, vocab: int, streams: int, share: bool) -> Block:
    b = BlockBuilder("head", BlockRole.HEAD)
    b.axis("hidden", hidden)
    x = b.input("x", (BATCH, SEQ, b.axis(STREAM, streams), "hidden"))
    x = b.norm("final_norm", from_streams(b, x, streams=streams), over="hidden")
    logits = b.matmul(
        "logits",
        x,
        contract=("hidden",),
        produce=(b.axis("vocab", vocab, Split.TENSOR),),
        tied_to=TOKEN_TABLE if share else None,
    )
    return b.build(output=loss(b, logits))


def _mtp(
    r: ConfigReader, *, hidden: int, vocab: int, streams: int, moe: MoeSpec, share: bool
) -> Block:
    """A prediction module: hidden state and token are projected apart, per stream."""
    b = BlockBuilder("mtp", BlockRole.HEAD)
    b.axis("hidden", hidden)
    x = b.input("x", (BATCH, SEQ, b.axis(STREAM, streams), "hidden"))
    out = b.axis("joined", hidden)
    token = token_embedding(b, vocab=vocab, hidden=hidden, tied_to=TOKEN_TABLE)
    token = b.norm("token_norm", token, over="hidden")
    x = b.norm("hidden_norm", x, over="hidden")
    token = b.matmul("token_projection", token, contract=("hidden",), produce=(out,))
    x = b.matmul("hidden_projection", x, contract=("hidden",), produce=(out,))
    x = b.elementwise("join", (x, token), dims=(BATCH, SEQ, STREAM, "hidden"))
    x = _branches(b, x, streams=streams, attention=_attention(r, 0), moe=moe)
    x = from_streams(b, x, streams=streams)
    return finish(b, x, vocab=vocab, tied=share, active_experts=moe.top_k)
