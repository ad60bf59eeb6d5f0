"""Equal stages: one template laid over the cuts of a pipeline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from meshwright.strategy.stage import Recompute, RecomputeRun, Stage


def equal_stages(
    template: Stage,
    ranges: Sequence[tuple[tuple[int, int], ...]],
    groups: Sequence[tuple[int, ...]],
    *,
    recompute: Recompute,
) -> tuple[Stage, ...]:
    """The stages of a uniform strategy.

    Args:
        template: degrees and states of every stage.
        ranges: layer ranges of each stage.
        groups: device groups of each stage.
        recompute: of every layer.
    """
    return tuple(
        replace(
            template,
            layers=own,
            groups=devices,
            recompute=(
                RecomputeRun(count=sum(stop - start for start, stop in own), mode=recompute),
            ),
        )
        for own, devices in zip(ranges, groups, strict=True)
    )
