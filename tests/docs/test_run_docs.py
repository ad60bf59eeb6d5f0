"""The documentation shows what runs: outputs, commands, tables; links lead somewhere."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

REPOSITORY = Path(__file__).resolve().parents[2]
PAGES = [
    page.relative_to(REPOSITORY)
    for page in (REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").rglob("*.md")))
    if "api" not in page.parts
]
PUBLISHED = "src/meshwright/validation/data/published_runs.csv"
ONE = "--device H100 --parameters family_efficiency"


@pytest.fixture(scope="module")
def run_docs() -> ModuleType:
    path = REPOSITORY / "scripts" / "run_docs.py"
    spec = importlib.util.spec_from_file_location("run_docs", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["run_docs"] = module  # where its dataclass looks for its own module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_page_shows_what_runs(run_docs, page):
    wrong = [
        f"{shown.where} shows\n{shown.expected}\nbut there is\n{shown.actual}"
        for shown in run_docs.outputs(REPOSITORY / page)
        if not run_docs.matches(shown.expected, shown.actual)
    ]
    assert not wrong, "\n".join([*wrong, "renew it: python scripts/run_docs.py --write"])


@pytest.mark.parametrize(
    ("page", "least"), [("README.md", 2), ("docs/tour.md", 12), ("docs/cli.md", 8)]
)
def test_pages_have_something_to_run(run_docs, page, least):
    text = (REPOSITORY / page).read_text(encoding="utf-8")
    kinds = [part["language"] for part in run_docs._PART.finditer(text)]
    assert sum(kind != "python" for kind in kinds) >= least


def test_every_field_of_the_json_objects_is_documented(run_docs):
    """Keys of the objects that the commands print, against the page; two stages, one group."""
    page = (REPOSITORY / "docs" / "cli.md").read_text(encoding="utf-8")
    page = page.partition("## `--json`")[2]
    documented = set(re.findall(r"`(\w+)(?:\[\])?`", page))
    workload = "--cluster 1x8xH100 -b 64 -s 2048"
    for command in (
        f"plan llama-3.2-1b {workload} --pp 2 --json",
        f"estimate llama-3.2-1b {workload} --tp 2 --json",
        "inspect llama-3.2-1b --json",
        "inspect 2x8xH100 --json",
        "validate --filter num_devices=64 --json",
        f"calibrate --measurements {PUBLISHED} --stack torchtitan {ONE} --json",
    ):
        printed = json.loads(run_docs.run_command(f"meshwright {command}"))
        assert not _keys(printed) - documented, command


def _keys(value):
    """Names of fields, not those of rules and modes, which are data."""
    if isinstance(value, list):
        return set().union(*map(_keys, value))
    if not isinstance(value, dict):
        return set()
    below = (v for k, v in value.items() if k not in ("excluded", "activation_bytes", "skipped"))
    return set(value).union(*map(_keys, below))


@pytest.mark.parametrize(
    ("expected", "actual", "same"),
    [
        ("a\nb\n", "a\nb\n", True),
        ("a\nb\n", "a\nc\n", False),
        ("a\n", "a\nb\n", False),
        ("a\n[...]\nd\n", "a\nb\nc\nd\n", True),
        ("a\n[...]\nd\n", "a\nd\n", True),
        ("a\n[...]\nd\n", "a\nb\n", False),
        ("took [...] s\n", "took 1.5 s\n", True),
        ("took [...] s\n", "took 1.5 ms\n", False),
        ("a.c\n", "abc\n", False),
    ],
)
def test_matches(run_docs, expected, actual, same):
    assert run_docs.matches(expected, actual) is same


@given(lines=st.lists(st.from_regex(r"[a-z .]{1,8}", fullmatch=True), min_size=1, max_size=6))
def test_a_renewed_output_matches(run_docs, lines):
    actual = "\n".join(lines) + "\n"
    assert run_docs.matches(run_docs.renewed("", actual), actual)


def test_renewed_keeps_the_cuts(run_docs):
    old = "one 1\n[...]\nthree 3\n"
    assert run_docs.renewed(old, "one 5\ntwo 6\nthree 7\n") == "one 5\n[...]\nthree 7\n"


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_links_between_pages(page):
    text = (REPOSITORY / page).read_text(encoding="utf-8")
    for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", text):
        assert (REPOSITORY / page).parent.joinpath(target).exists(), f"{page}: {target}"


def test_every_page_is_in_the_navigation():
    navigation = (REPOSITORY / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:")[2]
    listed = set(re.findall(r"[\w/-]+\.md", navigation))
    there = {str(p.relative_to(REPOSITORY / "docs")) for p in (REPOSITORY / "docs").rglob("*.md")}
    assert listed == there
