"""Plans in the terminal, at its width; bold only where there is a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from meshwright.explain.commands import estimate_command, plan_command
from meshwright.explain.console import (
    bare_table,
    opened,
    print_bold,
    print_commands,
    print_section,
    print_text,
)
from meshwright.explain.parts import memory_parts, time_parts
from meshwright.explain.reasons import (
    alternative_sentences,
    binding_sentences,
    bound_sentence,
    memory_places,
    tightest,
)
from meshwright.planning import Exclusion, Plan, PlanResult
from meshwright.planning.rows import PlanRow, plan_rows
from meshwright.planning.words import plan_sentence
from meshwright.units import format_bytes, format_percent, format_seconds

#: From this width on a plan takes one line of the table.
WIDE = 132


def print_result(
    result: PlanResult,
    *,
    model: str,
    cluster: str,
    written: Path | None = None,
    console: Console | None = None,
) -> None:
    """The answer of a search.

    Args:
        result: what was found.
        model, cluster: as the user wrote them, for the commands to run next.
        written: where the plan was saved, if it was.
        console: where to print; stdout by default.
    """
    best = result.best
    with opened(console) as out:
        print_bold(out, plan_sentence(best))
        out.print()
        rows = plan_rows((best, *result.alternatives))
        out.print(plan_table(rows, width=out.width))
        print_text(out, legend(rows, trust=best.prediction.step_time.source.text))
        print_section(out, "Why", [*binding_sentences(best), *alternative_sentences(result)])
        print_section(out, "Searched", [bound_sentence(result)])
        if result.excluded:
            out.print(exclusion_table(result.excluded))
        print_section(out, "Assumed", result.assumptions)
        commands = list(_next(result, model=model, cluster=cluster, written=written))
        if commands:
            print_commands(out, "Next", commands)


def _next(result: PlanResult, *, model: str, cluster: str, written: Path | None) -> Iterator[str]:
    if written is not None:
        yield f"meshwright estimate --plan {written}"
    again = estimate_command(result.best, model=model, cluster=cluster)
    if again is not None:
        yield again
    command = plan_command(result.best, model=model, cluster=cluster)
    if command is not None and written is None:
        yield f"{command} -o my-plan"


def print_estimate(plan: Plan, *, console: Console | None = None) -> None:
    """What one strategy is predicted to do, and what its time and memory are made of."""
    p = plan.prediction
    low, high = format_seconds(p.step_time.low), format_seconds(p.step_time.high)
    with opened(console) as out:
        print_bold(out, plan_sentence(plan))
        out.print()
        print_text(
            out,
            f"Step time {format_seconds(p.step_time_s)}, trusted from {low} to {high}; HFU "
            f"{format_percent(p.hfu)}.",
        )
        out.print(time_table(plan, width=out.width))
        out.print()
        print_bold(out, "Memory per device")
        out.print(memory_table(plan))
        print_section(out, "Why", binding_sentences(plan))
        print_section(out, "Assumed", plan.assumptions)


def plan_table(rows: Sequence[PlanRow], *, width: int) -> Table:
    """The table of plans: one line each where there is room, else two."""
    return _wide_table(rows) if width >= WIDE else _narrow_table(rows)


_WORDS = {
    "tp": "tensor",
    "cp": "context",
    "pp": "pipeline × virtual stages",
    "dp": "data",
    "ep": "expert",
    "etp": "expert-tensor",
    "mb": "micro-batch",
    "sp": "sequence parallelism",
}


def legend(rows: Sequence[PlanRow], *, trust: str) -> str:
    """What the short words of the table mean, and how far its step times are trusted.

    Args:
        rows: of the table.
        trust: where the range of the step time comes from.
    """
    cells = " ".join(f"{row.degrees} {row.choices}" for row in rows).split()
    used = {cell.rstrip("0123456789×") for cell in cells}
    short = ", ".join(f"{word} {meaning}" for word, meaning in _WORDS.items() if word in used)
    return f"{short}; free: headroom of the tightest device; range: {trust}."


def _narrow_table(rows: Sequence[PlanRow]) -> Table:
    table = bare_table()
    table.add_column("#", justify="right")
    table.add_column("strategy\n", overflow="fold", min_width=18)
    for title in ("step\nrange", "MFU\ntok/s/dev", "memory\nfree", "bubble\nexposed"):
        table.add_column(title, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(
            str(row.rank),
            f"{row.degrees}\n{row.choices}",
            f"{format_seconds(row.step_time_s)}\n{_range(row)}",
            f"{format_percent(row.mfu)}\n{row.tokens_per_s_per_device:,.0f}",
            f"{format_bytes(row.peak_memory_bytes)}\n{format_bytes(row.headroom_bytes)}",
            f"{format_percent(row.bubble)}\n{format_percent(row.exposed)}",
            style="bold" if row.rank == 1 else None,
        )
    return table


def _wide_table(rows: Sequence[PlanRow]) -> Table:
    table = bare_table()
    table.add_column("#", justify="right")
    table.add_column("degrees", no_wrap=True)
    table.add_column("with", overflow="fold")
    titles = ("step", "range", "tok/s/dev", "MFU", "memory", "free", "bubble", "exposed")
    for title in titles:
        table.add_column(title, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(
            str(row.rank),
            row.degrees,
            row.choices,
            format_seconds(row.step_time_s),
            _range(row),
            f"{row.tokens_per_s_per_device:,.0f}",
            format_percent(row.mfu),
            format_bytes(row.peak_memory_bytes),
            format_bytes(row.headroom_bytes),
            format_percent(row.bubble),
            format_percent(row.exposed),
            style="bold" if row.rank == 1 else None,
        )
    return table


def _range(row: PlanRow) -> str:
    low, high = format_seconds(row.low_s), format_seconds(row.high_s)
    number, _, unit = low.partition(" ")
    return f"{number}–{high}" if high.endswith(f" {unit}") else f"{low}–{high}"


def exclusion_table(excluded: Sequence[Exclusion]) -> Table:
    """What the rules dropped, most first."""
    table = bare_table()
    table.add_column("  excluded", justify="right", no_wrap=True)
    table.add_column("because", overflow="fold")
    for rule in sorted(excluded, key=lambda found: -found.count):
        table.add_row(f"{rule.count:,}", f"{rule.reason} ({rule.rule})")
    return table


def time_table(plan: Plan, *, width: int) -> Table:
    """The parts of a step with a bar each; parts that are nothing are left out."""
    table = bare_table(show_header=False)
    table.add_column("part", no_wrap=True)
    table.add_column("time", justify="right", no_wrap=True)
    table.add_column("share", justify="right", no_wrap=True)
    table.add_column("bar", no_wrap=True)
    longest = max(8, min(width - 64, 60))
    for part in time_parts(plan.prediction.time):
        if part.value > 0.0:
            bar = "█" * round(part.share * longest) or "▏"
            table.add_row(
                f"  {part.name}", format_seconds(part.value), format_percent(part.share), bar
            )
    return table


def memory_table(plan: Plan) -> Table:
    """Memory of the first, the tightest and the last stage."""
    memory, places = plan.prediction.memory, memory_places(plan)
    tight = tightest(plan)
    shown = sorted({0, tight, len(memory) - 1})
    table = bare_table()
    table.add_column("", no_wrap=True)
    for index in shown:
        note = "(tightest)" if index == tight and len(shown) > 1 else ""
        table.add_column(f"{places[index]}\n{note}".rstrip(), justify="right", no_wrap=True)
    columns = [memory_parts(memory[index]) for index in shown]
    for parts in zip(*columns, strict=True):
        table.add_row(f"  {parts[0].name}", *(format_bytes(part.value) for part in parts))
    totals = {"total": "total_bytes", "capacity": "capacity_bytes", "free": "headroom_bytes"}
    for name, field in totals.items():
        values = (format_bytes(getattr(memory[index], field)) for index in shown)
        table.add_row(f"  {name}", *values, style="bold")
    return table
