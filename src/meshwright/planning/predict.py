"""Predict the time and memory of one strategy."""

from __future__ import annotations

from collections.abc import Sequence

from meshwright.cluster import Cluster
from meshwright.cost.coefficients import Coefficients
from meshwright.cost.device_models import DeviceModel, device_models
from meshwright.cost.step import stage_memory, step_cost
from meshwright.graph import BlockRole, ModelGraph
from meshwright.planning.flops import cluster_peak, forward_flops, model_flops
from meshwright.planning.interval import step_interval
from meshwright.planning.plan_types import Prediction
from meshwright.planning.stage_terms import CostCache, StageModel
from meshwright.search.partitions import BlockCatalog
from meshwright.strategy import Recompute, Strategy, Workload


def predict(
    model: ModelGraph,
    cluster: Cluster,
    workload: Workload,
    strategy: Strategy,
    *,
    coefficients: Coefficients,
    catalog: BlockCatalog | None = None,
    models: Sequence[DeviceModel] | None = None,
    cache: CostCache | None = None,
) -> Prediction:
    """Time, memory and utilisation of a strategy that fits the model and the cluster.

    Args:
        model, cluster, workload, strategy: checked to agree by the caller.
        coefficients: of the software stack.
        catalog, models: made from the above when not given; a caller that predicts many
            strategies shares them.
        cache: of one model, ``catalog`` and ``models``; filled here.
    """
    catalog = catalog or BlockCatalog(model)
    models = models or device_models(cluster, coefficients)
    stages, modes = StageModel(catalog, strategy, workload, models, coefficients, cache).stages()
    time = step_cost(
        stages,
        modes,
        coefficients.overlap,
        virtual_stages=strategy.virtual_stages,
        micro_batches=strategy.micro_batches,
        fixed_s=coefficients.step_fixed_s,
    )
    memory = tuple(
        stage_memory(
            stage,
            mode,
            stages=strategy.pipeline,
            virtual_stages=strategy.virtual_stages,
            micro_batches=strategy.micro_batches,
        )
        for stage, mode in zip(stages, modes, strict=True)
    )
    useful = model_flops(model, workload)
    possible = cluster_peak(cluster, workload.recipe.peak) * time.step_s
    return Prediction(
        step_time=step_interval(time.step_s, num_devices=cluster.num_devices),
        tokens_per_s_per_device=workload.tokens_per_step / time.step_s / cluster.num_devices,
        mfu=useful / possible,
        hfu=(useful + _recomputed_flops(model, workload, strategy)) / possible,
        time=time,
        memory=memory,
    )


def _recomputed_flops(model: ModelGraph, workload: Workload, strategy: Strategy) -> float:
    """FLOPs of one step that full recomputation repeats (a repeated core is not counted)."""
    layers = model.sequence(BlockRole.LAYER)
    per_block = [forward_flops(b, seq_length=workload.seq_length)[0] for b in model.blocks]
    total = 0.0
    for stage in strategy.stages:
        modes = iter(stage.recompute_of_layers())
        for start, stop in stage.layers:
            for layer in range(start, stop):
                if next(modes) is Recompute.FULL:
                    total += per_block[layers[layer]]
    return total * workload.global_batch_size
