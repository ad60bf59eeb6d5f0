"""The table of plans, as data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from meshwright.planning.plan_types import Plan
from meshwright.planning.words import short_choices, short_degrees


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRow:
    """One plan of the table.

    Attributes:
        rank: 1 is the best.
        degrees, choices: the strategy in short.
        step_time_s, low_s, high_s: prediction and the interval that it is trusted to.
        tokens_per_s_per_device, mfu: speed.
        peak_memory_bytes, headroom_bytes: of the tightest device.
        bubble, exposed: shares of the step.
    """

    rank: int
    degrees: str
    choices: str
    step_time_s: float
    low_s: float
    high_s: float
    tokens_per_s_per_device: float
    mfu: float
    peak_memory_bytes: float
    headroom_bytes: float
    bubble: float
    exposed: float


def plan_rows(plans: Sequence[Plan]) -> tuple[PlanRow, ...]:
    """One row per plan, in order."""
    return tuple(_row(rank, plan) for rank, plan in enumerate(plans, start=1))


def _row(rank: int, plan: Plan) -> PlanRow:
    p = plan.prediction
    return PlanRow(
        rank=rank,
        degrees=short_degrees(plan.strategy),
        choices=short_choices(plan.strategy),
        step_time_s=p.step_time_s,
        low_s=p.step_time.low,
        high_s=p.step_time.high,
        tokens_per_s_per_device=p.tokens_per_s_per_device,
        mfu=p.mfu,
        peak_memory_bytes=p.tightest.total_bytes,
        headroom_bytes=p.headroom_bytes,
        bubble=p.bubble_fraction,
        exposed=p.exposed_fraction,
    )
