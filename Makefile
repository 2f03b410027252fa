# make demo    thousands of simulated devices answer a campaign over real HTTP; a model comes out
#              make demo DATA=my.csv LABEL=column does the same with a table of your own
# make test    the whole test suite
# make check   lint, types, layer contracts

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed

DATA ?=
LABEL ?=
DEVICES ?= 20000

.PHONY: setup demo test check clean
.DELETE_ON_ERROR:

setup: $(INSTALLED)

$(INSTALLED): pyproject.toml deploy/client-wheel/pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Python 3.11 or newer is needed for development; set PYTHON=python3.11"; exit 1; }
	@$(PYTHON) -m venv $(VENV) || \
	  { echo "venv is missing; on Debian: apt-get install python3-venv"; exit 1; }
	$(BIN)/python -m pip install -qq --upgrade pip
	$(BIN)/python -m pip install -qq --editable deploy/client-wheel --editable '.[dev]'
	@touch $@

demo: $(INSTALLED)
	@$(BIN)/python -m simulations demo --devices $(DEVICES) $(if $(DATA),--data "$(DATA)" --label "$(LABEL)")

test: $(INSTALLED)
	$(BIN)/python -m pytest -n auto --dist worksteal

check: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

clean:
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
