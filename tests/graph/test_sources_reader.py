"""Fields of a config.json: what is read, and what each wrong value is told."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from meshwright.errors import ModelError
from meshwright.graph.sources.huggingface import ConfigReader

HUGE = 10**400


def reader(**values: object) -> ConfigReader:
    return ConfigReader(values, where="a.json")


def failure(call: Callable[[], object]) -> ModelError:
    with pytest.raises(ModelError) as caught:
        call()
    return caught.value


def test_the_first_alias_present_is_read() -> None:
    r = reader(n_embd=8, d_model=9, hidden_size=None)
    assert r.positive("hidden_size", "n_embd", "d_model") == 8


def test_whole_floats_are_integers() -> None:
    assert reader(n=4096.0).positive("n") == 4096


@pytest.mark.parametrize(
    "value",
    [0, -1, 4096.5, math.nan, math.inf, "12", True, False, [], {}, 2**31 + 1, HUGE, -HUGE, 1e300],
)
def test_no_such_positive_integer(value: object) -> None:
    error = failure(lambda: reader(n=value).positive("n"))
    assert error.where == "a.json: n"
    assert error.allowed == f"an integer from 1 to {2**31}"
    assert error.fix
    assert len(str(error)) < 400


def test_numbers_of_layers_are_bounded() -> None:
    assert reader(n=10_000).layers("n") == 10_000
    assert "from 1 to 10000" in failure(lambda: reader(n=10_001).layers("n")).allowed


def test_a_missing_field_names_its_aliases() -> None:
    error = failure(lambda: reader().positive("hidden_size", "n_embd"))
    assert error.what == "hidden_size (also spelled n_embd) is missing"
    assert error.where == "a.json: hidden_size"


def test_a_null_field_is_called_null() -> None:
    assert failure(lambda: reader(n=None).positive("n")).what == "n is null"


def test_a_misspelt_field_is_suggested() -> None:
    error = failure(lambda: reader(hiden_size=8).positive("hidden_size"))
    assert "did you mean hidden_size by hiden_size?" in error.fix


def test_defaults_serve_absent_and_null_fields() -> None:
    r = reader(n=None)
    assert r.positive("n", default=3) == 3
    assert r.optional("n") is None
    assert r.count("n", default=0) == 0
    assert r.flag("n", default=True) is True
    assert r.number("n", default=0.5) == 0.5
    assert r.text("n", default="x") == "x"
    assert r.choice("n", allowed=("x", "y"), default="y") == "y"
    assert r.numbers("n") is r.texts("n") is r.entries("n") is r.sub("n") is None


def test_counts_may_be_zero() -> None:
    assert reader(n=0).count("n") == 0
    failure(lambda: reader(n=-1).count("n"))


def test_flags_are_booleans() -> None:
    assert reader(f=False).flag("f", default=True) is False
    error = failure(lambda: reader(f=1).flag("f"))
    assert error.allowed == "true or false"
    failure(lambda: reader(f="true").flag("f"))


@pytest.mark.parametrize("value", [math.nan, math.inf, -0.5, "0.1", True, HUGE, []])
def test_numbers_are_finite_and_not_negative(value: object) -> None:
    assert "finite" in failure(lambda: reader(p=value).number("p", default=0.0)).allowed


def test_a_needed_number() -> None:
    assert reader(p=1).number("p") == 1.0
    assert failure(lambda: reader().number("p")).what == "p is missing"


def test_texts_and_choices() -> None:
    assert reader(t="a").text("t") == "a"
    failure(lambda: reader(t=3).text("t"))
    error = failure(lambda: reader(t="c").choice("t", allowed=("b", "a")))
    assert error.allowed == "a, b"
    assert failure(lambda: reader().choice("t", allowed=("b", "a"))).allowed == "a or b"


def test_lists() -> None:
    r = reader(n=[1, 0], t=["a", "b"], o=[{"x": 1}])
    assert r.numbers("n") == (1, 0)
    assert r.texts("t", length=2) == ("a", "b")
    (entry,) = r.entries("o") or ()
    assert entry.positive("x") == 1


def test_wrong_lists_name_the_entry() -> None:
    r = reader(n=[1, -2], t=["a", 3], o=[{"x": 0}, 5], s="abc")
    assert failure(lambda: r.numbers("n")).where == "a.json: n[1]"
    assert failure(lambda: r.texts("t")).where == "a.json: t[1]"
    assert failure(lambda: r.texts("t", allowed=("b",))).where == "a.json: t[0]"
    assert failure(lambda: r.entries("o")).where == "a.json: o[1]"
    assert failure(lambda: r.numbers("s")).what == "s is 'abc'"
    one = reader(o=[{"x": 0}]).entries("o") or ()
    assert failure(lambda: one[0].positive("x")).where == "a.json: o[0].x"


def test_a_list_has_one_entry_per_layer() -> None:
    error = failure(lambda: reader(t=["a"]).texts("t", length=2))
    assert error.what == "t has 1 entries for 2 layers"


def test_nested_fields_carry_their_path() -> None:
    r = reader(text_config={"n": 0})
    assert failure(lambda: r.text_model().positive("n")).where == "a.json: text_config.n"
    assert failure(lambda: reader(text_config=3).text_model()).where == "a.json: text_config"
    flat = reader(n=1)
    assert flat.text_model() is flat


def test_assumptions_are_shared_with_nested_readers() -> None:
    r = reader(text_config={})
    r.text_model().assume("One.")
    r.assume("One.")
    r.assume("Two.")
    assert r.assumptions == ("One.", "Two.")


def test_heads_divide_the_hidden_size_unless_their_width_is_given() -> None:
    assert reader().head_dim(hidden=64, heads=4) == 16
    assert reader(head_dim=128).head_dim(hidden=65, heads=4) == 128
    assert "65 is not divisible by 4" in failure(lambda: reader().head_dim(hidden=65, heads=4)).what


def test_key_value_heads_divide_the_heads() -> None:
    assert reader().kv_heads("kv", heads=8) == 8
    assert reader().kv_heads("kv", heads=8, default=2) == 2
    error = failure(lambda: reader(kv=3).kv_heads("kv", heads=8))
    assert error.where == "a.json: kv"


def test_a_token_chooses_no_more_experts_than_there_are() -> None:
    assert reader(k=8).top_k("k", experts=8) == 8
    error = failure(lambda: reader(k=9).top_k("k", experts=8))
    assert error.allowed == "1 to 8"
