"""A fitted stack as ``stack.toml``: what differs from its base, with the source of it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from meshwright.calibration.parameters import Slot
from meshwright.cost.coefficients import Coefficients
from meshwright.cost.stacks import UNITS, Stack
from meshwright.provenance import Provenance

_KEYS = {field: (key, unit) for key, (field, unit) in UNITS.items()}


def stack_toml(
    coefficients: Coefficients,
    base: Stack,
    *,
    fitted: Sequence[Slot],
    others: Iterable[Slot],
    title: str,
    source: str,
) -> str:
    """The text of the file.

    Args:
        coefficients: of the fitted stack.
        base: the stack that it inherits from.
        fitted: what was fitted; written even where it did not change.
        others: what may differ besides, because the fit started from neutral values.
        title: of the stack.
        source: of the fitted values, in words.
    """
    name = f"{base.name}-calibrated".replace("+", "-")  # a key that needs no quotes
    neutral = [
        slot
        for slot in others
        if slot not in fitted and slot.value(coefficients) != slot.value(base.coefficients)
    ]
    lines = [
        "# A software stack for `meshwright plan --stack PATH`, in the form of cost/stacks.toml.",
        f"[{name}]",
        f"title = {_text(title)}",
        f"base = {_text(base.name)}",
        f"attention = {_text(base.attention.value)}",
    ]
    # The source of a parameter that stands in both is the later one.
    for slots, kind, text in (
        (neutral, Provenance.ANALYTIC, "neutral value, where the fit started"),
        (fitted, Provenance.FITTED, source),
    ):
        if slots:
            lines += ["", f"[[{name}.values]]", f"kind = {_text(kind.value)}"]
            lines += [f"text = {_text(text)}", *_values(slots, coefficients)]
    return "\n".join(lines) + "\n"


def _values(slots: Sequence[Slot], coefficients: Coefficients) -> list[str]:
    lines = []
    for name in dict.fromkeys(slot.parameter.name for slot in slots):
        same = [slot for slot in slots if slot.parameter.name == name]
        key, unit = _KEYS.get(name, (name, 1.0))
        if same[0].key:
            factors = ", ".join(f"{_text(s.key)} = {s.value(coefficients):.4g}" for s in same)
            lines.append(f"{key} = {{ {factors} }}")
        else:
            lines.append(f"{key} = {same[0].value(coefficients) / unit:.4g}")
    return lines


def _text(value: str) -> str:
    """A TOML string; a JSON string of printable characters is one."""
    return json.dumps("".join(c if c.isprintable() else "?" for c in value), ensure_ascii=False)
