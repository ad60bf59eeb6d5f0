"""A scatter plot of predicted against measured step times: one HTML file, nothing to load."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from html import escape

from meshwright.units import format_percent, format_seconds
from meshwright.validation.outcomes import Outcome
from meshwright.validation.runs import Run

_SIZE, _MARGIN = 720, 72
#: Distinct in lightness too; further groups share them.
_COLOURS = (
    *("#0b5fa5", "#d1495b", "#2e8b57", "#e09f3e", "#6a4c93", "#3d9db3", "#8a5a44", "#c86fa8"),
    *("#555555", "#8aa629", "#1b998b", "#b5651d"),
)

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>
body {{ font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 66rem;
  padding: 0 1rem; color: #1c1c1c; background: #fff; }}
svg {{ width: 100%; max-width: 46rem; height: auto; }}
.axis {{ stroke: #d6d6d6; }} .frame {{ fill: none; stroke: #888; }} text {{ font-size: 13px; }}
circle {{ opacity: .65; }} circle:hover {{ opacity: 1; stroke: #000; }}
button {{ font: inherit; border: 0; background: none; padding: .1rem .6rem .1rem 0;
  cursor: pointer; }}
button[aria-pressed=false] {{ opacity: .35; text-decoration: line-through; }}
</style></head><body>
<h1>{title}</h1><p>{summary}</p>
<svg viewBox="0 0 {size} {size}" role="img" aria-label="{title}">
{axes}
{points}
</svg>
<p>{legend}</p>
<script>
for (const button of document.querySelectorAll("button")) button.onclick = () => {{
  const shown = button.getAttribute("aria-pressed") === "false";
  button.setAttribute("aria-pressed", shown);
  document.getElementById(button.dataset.group).style.display = shown ? "" : "none";
}};
</script></body></html>
"""


def scatter_html(outcomes: Sequence[Outcome], *, group: Callable[[Run], str]) -> str:
    """Predicted over measured step time on logarithmic axes, coloured by group.

    Args:
        outcomes: rows; those without a measured or predicted time are left out.
        group: the name of a row's group.
    """
    found = [
        (o.run, o.run.step_s, o.prediction.step_time_s)
        for o in outcomes
        if o.prediction is not None and o.run.step_s is not None
    ]
    times = [value for _, measured, predicted in found for value in (measured, predicted)]
    low = math.floor(math.log10(min(times, default=0.1)))
    high = max(math.ceil(math.log10(max(times, default=10.0))), low + 1)
    scale = (_SIZE - 2 * _MARGIN) / (high - low)

    def place(seconds: float) -> float:
        return _MARGIN + (math.log10(seconds) - low) * scale

    names = sorted({group(run) for run, _, _ in found}, key=str.casefold)
    points, legend = [], []
    for index, name in enumerate(names):
        colour = _COLOURS[index % len(_COLOURS)]
        dots = [
            f'<circle cx="{place(measured):.1f}" cy="{_SIZE - place(predicted):.1f}" r="4">'
            f"<title>{escape(_hover(run, measured, predicted))}</title></circle>"
            for run, measured, predicted in found
            if group(run) == name
        ]
        points.append(f'<g id="g{index}" fill="{colour}">\n' + "\n".join(dots) + "\n</g>")
        legend.append(
            f'<button aria-pressed="true" data-group="g{index}"><span style="color:{colour}">'
            f"●</span> {escape(name or '(not stated)')} ({len(dots)})</button>"
        )
    return _PAGE.format(
        title="Predicted and measured step times",
        summary=f"{len(found):,} runs; on the line the prediction is right. Point at a run for "
        "what it is; click a group to hide it.",
        size=_SIZE,
        axes=_axes(low, high, place),
        points="\n".join(points),
        legend="\n".join(legend),
    )


def _hover(run: Run, measured_s: float, predicted_s: float) -> str:
    i = run.inputs
    p = i.parallel
    degrees = " ".join(
        f"{name}{value}"
        for name, value in (("tp", p.tp), ("pp", p.pp), ("dp", p.dp), ("cp", p.cp), ("ep", p.ep))
        if value
    )
    return (
        f"{i.architecture.model} on {i.hardware.num_devices} {i.hardware.device_type}\n"
        f"{degrees}, micro-batch {p.micro_batch}, {i.precision}, {i.software.framework}\n"
        f"measured {format_seconds(measured_s)}, predicted {format_seconds(predicted_s)} "
        f"({format_percent(predicted_s / measured_s - 1.0)})\n{run.quality.source}"
    )


def _axes(low: int, high: int, place: Callable[[float], float]) -> str:
    """Grid lines at powers of ten, the frame, and the line where both are equal."""
    near, far, end = _MARGIN, _SIZE - _MARGIN, _SIZE - _MARGIN + 22
    lines = []
    for power in range(low, high + 1):
        x, label = place(10.0**power), format_seconds(10.0**power)
        y = _SIZE - x
        lines += [
            f'<line class="axis" x1="{x:.1f}" y1="{near}" x2="{x:.1f}" y2="{far}"/>',
            f'<line class="axis" x1="{near}" y1="{y:.1f}" x2="{far}" y2="{y:.1f}"/>',
            f'<text x="{x:.1f}" y="{end}" text-anchor="middle">{label}</text>',
            f'<text x="{near - 6}" y="{y + 4:.1f}" text-anchor="end">{label}</text>',
        ]
    middle = _SIZE / 2
    side = f'<text x="18" y="{middle}" text-anchor="middle" transform="rotate(-90 18 {middle})">'
    lines += [
        f'<rect class="frame" x="{near}" y="{near}" width="{far - near}" height="{far - near}"/>',
        f'<line x1="{near}" y1="{far}" x2="{far}" y2="{near}" stroke="#444"/>',
        f'<text x="{middle}" y="{end + 24}" text-anchor="middle">measured step time</text>',
        f"{side}predicted step time</text>",
    ]
    return "\n".join(lines)
