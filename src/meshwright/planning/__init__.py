"""Planning: the best strategy for a model on a cluster, and the estimate of a given one."""

from __future__ import annotations

from meshwright.planning.plan_types import Exclusion, ParetoPoint, Plan, PlanResult, Prediction
from meshwright.planning.planner import estimate, plan

__all__ = [
    "Exclusion",
    "ParetoPoint",
    "Plan",
    "PlanResult",
    "Prediction",
    "estimate",
    "plan",
]
