"""Everything that can be given as a model, and everything that can be wrong with it."""

from __future__ import annotations

import json
import os
import warnings
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from meshwright.errors import (
    AssumptionWarning,
    FileError,
    MeshwrightError,
    ModelError,
    UnknownModelError,
)
from meshwright.files import read_text
from meshwright.graph.sources import load_model

CONFIG: dict[str, Any] = {
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 112,
    "num_hidden_layers": 3,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "vocab_size": 320,
}
COUNT = 320 * 64 * 2 + 64 + 3 * (2 * 64 * 64 + 2 * 64 * 16 + 3 * 64 * 112 + 2 * 64)
TEXT = json.dumps(CONFIG)


def failure(model: object) -> MeshwrightError:
    with pytest.raises(MeshwrightError) as caught:
        load_model(model)
    assert caught.value.exit_code == 2
    assert len(str(caught.value)) < 2500
    return caught.value


# -- what is accepted ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        "llama-3.1-70b",
        "Llama-3.1-70B",
        "LLAMA_3.1_70B",
        "llama3-70b",
        "llama3.1-70b",
        "Meta-Llama-3.1-70B",
        "meta-llama/Llama-3.1-70B",
        "meta-llama/Meta-Llama-3.1-70B-Instruct",
        "meta-llama/Llama-3.1-70B-Instruct",
        "  llama-3.1-70b\n",
    ],
)
def test_names_in_any_spelling(name: str) -> None:
    graph = load_model(name)
    assert graph.name == "llama-3.1-70b"
    assert graph.parameter_count() == 70_553_706_496


def test_a_mapping_and_its_text() -> None:
    assert load_model(CONFIG).parameter_count() == COUNT
    assert load_model(TEXT).parameter_count() == COUNT
    assert load_model(f"\n {TEXT} \n").name == "llama"
    assert load_model({**CONFIG, "_name_or_path": "mine"}).name == "mine"


def test_a_file_and_its_directory(tmp_path: Path) -> None:
    folder = tmp_path / "my-model"
    folder.mkdir()
    path = folder / "config.json"
    path.write_text(TEXT, encoding="utf-8")
    for given_as in (path, folder, str(path), str(folder)):
        graph = load_model(given_as)
        assert graph.name == "my-model"
        assert graph.source == str(path)
        assert graph.parameter_count() == COUNT


def test_a_file_of_another_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tiny.json").write_text(TEXT, encoding="utf-8")
    (tmp_path / "bom").write_text("\ufeff" + TEXT, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert load_model("tiny.json").name == "tiny"
    assert load_model("bom").parameter_count() == COUNT


def test_a_catalogue_name_wins_over_a_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "gpt2").write_text(TEXT, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert load_model("gpt2").family == "gpt2"
    assert load_model("./gpt2").family == "llama"


def test_a_path_with_a_directory_wins_where_it_exists(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "mine" / "gpt2"
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(TEXT, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert load_model("mine/gpt2").family == "llama"
    assert load_model("openai-community/gpt2").family == "gpt2"


# -- what is not -----------------------------------------------------------------------------


def test_an_unknown_name_is_answered_with_the_nearest() -> None:
    error = failure("llama-3.1-71b")
    assert isinstance(error, UnknownModelError)
    assert "did you mean llama-3.1-70b" in error.fix
    assert "gpt3-175b" in error.fix


@pytest.mark.parametrize(
    "name", ["x", "☃" * 5000, "a\0b", "some/where", "~nobody-here/x", "-" * 300]
)
def test_names_that_mean_nothing(name: str) -> None:
    assert isinstance(failure(name), UnknownModelError | FileError)


def test_nothing_at_all() -> None:
    assert failure("").what == failure("  \n").what == "the model is an empty text"
    assert "NoneType" in failure(None).what
    assert "int" in failure(7).what
    assert "list" in failure([CONFIG]).what


def test_missing_files() -> None:
    assert isinstance(failure("./nowhere.json"), FileError)
    assert isinstance(failure("nowhere.json"), FileError)
    assert isinstance(failure(Path("/nowhere/config.json")), FileError)
    assert isinstance(failure("/" + "x" * 5000), FileError)


def test_a_directory_without_a_configuration(tmp_path: Path) -> None:
    error = failure(tmp_path)
    assert error.what == "this directory holds no config.json"
    (tmp_path / "config.json").mkdir()
    assert failure(tmp_path).what == "the model description is a directory"


def test_a_huge_file_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "huge.json"
    with path.open("wb") as stream:
        stream.truncate(2**30)
    error = failure(path)
    assert error.what == "the model description is too large (1.0 GiB)"
    assert error.allowed == "at most 10.0 MiB"


def test_a_device_or_pipe_is_no_file(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.json"
    os.mkfifo(pipe)
    assert failure(pipe).what == "the model description is not a regular file"
    assert isinstance(failure("/dev/zero"), FileError)


def test_not_utf8(tmp_path: Path) -> None:
    path = tmp_path / "latin.json"
    path.write_bytes(TEXT.encode() + b"\xff")
    error = failure(path)
    assert error.what == f"the model description is not UTF-8 text (byte {len(TEXT)})"


def test_an_empty_file(tmp_path: Path) -> None:
    path = tmp_path / "empty.json"
    path.write_text(" \n")
    assert failure(path).what == "the model description is empty"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a": 1,\n "b" 2}', "(line 2, column 6)"),
        ("{", "(line 1, column 2)"),
        ("[1, 2]", "but a list"),
        ('{"a": NaN}', "NaN is not a JSON number"),
        ('{"a": -Infinity}', "-Infinity is not a JSON number"),
        ('{"a": 1, "a": 2}', "the field 'a' is given twice"),
        ("{" + '"a":{' * 100_000, "nested too deeply"),
        ("[" * 200_000, "nested too deeply"),
        ('{"a": ' + "9" * 5000 + "}", "a number is too long"),
        ("{}", "is missing"),
        ('{"model_type": 3}', "model_type is 3"),
        ('{"model_type": "llama"}', "hidden_size"),
    ],
)
def test_wrong_json(text: str, message: str) -> None:
    error = failure(text)
    assert isinstance(error, ModelError)
    assert message in error.what


@pytest.mark.parametrize("text", ['"llama"', "3", "null", "true"])
def test_json_that_is_no_object(tmp_path: Path, text: str) -> None:
    path = tmp_path / "value.json"
    path.write_text(text)
    assert "not an object" in failure(path).what


def test_text_of_unreasonable_length() -> None:
    assert "characters" in failure('{"a": "' + "x" * 11_000_000 + '"}').what


def test_where_names_the_file_and_the_field(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps({**CONFIG, "num_hidden_layers": 0}))
    assert failure(path).where == f"{path}: num_hidden_layers"


# -- read_text itself --------------------------------------------------------------------------


def test_read_text_keeps_to_its_limit(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_text("äb")
    assert read_text(path, limit_bytes=3, kind="text") == "äb"
    with pytest.raises(FileError, match="too large"):
        read_text(path, limit_bytes=2, kind="text")


def test_an_unreadable_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "secret"
    path.write_text("x")

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(FileError, match="the text may not be read"):
        read_text(path, limit_bytes=9, kind="text")


# -- anything ----------------------------------------------------------------------------------

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-5, 200)
    | st.integers()
    | st.floats()
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)


def load_or_explain(model: object) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AssumptionWarning)
        error = None
        try:
            count = load_model(model).parameter_count()
        except MeshwrightError as raised:
            error = raised
    if error is None:
        assert count > 0
    else:
        assert error.what
        assert error.where
        assert len(str(error)) < 2500


@given(st.text())
def test_any_text(text: str) -> None:
    load_or_explain(text)


@given(st.text(max_size=40))
def test_any_text_that_looks_like_json(text: str) -> None:
    load_or_explain("{" + text)


@given(st.dictionaries(st.sampled_from([*CONFIG, "head_dim", "layer_types"]), json_values))
def test_any_values_in_the_usual_fields(config: dict[str, object]) -> None:
    load_or_explain(config)


@given(st.dictionaries(st.sampled_from([*CONFIG, "head_dim", "num_experts"]), json_values))
def test_any_change_of_a_good_configuration(changes: dict[str, object]) -> None:
    load_or_explain({**CONFIG, **changes})
