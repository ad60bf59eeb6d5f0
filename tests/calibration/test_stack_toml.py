"""The written file holds the fitted stack, whatever its values and its name."""

from __future__ import annotations

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from meshwright.calibration import PARAMETERS
from meshwright.calibration.parameters import slots_of, with_values
from meshwright.calibration.stack_toml import stack_toml
from meshwright.cost.stack_file import parse_stack
from meshwright.cost.stacks import find_stack, stack_names
from meshwright.provenance import Provenance


@st.composite
def fitted_stacks(draw):
    base = find_stack(draw(st.sampled_from(stack_names())))
    slots = slots_of(PARAMETERS, base.coefficients, family="H100", precisions=("bf16", "fp8"))
    values = {
        slot: float(f"{draw(st.floats(slot.parameter.low, slot.parameter.high)):.4g}")
        for slot in slots
    }
    return base, slots, values


@given(case=fitted_stacks(), source=st.text(min_size=1), cut=st.integers(0, len(PARAMETERS)))
def test_round_trip(case, source, cut):
    base, slots, values = case
    coefficients = with_values(base.coefficients, values)
    text = stack_toml(
        coefficients,
        base,
        fitted=slots[:cut],
        others=slots,
        title="a title",
        source=f"fitted: {source}",
    )
    tomllib.loads(text)
    found = parse_stack(text, where="stack.toml")
    for slot, value in values.items():
        assert slot.value(found.coefficients) == pytest.approx(value, rel=1e-3)
    assert found.attention is base.attention
    if cut:
        name = slots[0].parameter.name
        assert found.coefficients.sources[name].kind is Provenance.FITTED


def test_nothing_fitted_is_the_base():
    base = find_stack("fsdp")
    text = stack_toml(base.coefficients, base, fitted=(), others=(), title="t", source="s")
    found = parse_stack(text, where="stack.toml").coefficients
    for name in ("launch_s", "overlap", "family_efficiency", "matrix_efficiency"):
        assert getattr(found, name) == getattr(base.coefficients, name)
