"""Planning: the best strategy for a model on a cluster, and the estimate of a given one."""

from __future__ import annotations

from meshwright.planning.plan_types import Exclusion, ParetoPoint, Plan, PlanResult, Prediction
from meshwright.planning.planner import estimate, plan
from meshwright.planning.serialize import load_plan, save_plan
from meshwright.planning.uniform import uniform_strategy

__all__ = [
    "Exclusion",
    "ParetoPoint",
    "Plan",
    "PlanResult",
    "Prediction",
    "estimate",
    "load_plan",
    "plan",
    "save_plan",
    "uniform_strategy",
]
