"""Spaces and the targets that narrow them."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest

from meshwright.errors import StrategyError
from meshwright.strategy import (
    AXIS_ORDERS,
    Offload,
    Recompute,
    Space,
    find_target,
    target_names,
)

DEGREES = ("tensor", "context", "pipeline", "data", "expert", "expert_tensor")
TUPLES = [f.name for f in fields(Space) if isinstance(getattr(Space(), f.name), tuple)]


@pytest.mark.parametrize("name", [*DEGREES, "virtual_stages", "micro_batch_sizes"])
@pytest.mark.parametrize("value", [0, -2, 1.5, True, "4"])
def test_counts_are_positive_whole_numbers(name, value):
    with pytest.raises(StrategyError) as caught:
        Space(**{name: (1, value)})
    assert caught.value.where == f"space.{name}"
    assert repr(value) in caught.value.what


@pytest.mark.parametrize("name", [*TUPLES, *DEGREES])
def test_every_dimension_has_a_value(name):
    with pytest.raises(StrategyError) as caught:
        Space(**{name: ()})
    assert caught.value.where == f"space.{name}"


def test_zero_stages_are_0_to_3():
    with pytest.raises(StrategyError, match="unknown ZeRO stage"):
        Space(zero_stages=(0, 4))


def test_axis_orders_are_checked():
    with pytest.raises(StrategyError, match="does not name every axis once"):
        Space(axis_orders=(AXIS_ORDERS[0], ("tensor", "data")))


# ---------------------------------------------------------------- targets
def test_target_names_are_found_in_any_case():
    for name in target_names():
        assert find_target(name.upper()).name == name


@pytest.mark.parametrize("name", ["megatronn", "", "x" * 1000, "deep speed"])
def test_an_unknown_target_lists_the_known_ones(name):
    with pytest.raises(StrategyError) as caught:
        find_target(name)
    assert all(known in caught.value.allowed for known in target_names())
    assert caught.value.where == "--target"


def test_a_near_miss_is_offered():
    with pytest.raises(StrategyError) as caught:
        find_target("megatronn")
    assert "'megatron'" in caught.value.fix


@pytest.mark.parametrize("name", target_names())
def test_every_target_says_where_its_facts_come_from(name):
    target = find_target(name)
    assert target.title
    assert target.source
    assert set(target.zero_stages) <= {0, 1, 2, 3}
    assert set(target.without) <= {*DEGREES, "pipeline"}
    assert 0 <= target.zero_with_pipeline <= 3


@pytest.mark.parametrize("name", target_names())
def test_a_narrowed_space_is_a_part_of_the_whole(name):
    whole = Space(offload=tuple(Offload))
    part = whole.narrowed(find_target(name))
    assert part.target == name
    for field in TUPLES:
        assert set(getattr(part, field)) <= set(getattr(whole, field)), field
    assert part.zero_with_pipeline <= whole.zero_with_pipeline
    for degree in find_target(name).without:
        assert getattr(part, degree) == (1,)
    assert part.narrowed(find_target(name)) == part


def test_deepspeed_has_no_interleaving_and_no_selective_recomputation():
    part = Space().narrowed(find_target("deepspeed"))
    assert part.virtual_stages == (1,)
    assert part.recompute == (Recompute.NONE, Recompute.FULL)
    assert part.zero_with_pipeline == 1


def test_nothing_in_common_is_an_error_that_names_the_dimension():
    with pytest.raises(StrategyError) as caught:
        Space(zero_stages=(0, 1)).narrowed(find_target("torchtitan"))
    assert caught.value.where == "space.zero_stages"


def test_what_a_space_fixes_stays_fixed():
    part = replace(Space(), tensor=(4,), micro_batch_sizes=(2,)).narrowed(find_target("megatron"))
    assert part.tensor == (4,)
    assert part.micro_batch_sizes == (2,)
