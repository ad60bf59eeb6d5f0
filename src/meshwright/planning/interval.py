"""How far a predicted step time is trusted."""

from __future__ import annotations

from meshwright.provenance import Estimate, Provenance, Source

#: Ratios of measured to predicted step time that hold nine in ten of the public runs that
#: `scripts/check_runs.py` compares.
LOW_RATIO, HIGH_RATIO = 0.8, 1.4


def step_interval(step_s: float) -> Estimate:
    """The prediction with the interval that nine in ten public runs fall into."""
    return Estimate(
        value=step_s,
        low=step_s * LOW_RATIO,
        high=step_s * HIGH_RATIO,
        source=Source(
            kind=Provenance.ANALYTIC,
            text="roofline and α–β model, not calibrated on runs; nine in ten public runs lie "
            "inside the interval",
        ),
    )
