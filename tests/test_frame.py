"""The public surface, the cost of importing it, the examples in docstrings, the project's files."""

from __future__ import annotations

import ast
import doctest
import importlib
import json
import pkgutil
import subprocess
import sys
import tomllib
from importlib.metadata import metadata, requires, version
from pathlib import Path

import pytest

import meshwright
from meshwright import errors

# Frozen: a name that users import is added here on purpose, and never taken away by accident.
PUBLIC = {
    "AssumptionWarning",
    "Cluster",
    "ClusterError",
    "FileError",
    "InfeasibleError",
    "MeshwrightError",
    "MissingExtraError",
    "ModelError",
    "ModelGraph",
    "Plan",
    "PlanResult",
    "Space",
    "Stage",
    "Strategy",
    "StrategyError",
    "UnknownDeviceError",
    "UnknownModelError",
    "UsageError",
    "Workload",
    "WorkloadError",
    "__version__",
    "estimate",
    "load_cluster",
    "load_model",
    "load_plan",
    "plan",
    "save_plan",
    "uniform_strategy",
}
MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(meshwright.__path__, "meshwright.")
    if not module.name.endswith(("._core", ".__main__"))
)


def run_python(code):
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_public_names_are_the_documented_ones():
    assert set(meshwright.__all__) == PUBLIC
    assert len(meshwright.__all__) == len(PUBLIC)


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_every_public_name_resolves(name):
    assert getattr(meshwright, name) is not None
    assert name in dir(meshwright)


def test_names_for_type_checkers_are_the_public_ones():
    tree = ast.parse(Path(meshwright.__file__).read_text(encoding="utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    typed = {
        alias.name: node.module
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert set(typed) | {"__version__"} == PUBLIC
    assert typed == meshwright._MODULE_OF


def test_every_error_class_is_public():
    tree = {
        name
        for name, value in vars(errors).items()
        if isinstance(value, type) and issubclass(value, (errors.MeshwrightError, Warning))
    }
    assert tree == {name for name in PUBLIC if name.endswith(("Error", "Warning"))}


def test_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'plann'"):
        _ = meshwright.plann


def test_plan_is_the_function_after_every_room_is_imported():
    code = (
        "import importlib, meshwright\n"
        f"for name in {MODULES!r}: importlib.import_module(name)\n"
        "print(callable(meshwright.plan), callable(meshwright.estimate))"
    )
    assert run_python(code).split() == ["True", "True"]


def test_importing_meshwright_loads_no_dependency():
    code = "import json, sys, meshwright; print(json.dumps(sorted(sys.modules)))"
    loaded = set(json.loads(run_python(code)))
    assert "meshwright" in loaded
    assert not loaded & {"numpy", "rich", "click", "torch", "asyncio", "importlib.metadata"}
    assert not {name for name in loaded if name.startswith("meshwright.")}


def test_no_room_loads_a_framework():
    code = (
        "import importlib, json, sys\n"
        f"for name in {MODULES!r}: importlib.import_module(name)\n"
        "print(json.dumps(sorted(sys.modules)))"
    )
    loaded = {name.partition(".")[0] for name in json.loads(run_python(code))}
    assert not loaded & {"torch", "jax", "tensorflow", "onnx", "flask", "fastapi", "pandas"}


def test_the_version_stands_in_one_place(repository):
    project = tomllib.loads((repository / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert meshwright.__version__ == version("meshwright") == project["version"]
    assert f"## {project['version']}" in (repository / "CHANGELOG.md").read_text(encoding="utf-8")


def test_the_core_needs_four_packages():
    core = {line.split(";")[0] for line in requires("meshwright") or [] if "extra ==" not in line}
    assert {line.rstrip("0123456789.,<>= ") for line in core} == {
        "numpy",
        "msgspec",
        "click",
        "rich",
    }
    assert metadata("meshwright")["License-Expression"] == "Apache-2.0"


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings(name):
    result = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)
    assert result.failed == 0


def test_every_room_has_an_api_page(repository):
    rooms = {
        path.name if path.is_dir() else path.stem
        for path in (repository / "src" / "meshwright").iterdir()
        if not path.name.startswith("_") and path.suffix in {"", ".py"}
    }
    pages = {path.stem for path in (repository / "docs" / "api").glob("*.md")} - {"index"}
    assert pages == rooms
