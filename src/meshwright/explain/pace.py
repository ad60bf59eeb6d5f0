"""Which stage sets the pace of a pipeline."""

from __future__ import annotations

from meshwright.cost.device_models import device_models
from meshwright.cost.step import stage_time
from meshwright.planning import Plan
from meshwright.planning.stage_terms import StageModel
from meshwright.search.partitions import BlockCatalog


def stage_paces_s(plan: Plan) -> tuple[float, ...]:
    """Seconds of forward and backward per micro-batch, of the slowest device of each stage."""
    coefficients = plan.stack.coefficients
    models = device_models(plan.cluster, coefficients)
    catalog = BlockCatalog(plan.model)
    terms, modes = StageModel(catalog, plan.strategy, plan.workload, models, coefficients).stages()
    paces = [0.0] * plan.strategy.pipeline
    for stage, mode in zip(terms, modes, strict=True):
        pace = stage_time(stage, mode, coefficients.overlap)
        paces[stage.position] = max(paces[stage.position], pace)
    return tuple(paces)
