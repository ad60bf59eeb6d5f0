"""How far a predicted step time is trusted."""

from __future__ import annotations

from meshwright.provenance import Estimate, Provenance, Source

#: Runs on fewer devices are bound by the host more often.
LARGE_RUN_DEVICES = 64

#: Measured over predicted step time: the interval that holds nine in ten of 657 public runs on
#: 64 devices or more, and of 1,604 on fewer (`meshwright validate`; the stacks' coefficients
#: are fitted to the same runs, so a new cluster may lie outside more often).
LARGE_RUN_RATIOS = (0.75, 1.32)
SMALL_RUN_RATIOS = (0.79, 1.32)


def step_interval(step_s: float, *, num_devices: int) -> Estimate:
    """The prediction with the interval that nine in ten public runs of that size fall into."""
    large = num_devices >= LARGE_RUN_DEVICES
    low, high = LARGE_RUN_RATIOS if large else SMALL_RUN_RATIOS
    size = f"{LARGE_RUN_DEVICES} devices or more" if large else "fewer devices"
    return Estimate(
        value=step_s,
        low=step_s * low,
        high=step_s * high,
        source=Source(
            kind=Provenance.FITTED,
            text="roofline and α–β model, coefficients fitted to public runs; nine in ten on "
            f"{size} took {low:g} to {high:g} times what it says",
        ),
    )
