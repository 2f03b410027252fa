# make demo    thousands of simulated devices answer a campaign over real HTTP; a model comes out
#              make demo DATA=my.csv LABEL=column does the same with a table of your own
#              make demo KEEP=1 stays when it is done, and prints the dashboard's address and a token for it
# make test    the whole test suite
# make check   lint, types, layer contracts
# make flower  the tests of the Flower adapter, with Flower and its simulation in an environment of their own
# make browser the tests of pages in a headless Chromium (Debian: chromium, chromium-driver), with axe-core from npm
# make screenshots  pictures of every page in build/screenshots, and the README's of the demonstration
# make peers   the audit's search on other libraries, installed into an environment of their own

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
PEERS := .venv-peers
FLOWER := .venv-flower
AXE := $(VENV)/axe/node_modules/axe-core/axe.min.js

DATA ?=
LABEL ?=
KEEP ?=
DEVICES ?= 20000

.PHONY: setup demo test check flower browser screenshots peers clean
.DELETE_ON_ERROR:

setup: $(INSTALLED)

$(INSTALLED): pyproject.toml deploy/client-wheel/pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Python 3.11 or newer is needed for development; set PYTHON=python3.11"; exit 1; }
	@$(PYTHON) -m venv $(VENV) || \
	  { echo "venv is missing; on Debian: apt-get install python3-venv"; exit 1; }
	$(BIN)/python -m pip install -qq --upgrade pip
	@# compat: both distributions have modules in the same packages, and only a folder on the path holds them together.
	$(BIN)/python -m pip install -qq --config-settings editable_mode=compat --editable deploy/client-wheel --editable '.[dev]'
	@touch $@

demo: $(INSTALLED)
	@$(BIN)/python -m simulations demo --devices $(DEVICES) $(if $(DATA),--data "$(DATA)" --label "$(LABEL)") $(if $(KEEP),--keep)

test: $(INSTALLED)
	$(BIN)/python -m pytest -n auto --dist worksteal

check: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

$(PEERS)/.installed: benchmarks/peers/requirements.txt
	$(PYTHON) -m venv $(PEERS)
	$(PEERS)/bin/python -m pip install -qq --requirement benchmarks/peers/requirements.txt
	@touch $@

$(FLOWER)/.installed: pyproject.toml deploy/client-wheel/pyproject.toml
	$(PYTHON) -m venv $(FLOWER)
	$(FLOWER)/bin/python -m pip install -qq --no-compile --config-settings editable_mode=compat \
	  --editable deploy/client-wheel --editable '.[flower]' \
	  'flwr[simulation]>=1.41,<1.42' hypothesis pytest pytest-asyncio
	@touch $@

flower: $(FLOWER)/.installed
	$(FLOWER)/bin/python -m pytest tests/flower

$(AXE):
	npm install --silent --no-save --prefix $(VENV)/axe axe-core@4.10

browser: $(INSTALLED) $(AXE)
	$(BIN)/python -m pytest tests/browser

screenshots: $(INSTALLED)
	$(BIN)/python tests/browser/screenshots.py build/screenshots
	$(BIN)/python tests/browser/screenshots.py build/screenshots --devices 4000 --picture docs/figures/dashboard.png

PEER_TRIALS ?= 2000

peers: $(INSTALLED) $(PEERS)/.installed
	$(BIN)/python benchmarks/audit_peers.py --peers $(PEERS)/bin/python --trials $(PEER_TRIALS)

clean:
	rm -rf $(VENV) $(PEERS) $(FLOWER) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
