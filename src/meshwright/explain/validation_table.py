"""A validation in the terminal and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.table import Table

from meshwright.explain.console import bare_table, opened, print_bold, print_section
from meshwright.units import format_percent
from meshwright.validation import SKIPS, Group, Validation
from meshwright.validation.targets import Target, target_values

#: Groups have long names; figures matter more.
_NAME_WIDTH = 44


def validation_json(validation: Validation) -> dict[str, Any]:
    """The groups, field by field, and the targets."""
    return {
        "groups": [asdict(group) for group in validation.groups],
        "targets": [
            {
                "name": target.name,
                "goal": target.goal,
                "value": value,
                "met": target.met(value),
                "others": target.others,
            }
            for target, value in target_values(validation.outcomes)
        ],
    }


def print_validation(
    validation: Validation, *, written: Sequence[str] = (), console: Console | None = None
) -> None:
    """Tables of errors, rankings and targets, and why rows were skipped.

    Args:
        validation: what to print.
        written: files that were written.
        console: where to print; stdout by default.
    """
    everything = validation.groups[0]
    with opened(console) as out:
        total = len(validation.outcomes)
        print_bold(out, f"{everything.rows:,} of {total:,} runs predicted")
        out.print()
        out.print(_group_table(validation.groups))
        ranked = [group for group in validation.groups if group.ranking.sweeps]
        if ranked:
            out.print()
            print_bold(out, "Choosing among the configurations of one sweep")
            out.print(_ranking_table(ranked))
        out.print()
        print_bold(out, "Targets, over all runs")
        out.print(_target_table(target_values(validation.outcomes)))
        if everything.skipped:
            reasons = [f"{count:,} {SKIPS[key]} ({key})." for key, count in _skipped(everything)]
            print_section(out, "Skipped", reasons)
        if written:
            print_section(out, "Written", written)


def _skipped(group: Group) -> list[tuple[str, int]]:
    return sorted(group.skipped.items(), key=lambda item: -item[1])


def _percent(value: float | None) -> str:
    return "–" if value is None else format_percent(value)


def _group_table(groups: Sequence[Group]) -> Table:
    table = bare_table()
    table.add_column("runs", overflow="fold", max_width=_NAME_WIDTH)
    titles = ("used\nskipped", "median error\nmean error", "bias\nin interval")
    for title in (*titles, "memory error\nworst below", "outcomes\nright"):
        table.add_column(title, justify="right", no_wrap=True)
    for group in groups:
        t, m = group.time, group.memory
        oom = m.oom
        right, outcomes = oom.ran_fits + oom.oom_oom, sum(asdict(oom).values())
        pairs = ((t.median_ape, t.mape), (t.bias, t.coverage), (m.mape, m.worst_under))
        table.add_row(
            group.name,
            f"{group.rows:,}\n{sum(group.skipped.values()):,}",
            *("\n".join(map(_percent, pair)) for pair in pairs),
            f"{right}/{outcomes}" if outcomes else "–",
            style="bold" if group.name == "all" else None,
        )
    return table


def _ranking_table(groups: Sequence[Group]) -> Table:
    table = bare_table()
    table.add_column("runs", overflow="fold", max_width=_NAME_WIDTH)
    titles = ("sweeps", "best\npicked", "mean\nregret", "worst\nregret")
    for title in (*titles, "rank corr.\nmean", "rank corr.\nlowest"):
        table.add_column(title, justify="right", no_wrap=True)
    for group in groups:
        r = group.ranking
        correlations = ("–" if c is None else f"{c:.3f}" for c in (r.spearman_mean, r.spearman_min))
        table.add_row(
            group.name,
            f"{r.sweeps:,}",
            *map(_percent, (r.top1, r.regret_mean, r.regret_max)),
            *correlations,
            style="bold" if group.name == "all" else None,
        )
    return table


def _target_table(found: Sequence[tuple[Target, float | None]]) -> Table:
    table = bare_table()
    for title in ("what", "here", "target", "met", "others"):
        table.add_column(title, overflow="fold", justify="right" if title == "here" else "left")
    for target, value in found:
        met = target.met(value)
        table.add_row(
            target.name,
            _figure(target, value),
            target.goal,
            "–" if met is None else "yes" if met else "no",
            target.others,
        )
    return table


def _figure(target: Target, value: float | None) -> str:
    if value is None or "%" in target.goal:
        return _percent(value)
    return f"{value:.3f}" if target.least > 0.0 else f"{value:.0f}"
