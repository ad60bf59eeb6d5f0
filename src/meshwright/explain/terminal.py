"""Results in the terminal, at its width; colours only where there is one."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from meshwright.explain.commands import estimate_command, plan_command
from meshwright.explain.parts import memory_parts, time_parts
from meshwright.explain.reasons import (
    alternative_sentences,
    binding_sentences,
    bound_sentence,
    stage_of_memory,
)
from meshwright.explain.rows import PlanRow, plan_rows
from meshwright.explain.words import plan_sentence
from meshwright.planning import Exclusion, Plan, PlanResult
from meshwright.units import format_bytes, format_percent, format_seconds

MIN_WIDTH, MAX_WIDTH = 60, 200
#: From this width on a plan takes one line of the table.
WIDE = 132


def make_console(width: int | None = None) -> Console:
    """A console on stdout, within the widths that the tables are made for."""
    console = Console(highlight=False, soft_wrap=False)
    console.width = min(max(width or console.width, MIN_WIDTH), MAX_WIDTH)
    return console


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
    console = console or make_console()
    best = result.best
    console.print(Text(plan_sentence(best), style="bold"))
    console.print()
    console.print(plan_table(plan_rows((best, *result.alternatives)), width=console.width))
    section(console, "Why", [*binding_sentences(best), *alternative_sentences(result)])
    section(console, "Searched", [bound_sentence(result)])
    if result.excluded:
        console.print(exclusion_table(result.excluded, width=console.width))
    section(console, "Assumed", result.assumptions)
    section(
        console, "Next", _next(result, model=model, cluster=cluster, written=written), wrap=False
    )


def _next(result: PlanResult, *, model: str, cluster: str, written: Path | None) -> Iterable[str]:
    if written is not None:
        yield f"meshwright estimate --plan {written}"
    again = estimate_command(result.best, model=model, cluster=cluster)
    if again is not None:
        yield again
    command = plan_command(result.best, model=model, cluster=cluster)
    if command is not None and written is None:
        yield f"{command} -o my-plan"


def section(console: Console, title: str, lines: Iterable[str], *, wrap: bool = True) -> None:
    """A heading and its sentences, each with a hanging indent."""
    console.print()
    console.print(Text(title, style="bold"))
    for line in lines:
        if wrap:
            text = textwrap.fill(
                line,
                console.width,
                initial_indent="  - ",
                subsequent_indent="    ",
                break_on_hyphens=False,
            )
            console.print(Text(text))
        else:  # a command must survive copying: no line breaks of ours
            console.print(Text(f"  {line}"), soft_wrap=True)


def plan_table(rows: Sequence[PlanRow], *, width: int) -> Table:
    """The table of plans: one line each where there is room, else two."""
    return _wide_table(rows) if width >= WIDE else _narrow_table(rows)


def bare_table() -> Table:
    """Columns with space between them and no lines."""
    return Table(box=None, padding=(0, 2, 0, 0), header_style="bold", pad_edge=False)


def _narrow_table(rows: Sequence[PlanRow]) -> Table:
    table = bare_table()
    table.add_column("#", justify="right")
    table.add_column("strategy\n", overflow="fold", min_width=20)
    for title in ("step\n(range)", "MFU\ntok/s/dev", "memory\nheadroom", "bubble\nexposed"):
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
    titles = ("step", "(range)", "tok/s/dev", "MFU", "memory", "headroom", "bubble", "exposed")
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


def exclusion_table(excluded: Sequence[Exclusion], *, width: int) -> Table:
    """What the rules dropped, most first."""
    del width
    table = bare_table()
    table.add_column("  excluded", justify="right", no_wrap=True)
    table.add_column("because", overflow="fold")
    for rule in sorted(excluded, key=lambda found: -found.count):
        table.add_row(f"{rule.count:,}", f"{rule.reason} ({rule.rule})")
    return table


def print_estimate(plan: Plan, *, console: Console | None = None) -> None:
    """What one strategy is predicted to do, and what its time and memory are made of."""
    console = console or make_console()
    p = plan.prediction
    console.print(Text(plan_sentence(plan), style="bold"))
    console.print()
    low, high = format_seconds(p.step_time.low), format_seconds(p.step_time.high)
    console.print(f"Step time {format_seconds(p.step_time_s)}, trusted from {low} to {high}")
    console.print(time_table(plan, width=console.width))
    console.print()
    console.print(Text("Memory per device", style="bold"))
    console.print(memory_table(plan))
    section(console, "Why", binding_sentences(plan))
    section(console, "Assumed", plan.assumptions)


def time_table(plan: Plan, *, width: int) -> Table:
    """The parts of a step with a bar each; parts that are nothing are left out."""
    table = bare_table()
    table.show_header = False
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
    memory, stages = plan.prediction.memory, stage_of_memory(plan.strategy)
    tightest = min(range(len(memory)), key=lambda i: memory[i].headroom_bytes)
    shown = sorted({0, tightest, len(memory) - 1})
    table = bare_table()
    table.add_column("", no_wrap=True)
    for index in shown:
        title = f"stage {stages[index] + 1} of {plan.strategy.pipeline}"
        note = "\n(tightest)" if index == tightest and len(shown) > 1 else "\n"
        table.add_column(title + note if len(shown) > 1 else title, justify="right", no_wrap=True)
    columns = [memory_parts(memory[index]) for index in shown]
    for parts in zip(*columns, strict=True):
        table.add_row(f"  {parts[0].name}", *(format_bytes(part.value) for part in parts))
    totals = {"total": "total_bytes", "capacity": "capacity_bytes", "headroom": "headroom_bytes"}
    for name, field in totals.items():
        values = (format_bytes(getattr(memory[index], field)) for index in shown)
        table.add_row(f"  {name}", *values, style="bold")
    return table
