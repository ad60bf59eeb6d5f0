"""Results as plain objects for ``--json``: stable keys, finite numbers."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from meshwright.cluster import Cluster
from meshwright.cluster.describe import device_rows, level_rows
from meshwright.cost.breakdown import CostBreakdown, MemoryBreakdown
from meshwright.explain.model_info import ModelInfo
from meshwright.graph import ModelGraph
from meshwright.planning import ParetoPoint, Plan, PlanResult
from meshwright.planning.words import plan_sentence, recompute_mode
from meshwright.strategy import Stage, Strategy, Workload

#: Version of the objects below; raised when a key changes its meaning or goes away.
SCHEMA_VERSION = 1

Json = dict[str, Any]


def result_json(result: PlanResult) -> Json:
    """The object of ``meshwright plan --json``."""
    best = result.best
    return {
        "schema_version": SCHEMA_VERSION,
        "kind": "plan",
        "summary": plan_sentence(best),
        **_inputs(best),
        "best": plan_json(best),
        "alternatives": [plan_json(plan) for plan in result.alternatives],
        "pareto": [_pareto_json(point) for point in result.pareto],
        "lower_bound_s": result.lower_bound_s,
        "gap": result.gap,
        "complete": result.complete,
        "search_s": result.search_s,
        "candidates": result.candidates,
        "evaluated": result.evaluated,
        "excluded": {rule.rule: rule.count for rule in result.excluded},
        "assumptions": list(result.assumptions),
    }


def estimate_json(plan: Plan) -> Json:
    """The object of ``meshwright estimate --json``."""
    return {
        "schema_version": SCHEMA_VERSION,
        "kind": "estimate",
        "summary": plan_sentence(plan),
        **_inputs(plan),
        "estimate": plan_json(plan),
        "assumptions": list(plan.assumptions),
    }


def plan_json(plan: Plan) -> Json:
    """One strategy with its prediction."""
    p = plan.prediction
    return {
        "strategy": strategy_json(plan.strategy),
        "step_time_s": p.step_time_s,
        "step_time_low_s": p.step_time.low,
        "step_time_high_s": p.step_time.high,
        "step_time_source": str(p.step_time.source),
        "tokens_per_s_per_device": p.tokens_per_s_per_device,
        "mfu": p.mfu,
        "hfu": p.hfu,
        "peak_memory_bytes": p.peak_memory_bytes,
        "headroom_bytes": p.headroom_bytes,
        "fits": p.fits,
        "bubble_fraction": p.bubble_fraction,
        "exposed_fraction": p.exposed_fraction,
        "time": _time_json(p.time),
        "memory": _memory_json(p.tightest),
        "memory_per_stage": [_memory_json(stage) for stage in p.memory],
    }


def flat_strategy_json(strategy: Strategy) -> Json:
    """The degrees of the first stage and what all stages share."""
    stage = strategy.stages[0]
    return {
        "tensor": stage.tensor,
        "context": stage.context,
        "context_algorithm": stage.context_algorithm.value,
        "pipeline": strategy.pipeline,
        "virtual_stages": strategy.virtual_stages,
        "data": strategy.data,
        "data_replicate": stage.data_replicate,
        "data_shard": stage.data_shard,
        "expert": stage.expert,
        "expert_tensor": stage.expert_tensor,
        "micro_batch_size": strategy.micro_batch_size,
        "micro_batches": strategy.micro_batches,
        "global_batch_size": strategy.global_batch_size,
        "schedule": strategy.schedule.value,
        "zero_stage": stage.zero_stage,
        "sequence_parallel": stage.sequence_parallel,
        "recompute": recompute_mode(strategy),
        "offload": stage.offload.value,
        "axis_order": list(strategy.axis_order),
        "num_devices": strategy.num_devices,
    }


def strategy_json(strategy: Strategy) -> Json:
    """A strategy: flat degrees, and every stage in full."""
    stages = [_stage_json(stage) for stage in strategy.stages]
    return {**flat_strategy_json(strategy), "stages": stages}


def _stage_json(stage: Stage) -> Json:
    return {
        "layers": [list(pair) for pair in stage.layers],
        "num_layers": stage.num_layers,
        "groups": list(stage.groups),
        "tensor": stage.tensor,
        "sequence_parallel": stage.sequence_parallel,
        "context": stage.context,
        "context_algorithm": stage.context_algorithm.value,
        "expert": stage.expert,
        "expert_tensor": stage.expert_tensor,
        "data_replicate": stage.data_replicate,
        "data_shard": stage.data_shard,
        "zero_stage": stage.zero_stage,
        "recompute": [{"count": run.count, "mode": run.mode.value} for run in stage.recompute],
        "offload": stage.offload.value,
    }


def _pareto_json(point: ParetoPoint) -> Json:
    return {
        "strategy": flat_strategy_json(point.strategy),
        "step_time_s": point.step_time_s,
        "peak_memory_bytes": point.peak_memory_bytes,
    }


def _time_json(time: CostBreakdown) -> Json:
    return {**asdict(time), "communication_s": time.communication_s, "step_s": time.step_s}


def _memory_json(memory: MemoryBreakdown) -> Json:
    totals = {"total_bytes": memory.total_bytes, "headroom_bytes": memory.headroom_bytes}
    return {**asdict(memory), **totals}


def _inputs(plan: Plan) -> Json:
    return {
        "model": _model_summary(plan.model),
        "cluster": _cluster_summary(plan.cluster),
        "workload": _workload_summary(plan.workload),
        "stack": plan.stack.name,
    }


def _model_summary(model: ModelGraph) -> Json:
    return {
        "name": model.name,
        "family": model.family,
        "layers": model.num_layers,
        "parameters": model.parameter_count(),
        "active_parameters": model.active_parameter_count(),
        "source": model.source,
    }


def _cluster_summary(cluster: Cluster) -> Json:
    return {
        "name": cluster.name,
        "devices": cluster.num_devices,
        "nodes": cluster.num_nodes,
        "groups": [
            {"name": group.name, "device": group.device.name, "count": group.count}
            for group in cluster.groups
        ],
    }


def _workload_summary(workload: Workload) -> Json:
    return {
        "global_batch_size": workload.global_batch_size,
        "seq_length": workload.seq_length,
        "tokens_per_step": workload.tokens_per_step,
        "precision": workload.precision,
        "optimizer": workload.optimizer,
        "attention": workload.attention.value,
    }


def model_json(info: ModelInfo) -> Json:
    """The object of ``meshwright inspect MODEL --json``."""
    return {
        "schema_version": SCHEMA_VERSION,
        "kind": "model",
        "name": info.model.name,
        "family": info.model.family,
        "source": info.model.source,
        "seq_length": info.seq_length,
        "max_seq_length": info.model.max_seq_length,
        "vocab_size": info.model.vocab_size,
        "layers": info.layers,
        "parameters": info.parameters,
        "active_parameters": info.active_parameters,
        "auxiliary_parameters": info.auxiliary_parameters,
        "forward_flops_per_token": info.forward_flops_per_token,
        "training_flops_per_token": info.training_flops_per_token,
        "blocks": [asdict(block) for block in info.blocks],
        "assumptions": list(info.model.assumptions),
    }


def cluster_json(cluster: Cluster) -> Json:
    """The object of ``meshwright inspect CLUSTER --json``."""
    return {
        "schema_version": SCHEMA_VERSION,
        "kind": "cluster",
        **_cluster_summary(cluster),
        "levels": [{**asdict(row), "source": str(row.source)} for row in level_rows(cluster)],
        "device_types": [
            {
                "name": device.name,
                "vendor": device.vendor,
                "figures": [
                    {**asdict(row), "source": str(row.source)} for row in device_rows(device)
                ],
            }
            for device in cluster.devices
        ],
        "assumptions": list(cluster.assumptions),
    }
