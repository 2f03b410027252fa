# make demo    thousands of simulated devices answer a campaign over real HTTP; a model comes out
#              make demo DATA=my.csv LABEL=column does the same with a table of your own
# make test    the whole test suite
# make check   lint, types, layer contracts
# make flower  the tests of the Flower adapter, with Flower and its simulation in an environment of their own
# make javascript   builds and tests the npm package in Node, and holds it to its sizes
# make browsers     its tests in Chromium and Firefox, against a real aggregator
# make peers   the audit's search on other libraries, installed into an environment of their own

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
PEERS := .venv-peers
FLOWER := .venv-flower

DATA ?=
LABEL ?=
DEVICES ?= 20000

.PHONY: setup demo test check flower javascript browsers differential peers clean
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
	@$(BIN)/python -m simulations demo --devices $(DEVICES) $(if $(DATA),--data "$(DATA)" --label "$(LABEL)")

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

JAVASCRIPT := javascript/node_modules/.package-lock.json

$(JAVASCRIPT): javascript/package-lock.json
	cd javascript && npm ci --no-audit --no-fund
	@touch $@

javascript: $(JAVASCRIPT)
	cd javascript && npm run build && npm test

browsers: $(INSTALLED) $(JAVASCRIPT)
	cd javascript && npm run build
	cd javascript && node --test test/browsers/*.test.mjs

CAMPAIGNS ?= 10000

differential: $(INSTALLED) javascript
	LDP_BAYES_CAMPAIGNS=$(CAMPAIGNS) $(BIN)/python -m pytest -n auto tests/javascript/test_differential.py

PEER_TRIALS ?= 2000

peers: $(INSTALLED) $(PEERS)/.installed
	$(BIN)/python benchmarks/audit_peers.py --peers $(PEERS)/bin/python --trials $(PEER_TRIALS)

clean:
	rm -rf $(VENV) $(PEERS) $(FLOWER) javascript/node_modules javascript/dist build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
