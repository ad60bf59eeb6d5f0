"""A strategy from one degree per dimension: equal stages, cut as the search cuts them."""

from __future__ import annotations

from meshwright.cluster import Cluster
from meshwright.errors import StrategyError
from meshwright.graph import ModelGraph
from meshwright.search.facts import model_facts
from meshwright.search.partitions import stage_groups
from meshwright.strategy import (
    MESH_AXES,
    ContextAlgorithm,
    Offload,
    Recompute,
    Schedule,
    Stage,
    Strategy,
    Workload,
    balanced_chunks,
    check_axis_order,
    equal_stages,
    stage_ranges,
)


def uniform_strategy(  # noqa: PLR0913 - one keyword per dimension of the space
    model: ModelGraph,
    cluster: Cluster,
    workload: Workload,
    *,
    tensor: int = 1,
    context: int = 1,
    pipeline: int = 1,
    data: int | None = None,
    data_shard: int | None = None,
    expert: int = 1,
    expert_tensor: int = 1,
    virtual_stages: int = 1,
    micro_batch_size: int = 1,
    sequence_parallel: bool | None = None,
    zero_stage: int | None = None,
    recompute: Recompute = Recompute.NONE,
    offload: Offload = Offload.NONE,
    context_algorithm: ContextAlgorithm = ContextAlgorithm.RING,
    axis_order: tuple[str, ...] = MESH_AXES,
) -> Strategy:
    """The strategy with these degrees on every stage.

    Args:
        model, cluster, workload: what the degrees must agree with.
        tensor, context, pipeline, expert, expert_tensor: degrees.
        data: degree; by default what the other degrees leave of the devices.
        data_shard: ranks of the data axis that share one replica's states under ZeRO; by
            default all of them.
        virtual_stages: chunks of layers per device; more than one interleaves.
        micro_batch_size: sequences per replica and micro-batch.
        sequence_parallel: by default on where there is a tensor group over which the
            sequences divide.
        zero_stage: by default 1 where there are ranks to shard over, else 0.
        recompute, offload: the same for every layer.
        context_algorithm: how keys travel between context ranks.
        axis_order: mesh axes, innermost first.

    Raises:
        StrategyError: a product or a count does not come out; the message has every factor.

    Example:
        >>> from meshwright.cluster import load_cluster
        >>> from meshwright.graph.sources import load_model
        >>> work = Workload(global_batch_size=64, seq_length=2048)
        >>> model, cluster = load_model("llama-3.1-8b"), load_cluster("2x8xH100")
        >>> uniform_strategy(model, cluster, work, tensor=4, pipeline=2).data
        2
    """
    degrees = {
        "tensor": tensor,
        "context": context,
        "pipeline": pipeline,
        "expert": expert,
        "expert_tensor": expert_tensor,
        "virtual_stages": virtual_stages,
        "micro_batch_size": micro_batch_size,
    }
    for name, value in [*degrees.items(), *([("data", data)] if data is not None else [])]:
        _check_count(name, value)
    check_axis_order(axis_order)
    replicas = _replicas(cluster, tensor=tensor, context=context, pipeline=pipeline, data=data)
    micro_batches = _micro_batches(workload, data=replicas, micro_batch_size=micro_batch_size)
    ranges = _layer_ranges(model, pipeline=pipeline, virtual_stages=virtual_stages)
    if sequence_parallel is None:
        lengths = model_facts(model, workload).sequence_lengths
        sequence_parallel = tensor > 1 and all(n % (context * tensor) == 0 for n in lengths)
    if zero_stage is None:
        zero_stage = 1 if replicas * context > 1 else 0
    shard = _shard(replicas, data_shard, zero_stage=zero_stage)
    template = Stage(
        layers=(),
        tensor=tensor,
        sequence_parallel=sequence_parallel,
        context=context,
        context_algorithm=context_algorithm,
        expert=expert,
        expert_tensor=expert_tensor,
        data_replicate=replicas // shard,
        data_shard=shard,
        zero_stage=zero_stage,
        offload=offload,
    )
    groups = stage_groups(cluster, pipeline=pipeline)
    stages = equal_stages(template, ranges, groups, recompute=recompute)
    return Strategy(
        stages=stages,
        micro_batch_size=micro_batch_size,
        micro_batches=micro_batches,
        schedule=Schedule.INTERLEAVED if virtual_stages > 1 else Schedule.ONE_F_ONE_B,
        axis_order=axis_order,
    )


def _check_count(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise StrategyError(
            f"{name} is {value!r}",
            where=f"strategy.{name}",
            allowed="a whole number of at least 1",
            fix="give a positive whole number",
        )


def _replicas(
    cluster: Cluster, *, tensor: int, context: int, pipeline: int, data: int | None
) -> int:
    """The data degree, given or derived."""
    inner = tensor * context * pipeline
    devices = cluster.num_devices
    factors = f"tensor {tensor} × context {context} × pipeline {pipeline}"
    if data is None:
        if devices % inner:
            raise StrategyError(
                f"{factors} = {inner:,} does not divide the {devices:,} devices of {cluster.name}",
                where="strategy",
                allowed=f"degrees whose product divides {devices:,}",
                fix="change one of the degrees; the data degree takes what they leave",
            )
        return devices // inner
    if inner * data != devices:
        left = (
            f"use data {devices // inner}, or leave it out"
            if devices % inner == 0
            else f"change another degree: {inner:,} does not divide {devices:,}"
        )
        raise StrategyError(
            f"{factors} × data {data} = {inner * data:,}, the cluster has {devices:,} devices",
            where="strategy",
            allowed=f"degrees whose product is {devices:,}",
            fix=left,
        )
    return data


def _shard(data: int, data_shard: int | None, *, zero_stage: int) -> int:
    """Ranks that share one replica's states."""
    if data_shard is None:
        return data if zero_stage else 1
    _check_count("data_shard", data_shard)
    if data % data_shard:
        raise StrategyError(
            f"data_shard {data_shard} does not divide data {data}",
            where="strategy.data_shard",
            allowed=f"a divisor of {data}",
            fix="change it, or leave it out: all data ranks then share the states",
        )
    if data_shard > 1 and zero_stage == 0:
        raise StrategyError(
            f"data_shard {data_shard} under ZeRO stage 0, which shards nothing",
            where="strategy.data_shard",
            allowed="1, or a ZeRO stage of 1 to 3",
            fix="raise the ZeRO stage",
        )
    return data_shard


def _micro_batches(workload: Workload, *, data: int, micro_batch_size: int) -> int:
    batch, each = workload.global_batch_size, data * micro_batch_size
    if batch % each:
        raise StrategyError(
            f"data {data:,} × micro-batch {micro_batch_size:,} = {each:,} does not divide the "
            f"global batch of {batch:,}",
            where="strategy.micro_batch_size",
            allowed=f"data × micro-batch that divides {batch:,}",
            fix="change the micro-batch size, a degree, or the global batch",
        )
    return batch // each


def _layer_ranges(
    model: ModelGraph, *, pipeline: int, virtual_stages: int
) -> tuple[tuple[tuple[int, int], ...], ...]:
    chunks = pipeline * virtual_stages
    if chunks > model.num_layers:
        raise StrategyError(
            f"pipeline {pipeline} × virtual stages {virtual_stages} = {chunks:,} chunks, "
            f"{model.name} has {model.num_layers} layers",
            where="strategy.pipeline",
            allowed=f"pipeline × virtual stages of at most {model.num_layers}",
            fix="lower the pipeline degree or the virtual stages",
        )
    return stage_ranges(balanced_chunks(model.num_layers, chunks), pipeline=pipeline)
