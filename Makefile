# The two commands: `make run` opens mpstui, `make test` proves it. Both set everything up first.
# Written for GNU make 3.81, the one that macOS ships.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed

.PHONY: run demo test lint types contracts unit setup clean bench faults pictures

run: setup
	$(BIN)/mpstui

demo: setup
	$(BIN)/mpstui demo

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt mpstui/__init__.py
	@$(PYTHON) -c 'import sys; sys.exit("mpstui needs Python 3.11 or newer; this is " + sys.version.split()[0] + ". Name another one: make PYTHON=python3.12 run") if sys.version_info < (3, 11) else None'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[train,dev]'
	@touch $(STAMP)

test: lint types contracts unit

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup
	$(BIN)/mypy

contracts: setup
	$(BIN)/lint-imports

unit: setup
	$(BIN)/python -m pytest

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
