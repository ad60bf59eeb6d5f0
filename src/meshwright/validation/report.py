"""Every row with its prediction, as CSV and as a scatter plot."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from dataclasses import fields

from meshwright.cost.breakdown import CostBreakdown, MemoryBreakdown
from meshwright.units import GIB
from meshwright.validation.memory import measured_bytes, memory_meaning, predicted_bytes
from meshwright.validation.outcomes import Outcome

_TIME_PARTS = tuple(f.name for f in fields(CostBreakdown))
_MEMORY_PARTS = tuple(f.name for f in fields(MemoryBreakdown))

COLUMNS = (
    *("line", "source", "locator", "model", "device_type", "num_devices", "framework"),
    *("skip", "detail", "stack", "cluster"),
    *("measured_step_s", "predicted_step_s", "low_s", "high_s", "time_ratio"),
    *("measured_memory_gib", "memory_meaning", "predicted_memory_gib", "memory_ratio"),
    *("measured_oom", "predicted_fits"),
    *(f"time.{name}" for name in _TIME_PARTS),
    *(f"memory.{name}" for name in _MEMORY_PARTS),
)


def rows_csv(outcomes: Iterable[Outcome]) -> str:
    """One line per row: what was measured, what was predicted, and what that is made of.

    Memory parts are of the device that needs most; empty cells are not known.
    """
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(_row(outcome) for outcome in outcomes)
    return text.getvalue()


def _row(outcome: Outcome) -> dict[str, object]:
    run, i = outcome.run, outcome.run.inputs
    row: dict[str, object] = {
        "line": run.line,
        "source": run.quality.source,
        "locator": run.quality.locator,
        "model": i.architecture.model,
        "device_type": i.hardware.device_type,
        "num_devices": i.hardware.num_devices,
        "framework": i.software.framework,
        "skip": outcome.skip,
        "detail": outcome.detail,
    }
    return row | dict(_figures(outcome))


def _figures(outcome: Outcome) -> Iterator[tuple[str, object]]:
    """The cells of a row that is used."""
    if outcome.predicted is None:
        return
    predicted, run = outcome.predicted, outcome.run
    p = predicted.prediction
    yield "stack", predicted.stack
    yield "cluster", predicted.cluster
    estimate = p.step_time
    for name, value in (
        ("predicted_step_s", estimate.value),
        ("low_s", estimate.low),
        ("high_s", estimate.high),
    ):
        yield name, f"{value:.6g}"
    if run.step_s is not None:
        yield "measured_step_s", f"{run.step_s:.6g}"
        yield "time_ratio", f"{estimate.value / run.step_s:.4f}"
    memory_bytes, measured = predicted_bytes(predicted, run), measured_bytes(run)
    yield "predicted_memory_gib", f"{memory_bytes / GIB:.3f}"
    if measured is not None:
        yield "measured_memory_gib", f"{measured / GIB:.3f}"
        yield "memory_meaning", memory_meaning(run.measured.mem_kind).value
        yield "memory_ratio", f"{memory_bytes / measured:.4f}"
    if run.ran_out is not None:
        yield "measured_oom", int(run.ran_out)
    yield "predicted_fits", int(p.fits)
    for name in _TIME_PARTS:
        yield f"time.{name}", f"{getattr(p.time, name):.6g}"
    fullest = max(p.memory, key=lambda stage: stage.total_bytes)
    for name in _MEMORY_PARTS:
        yield f"memory.{name}", f"{getattr(fullest, name):.6g}"
