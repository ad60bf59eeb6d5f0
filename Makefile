# make plan   build, install with the core dependencies only, and plan Llama-3.1-70B
# make test   install the development extras and run every test
# make lint   format, lint, types, order of rooms
# make docs   build the documentation site, warnings are errors
# make bench  run every benchmark
# make clean  remove what the others made

PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check

# An editable install runs the Python files of this checkout, so only these need a new build.
NATIVE := pyproject.toml CMakeLists.txt $(shell find native -type f 2>/dev/null)
TOOLS  := $(VENV)/.venv-made
BUILT  := $(VENV)/.built
DEV    := $(VENV)/.built-dev

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help plan test lint format docs bench clean

help:
	@sed -n 's/^# \(make .*\)/\1/p' Makefile

plan: $(BUILT)
	$(BIN)/meshwright plan llama-3.1-70b --cluster 32x8xH100 \
	    --global-batch-size 1024 --seq-length 8192

test: $(DEV)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto $(ARGS)

lint: $(DEV)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(DEV)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(DEV)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

bench: $(BUILT)
	@set -e; for script in $(sort $(wildcard benchmarks/*.py)); do \
	    echo "# $$script"; OMP_NUM_THREADS=1 $(BIN)/python "$$script"; \
	done

clean:
	rm -rf build dist site .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
	rm -f $(BUILT) $(DEV)
	find src tests benchmarks scripts -name __pycache__ -type d -prune -exec rm -rf {} +

$(TOOLS):
	@sh scripts/check_tools.sh $(PYTHON)
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(BUILT): $(NATIVE) | $(TOOLS)
	$(PIP) install --quiet --editable .
	@touch $@

# The development install contains the plain one, so that `make plan` has nothing left to do.
$(DEV): $(NATIVE) | $(TOOLS)
	$(PIP) install --quiet --editable '.[dev]'
	@touch $(BUILT) $@
