"""Commands that a user may run next; each works as printed."""

from __future__ import annotations

import shlex

from meshwright.cluster import Cluster
from meshwright.cost.stacks import DEFAULT_STACK
from meshwright.graph import ModelGraph
from meshwright.planning import Plan
from meshwright.planning.uniform import uniform_strategy
from meshwright.strategy import Strategy, Workload

#: A longer argument (the text of a config, a whole TOML) is not printed again.
_MAX_ARGUMENT = 120


def plan_command(plan: Plan, *, model: str, cluster: str) -> str | None:
    """The command that made a plan, but for the limits of its space."""
    inputs = _inputs(plan, model=model, cluster=cluster)
    return None if inputs is None else f"meshwright plan {inputs}"


def estimate_command(plan: Plan, *, model: str, cluster: str) -> str | None:
    """The command that estimates a plan again, or ``None`` when no flags describe it."""
    inputs = _inputs(plan, model=model, cluster=cluster)
    if inputs is None or not _is_uniform(plan.model, plan.cluster, plan.workload, plan.strategy):
        return None
    return f"meshwright estimate {inputs} {strategy_flags(plan.strategy)}"


def strategy_flags(strategy: Strategy) -> str:
    """Flags of ``meshwright estimate`` that describe a uniform strategy."""
    stage = strategy.stages[0]
    flags = [
        ("--tp", stage.tensor, 1),
        ("--cp", stage.context, 1),
        ("--pp", strategy.pipeline, 1),
        ("--vpp", strategy.virtual_stages, 1),
        ("--data-shard", stage.data_shard, strategy.data if stage.zero_stage else 1),
        ("--ep", stage.expert, 1),
        ("--etp", stage.expert_tensor, 1),
        ("--micro-batch-size", strategy.micro_batch_size, None),
        ("--zero", stage.zero_stage, None),
        ("--recompute", stage.recompute_of_layers()[0].value, "none"),
        ("--context-algorithm", stage.context_algorithm.value, "ring"),
        ("--offload", stage.offload.value, "none"),
        ("--axis-order", "-".join(strategy.axis_order), "tensor-context-data-pipeline"),
    ]
    found = [f"{flag} {value}" for flag, value, default in flags if value != default]
    if stage.tensor > 1:
        found.append("--sequence-parallel" if stage.sequence_parallel else "--no-sequence-parallel")
    return " ".join(found)


def _inputs(plan: Plan, *, model: str, cluster: str) -> str | None:
    if max(len(model), len(cluster)) > _MAX_ARGUMENT or not (model + cluster).isprintable():
        return None
    workload, stack = plan.workload, plan.stack
    found = [
        f"{shlex.quote(model)} --cluster {shlex.quote(cluster)}",
        f"--global-batch-size {workload.global_batch_size}",
        f"--seq-length {workload.seq_length}",
    ]
    default = Workload(global_batch_size=1, seq_length=1, attention=stack.attention)
    found += [
        f"--{name} {getattr(workload, name)}"
        for name in ("precision", "optimizer", "attention")
        if getattr(workload, name) != getattr(default, name)
    ]
    if stack.name != DEFAULT_STACK:
        found.append(f"--stack {shlex.quote(stack.name)}")
    return " ".join(found)


def _is_uniform(
    model: ModelGraph, cluster: Cluster, workload: Workload, strategy: Strategy
) -> bool:
    stage = strategy.stages[0]
    modes = stage.recompute_of_layers()
    same = uniform_strategy(
        model,
        cluster,
        workload,
        tensor=stage.tensor,
        context=stage.context,
        pipeline=strategy.pipeline,
        data=strategy.data,
        data_shard=stage.data_shard,
        expert=stage.expert,
        expert_tensor=stage.expert_tensor,
        virtual_stages=strategy.virtual_stages,
        micro_batch_size=strategy.micro_batch_size,
        sequence_parallel=stage.sequence_parallel,
        zero_stage=stage.zero_stage,
        recompute=modes[0],
        offload=stage.offload,
        context_algorithm=stage.context_algorithm,
        axis_order=strategy.axis_order,
    )
    return same == strategy
