"""Plans as a notebook and ``print`` show them: a sentence and a small table."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from meshwright.planning.plan_types import Plan, PlanResult
from meshwright.planning.rows import PlanRow, plan_rows
from meshwright.planning.words import plan_sentence
from meshwright.units import format_bytes, format_percent, format_seconds

_TITLES = ("", "degrees", "with", "step", "tokens/s/device", "MFU", "memory", "headroom")


def result_html(result: PlanResult) -> str:
    """The best plan in a sentence, and all plans in a table."""
    return _html(plan_sentence(result.best), plan_rows((result.best, *result.alternatives)))


def plan_html(plan: Plan) -> str:
    """One plan in a sentence and a row."""
    return _html(plan_sentence(plan), plan_rows((plan,)))


def result_text(result: PlanResult) -> str:
    """As ``result_html``, for ``print``."""
    return _text(plan_sentence(result.best), plan_rows((result.best, *result.alternatives)))


def _cells(row: PlanRow) -> tuple[str, ...]:
    return (
        str(row.rank),
        row.degrees,
        row.choices,
        format_seconds(row.step_time_s),
        f"{row.tokens_per_s_per_device:,.0f}",
        format_percent(row.mfu),
        format_bytes(row.peak_memory_bytes),
        format_bytes(row.headroom_bytes),
    )


def _html(sentence: str, rows: Sequence[PlanRow]) -> str:
    head = "".join(f"<th>{escape(title)}</th>" for title in _TITLES)
    body = "".join(
        f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in _cells(row))}</tr>" for row in rows
    )
    return (
        f"<p>{escape(sentence)}</p>"
        f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    )


def _text(sentence: str, rows: Sequence[PlanRow]) -> str:
    lines = [_TITLES, *map(_cells, rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(_TITLES))]
    words = 3  # the first columns are text and stand to the left, numbers to the right
    table = [
        "  ".join(
            cell.ljust(width) if column < words else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    ]
    return "\n".join([sentence, *table])
