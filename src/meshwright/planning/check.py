"""Whether a strategy, a workload, a model and a cluster agree."""

from __future__ import annotations

from meshwright.cluster import Cluster
from meshwright.errors import StrategyError, WorkloadError
from meshwright.graph import ModelGraph
from meshwright.search.facts import ModelFacts, model_facts
from meshwright.strategy import ContextAlgorithm, Stage, Strategy, Workload


def check_workload(model: ModelGraph, workload: Workload) -> None:
    """Raise when the sequence is longer than the model has positions.

    Raises:
        WorkloadError: it is.
    """
    limit = model.max_seq_length
    if limit is not None and workload.seq_length > limit:
        raise WorkloadError(
            f"seq_length {workload.seq_length:,} is longer than {model.name} has positions",
            where="workload.seq_length",
            allowed=f"at most {limit:,} (the model's learned positions)",
            fix="shorten the sequence, or raise the number of positions in the config",
        )


def check_strategy(
    model: ModelGraph, cluster: Cluster, workload: Workload, strategy: Strategy
) -> None:
    """Raise at the first thing that does not agree.

    Raises:
        StrategyError: the strategy does not fit the model, the cluster or the workload.
    """
    _check_devices(cluster, strategy)
    if strategy.num_layers != model.num_layers:
        raise StrategyError(
            f"the stages hold {strategy.num_layers} layers, {model.name} has {model.num_layers}",
            where="strategy.stages",
            allowed="every layer exactly once",
        )
    if strategy.global_batch_size != workload.global_batch_size:
        raise StrategyError(
            f"micro-batch {strategy.micro_batch_size} × {strategy.micro_batches} micro-batches × "
            f"data {strategy.data} = {strategy.global_batch_size}, not the global batch of "
            f"{workload.global_batch_size}",
            where="strategy.micro_batches",
            allowed=f"factors whose product is {workload.global_batch_size}",
            fix="change the micro-batch size, the data degree or the global batch",
        )
    facts = model_facts(model, workload)
    for index, stage in enumerate(strategy.stages):
        _check_stage(stage, facts, where=f"strategy.stages[{index}]")


def _check_devices(cluster: Cluster, strategy: Strategy) -> None:
    if strategy.num_devices != cluster.num_devices:
        stage = strategy.stages[0]
        raise StrategyError(
            f"tensor {stage.tensor} × context {stage.context} × data {stage.data} × pipeline "
            f"{strategy.pipeline} = {strategy.num_devices} ranks, the cluster has "
            f"{cluster.num_devices} devices",
            where="strategy",
            allowed=f"degrees whose product is {cluster.num_devices}",
            fix="change a degree; the data degree may be left out and is then derived",
        )
    for index, stage in enumerate(strategy.stages):
        if not stage.groups or not all(0 <= g < len(cluster.groups) for g in stage.groups):
            raise StrategyError(
                f"stage {index} runs on device groups {stage.groups}",
                where=f"strategy.stages[{index}].groups",
                allowed=f"indices from 0 to {len(cluster.groups) - 1}",
            )


def _check_stage(stage: Stage, facts: ModelFacts, *, where: str) -> None:
    def require(good: bool, what: str, *, field: str, allowed: str) -> None:
        if not good:
            raise StrategyError(
                what, where=f"{where}.{field}", allowed=allowed, fix=f"change the {field} degree"
            )

    t, c = stage.tensor, stage.context
    for n in facts.tensor_lengths:
        require(
            n % t == 0,
            f"tensor degree {t} does not divide {n} (heads or a width of a layer)",
            field="tensor",
            allowed=f"a common divisor of {', '.join(map(str, facts.tensor_lengths))}",
        )
    for n in facts.replicable_lengths:
        require(
            n % t == 0 or t % n == 0,
            f"tensor degree {t} neither divides nor is a multiple of the {n} key-value heads",
            field="tensor",
            allowed=f"a divisor or a multiple of {n}",
        )
    for n in facts.sequence_lengths:
        require(
            c == 1 or n % (2 * c) == 0,
            f"{n} tokens do not divide over {c} context ranks in two chunks each",
            field="context",
            allowed=f"a divisor of {n} / 2",
        )
        require(
            not stage.sequence_parallel or n % (c * t) == 0,
            f"{n} tokens do not divide over context {c} × tensor {t} under sequence parallelism",
            field="sequence_parallel",
            allowed=f"tensor × context that divides {n}, or sequence_parallel off",
        )
    ulysses = stage.context_algorithm is ContextAlgorithm.ULYSSES and c > 1
    for n in facts.head_lengths:
        require(
            not ulysses or n % (t * c) == 0,
            f"Ulysses over context {c} × tensor {t} needs that many heads, there are {n}",
            field="context",
            allowed=f"tensor × context that divides {n}",
        )
    require(
        not stage.sequence_parallel or t > 1,
        "sequence parallelism without a tensor group",
        field="sequence_parallel",
        allowed="a tensor degree of at least 2, or sequence_parallel off",
    )
    require(
        not (facts.has_experts and t > 1 and not stage.sequence_parallel),
        "experts on a tensor group need sequence parallelism",
        field="sequence_parallel",
        allowed="sequence_parallel on, or a tensor degree of 1",
    )
    require(
        facts.has_experts or stage.expert * stage.expert_tensor == 1,
        f"expert degree {stage.expert} for a model without experts",
        field="expert",
        allowed="1",
    )
    for n in facts.expert_lengths:
        require(
            n % stage.expert == 0,
            f"expert degree {stage.expert} does not divide {n} experts",
            field="expert",
            allowed=f"a divisor of {n}",
        )
    for n in facts.expert_widths:
        require(
            n % stage.expert_tensor == 0,
            f"expert_tensor degree {stage.expert_tensor} does not divide the width {n}",
            field="expert_tensor",
            allowed=f"a divisor of {n}",
        )
