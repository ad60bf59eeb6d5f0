"""Small models, devices, clusters and random instances that several tests share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from hypothesis import assume
from hypothesis import strategies as st

from meshwright.cluster import Cluster, load_cluster
from meshwright.cluster.catalog import load_device
from meshwright.cluster.level import Level
from meshwright.cost.coefficients import Coefficients
from meshwright.cost.local import LocalConfigs, LocalShapes
from meshwright.cost.stacks import DEFAULT_STACK, MODERN, Stack, find_stack
from meshwright.cost.step import GroupCost, OverlapFactors, PassTime, StageTerms
from meshwright.graph import Block, Mask, ModelGraph
from meshwright.graph.builders import AttentionSpec, LayerSpec, MoeSpec, transformer_layer
from meshwright.graph.sources import load_model
from meshwright.provenance import Provenance, Source
from meshwright.search import UniformTables, reference
from meshwright.search.uniform import UniformSpace
from meshwright.strategy import (
    AXIS_ORDERS,
    ContextAlgorithm,
    Offload,
    Recompute,
    Schedule,
    Space,
    Stage,
    Strategy,
    Workload,
    balanced_chunks,
    stage_ranges,
)

TEST_SOURCE = Source(kind=Provenance.ANALYTIC, text="made up for a test")

#: Contractions reach what the device's own curve says.
PLAIN = replace(
    MODERN,
    matrix_efficiency=1.0,
    gemm_half_scale=1.0,
    family_efficiency={},
    family_half_scale={},
)

#: Nothing is hidden behind anything: every communication adds to the step.
NOTHING_HIDDEN = replace(
    MODERN,
    overlap=OverlapFactors(gather=0.0, scatter=0.0, p2p=0.0, tail=1.0),
    tensor_hidden=0.0,
    context_hidden=0.0,
    expert_hidden=0.0,
)


# ---------------------------------------------------------------- blocks and local shapes
def gpt_layer(*, hidden: int, heads: int) -> Block:
    """The layer of Korthikanti et al. 2022: biases, dropout, GELU, four times the width."""
    attention = AttentionSpec(
        heads=heads,
        kv_heads=heads,
        head_dim=hidden // heads,
        rotary=False,
        qkv_bias=True,
        out_bias=True,
        dropout=True,
    )
    return transformer_layer(
        LayerSpec(
            hidden=hidden,
            attention=attention,
            ffn=4 * hidden,
            gated=False,
            mlp_bias=True,
            norm_bias=True,
            dropout=True,
        )
    )


def llama_layer(
    *, hidden: int, heads: int, kv_heads: int, ffn: int, mask: Mask | None = None
) -> Block:
    """RMS norms, grouped heads, rotation, gated feed-forward, no biases."""
    attention = AttentionSpec(
        heads=heads, kv_heads=kv_heads, head_dim=hidden // heads, mask=mask or Mask()
    )
    return transformer_layer(LayerSpec(hidden=hidden, attention=attention, ffn=ffn))


def moe_layer(*, hidden: int, heads: int, experts: int, top_k: int, width: int) -> Block:
    """As ``llama_layer`` without grouping, with routed experts instead."""
    attention = AttentionSpec(heads=heads, kv_heads=heads, head_dim=hidden // heads)
    mixture = MoeSpec(experts=experts, top_k=top_k, width=width)
    return transformer_layer(LayerSpec(hidden=hidden, attention=attention, moe=mixture))


def configs(rows: int = 1, **degrees: int | list[int]) -> LocalConfigs:
    """Local configurations; what is not given is 1 (or off)."""
    off = {"sequence_parallel": 0, "context_algorithm": 0}
    names = ("micro_batch", "tensor", "sequence_parallel", "context", "context_algorithm")
    names += ("expert", "expert_tensor")
    return LocalConfigs(
        **{
            name: np.broadcast_to(
                np.array(degrees.get(name, off.get(name, 1)), dtype=np.int64), (rows,)
            ).copy()
            for name in names
        }
    )


def shapes(block: Block, *, seq_length: int, **degrees: int) -> LocalShapes:
    """The shapes of a block on one rank under one configuration."""
    return LocalShapes(block, configs(**degrees), seq_length=seq_length)


# ---------------------------------------------------------------- terms of the step formula
def group_cost(*, shards: int = 1, ranks: int | None = None, **seconds: float) -> GroupCost:
    """Ranks that share parameters; what is not given costs nothing."""
    values = {f.name: 0.0 for f in fields(GroupCost)}
    return GroupCost(**{**values, "shards": shards, "ranks": ranks or shards, **seconds})


def stage_terms(**values: object) -> StageTerms:
    """One stage; what is not given is zero, and nobody shares its parameters."""
    nothing = {f.name: 0.0 for f in fields(StageTerms)}
    plain = {"position": 0, "multiplicity": 1, "blocks": 1, "capacity_bytes": 1e12}
    passes = {"forward": PassTime(), "backward": PassTime()}
    groups = {"dense_group": group_cost(), "expert_group": group_cost()}
    return StageTerms(**{**nothing, **plain, **passes, **groups, **values})


# ---------------------------------------------------------------- models, clusters
def llama_config(**changes: object) -> dict[str, object]:
    """The ``config.json`` of a small llama."""
    return {
        "model_type": "llama",
        "hidden_size": 256,
        "num_hidden_layers": 4,
        "num_attention_heads": 8,
        "num_key_value_heads": 4,
        "intermediate_size": 512,
        "vocab_size": 1000,
        "max_position_embeddings": 4096,
        "tie_word_embeddings": False,
        **changes,
    }


def mixtral_config(**changes: object) -> dict[str, object]:
    """The ``config.json`` of a small mixture of experts."""
    config = llama_config(model_type="mixtral", num_local_experts=8, num_experts_per_tok=2)
    return {**config, "sliding_window": None, **changes}


def gpt2_config(**changes: object) -> dict[str, object]:
    """The ``config.json`` of a small model with tied embeddings."""
    sizes = {"n_embd": 256, "n_layer": 4, "n_head": 8, "n_positions": 1024, "vocab_size": 1000}
    return {"model_type": "gpt2", **sizes, **changes}


def with_memory(cluster: Cluster, memory_bytes: float) -> Cluster:
    """The cluster with that much memory on every device."""
    return with_devices(cluster, memory_bytes=int(memory_bytes))


def with_devices(cluster: Cluster, **changes: object) -> Cluster:
    """The cluster with some fields of every device replaced (levels stay as they are)."""
    groups = tuple(
        replace(group, device=replace(group.device, **changes)) for group in cluster.groups
    )
    return replace(cluster, groups=groups)


def with_level(cluster: Cluster, level: int, **factors: float) -> Cluster:
    """The cluster with fields of one level of every group (-1: the boundary) multiplied."""

    def scaled(old: Level) -> Level:
        return replace(old, **{name: getattr(old, name) * f for name, f in factors.items()})

    if level < 0:
        assert cluster.boundary is not None
        return replace(cluster, boundary=scaled(cluster.boundary))
    groups = tuple(
        replace(
            group,
            levels=tuple(scaled(old) if i == level else old for i, old in enumerate(group.levels)),
        )
        for group in cluster.groups
    )
    return replace(cluster, groups=groups)


def flat_level(
    size: int, *, bandwidth: float = 1e9, latency_s: float = 0.0, **more: float
) -> Level:
    """A level with round numbers."""
    return Level(
        name=f"level{size}",
        size=size,
        bandwidth_bytes_per_s=bandwidth,
        latency_s=latency_s,
        source=TEST_SOURCE,
        **more,
    )


H100 = load_device("H100")


@st.composite
def model_configs(draw: st.DrawFn) -> dict[str, object]:
    """The ``config.json`` of a small random model: dense, tied or with experts."""
    heads = draw(st.sampled_from([2, 4, 8, 12]))
    sizes = {
        "hidden_size": heads * draw(st.sampled_from([16, 32, 64])),
        "num_hidden_layers": draw(st.integers(1, 9)),
        "num_attention_heads": heads,
        "num_key_value_heads": draw(
            st.sampled_from([n for n in (1, 2, 4, heads) if heads % n == 0])
        ),
        "intermediate_size": draw(st.sampled_from([128, 192, 512])),
        "vocab_size": draw(st.sampled_from([1000, 1003])),
    }
    kind = draw(st.sampled_from(["llama", "mixtral", "gpt2"]))
    if kind == "llama":
        return llama_config(**sizes, tie_word_embeddings=draw(st.booleans()))
    if kind == "mixtral":
        experts = draw(st.sampled_from([4, 8]))
        return mixtral_config(**sizes, num_local_experts=experts)
    return gpt2_config(
        n_embd=sizes["hidden_size"], n_layer=sizes["num_hidden_layers"], n_head=heads
    )


#: Small clusters of one kind.
UNIFORM = ("1x1xH100", "1x8xA100-80GB", "2x4xH100", "3x2xV100-32GB", "4x8xH100", "2x8xMI300X")
#: Small clusters of several kinds.
MIXED = ("1x4xH100+1x4xA100-80GB", "2x2xH100+1x4xAscend910B", "1x8xH100+2x8xA100-40GB")

clusters = st.sampled_from(UNIFORM + MIXED).map(load_cluster)
uniform_clusters = st.sampled_from(UNIFORM).map(load_cluster)
workloads = st.builds(
    Workload,
    global_batch_size=st.sampled_from([4, 12, 16, 48]),
    seq_length=st.sampled_from([256, 512, 1000]),
    precision=st.sampled_from(["bf16", "fp32", "fp8"]),
    optimizer=st.sampled_from(["adam", "sgd"]),
    attention=st.sampled_from(["fused", "unfused"]),
)
coefficients = st.sampled_from([MODERN, NOTHING_HIDDEN])


@st.composite
def spaces(draw: st.DrawFn) -> Space:
    """A space with a few values per dimension: small enough for the Python reference."""

    def some(values: tuple[object, ...], most: int = 2) -> tuple[object, ...]:
        return tuple(
            draw(st.lists(st.sampled_from(values), min_size=1, max_size=most, unique=True))
        )

    return Space(
        virtual_stages=some((1, 2, 3)),
        micro_batch_sizes=some((1, 2, 3, 4)),
        sequence_parallel=(False, True),
        zero_stages=some((0, 1, 2, 3)),
        recompute=some(tuple(Recompute)),
        offload=some(tuple(Offload), 1),
        context_algorithms=some(tuple(ContextAlgorithm), 1),
        axis_orders=some(AXIS_ORDERS),
        uneven_layers=draw(st.booleans()),
    )


@dataclass(frozen=True)
class Instance:
    """What a search needs, drawn together."""

    model: ModelGraph
    cluster: Cluster
    workload: Workload
    space: Space
    coefficients: Coefficients

    @property
    def stack(self) -> Stack:
        """The default stack with these coefficients."""
        return replace(find_stack(DEFAULT_STACK), coefficients=self.coefficients)

    def __repr__(self) -> str:
        hidden = "nothing hidden" if self.coefficients is NOTHING_HIDDEN else "modern"
        layers = f"{self.model.family} of {self.model.num_layers} layers"
        return f"{layers} on {self.cluster.name}, {hidden}, {self.workload}, {self.space}"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text("..." if cycle else repr(self))


@st.composite
def instances(draw: st.DrawFn, machines: st.SearchStrategy[Cluster] = clusters) -> Instance:
    """A random model on a random cluster with a small random space."""
    return Instance(
        model=load_model(draw(model_configs())),
        cluster=draw(machines),
        workload=draw(workloads),
        space=draw(spaces()),
        coefficients=draw(coefficients),
    )


# ---------------------------------------------------------------- strategies
def uniform(
    layers: int,
    *,
    pipeline: int = 1,
    virtual_stages: int = 1,
    micro_batch_size: int = 1,
    micro_batches: int = 1,
    axis_order: tuple[str, ...] = AXIS_ORDERS[0],
    **stage: object,
) -> Strategy:
    """Equal stages over ``layers``; ``stage`` are fields of ``Stage``."""
    ranges = stage_ranges(balanced_chunks(layers, pipeline * virtual_stages), pipeline=pipeline)
    return Strategy(
        stages=tuple(Stage(layers=own, **stage) for own in ranges),
        micro_batch_size=micro_batch_size,
        micro_batches=micro_batches,
        schedule=Schedule.INTERLEAVED if virtual_stages > 1 else Schedule.ONE_F_ONE_B,
        axis_order=axis_order,
    )


# ---------------------------------------------------------------- random strategies
def uniform_space(instance: Instance) -> UniformSpace:
    """The tables of an instance, before they are made."""
    return UniformSpace(
        instance.model,
        instance.cluster,
        instance.workload,
        instance.space,
        instance.coefficients,
    )


def draw_candidate(draw: Callable[..., Any], tables: UniformTables) -> dict[str, int] | None:
    """Indices of a candidate that no rule excludes, or None where a few draws find none."""
    for _ in range(20):
        shape = draw(st.integers(0, tables.shapes - 1))
        cuts = list(tables.partitions_of(shape))
        if not cuts:
            continue
        chosen = {
            "shape": shape,
            "row": draw(st.sampled_from(list(tables.rows_of(shape)))),
            "partition": draw(st.sampled_from(cuts)),
            "mode": draw(st.integers(0, len(tables.modes) - 1)),
        }
        if reference._excluding_rule(tables, **chosen) is None:
            return chosen
    return None


@st.composite
def strategies_of(draw: st.DrawFn, machines: st.SearchStrategy[Cluster] = clusters) -> Any:
    """An instance and a valid strategy of its space (memory aside)."""
    instance = draw(instances(machines))
    space = uniform_space(instance)
    assume(len(space.shapes) > 0)
    tables = space.tables()
    chosen = draw_candidate(draw, tables)
    assume(chosen is not None)
    return instance, space.strategy(reference.evaluate(tables, **chosen))
