# make demo    thousands of simulated devices answer a campaign; a model comes out
#              make demo DATA=my.csv LABEL=column does the same with a table of your own; without LABEL it asks for statistics
#              make demo CROWD=1 promises a crowd's guarantee, with issuer, relay and gateway as processes
#              make demo KEEP=1 stays when it is done, and prints the dashboard's address and a token for it
# make test    the whole test suite, but for what takes environments of its own (the next ones)
# make check   lint, types, layer contracts
# make flower  the tests of the Flower adapter, with the oldest and the newest Flower that pyproject.toml admits, each in its environment
# make engines the recount of an archive on Dask, the example on Apache Beam and composed guarantees, in an environment of their own
# make packages   builds wheels and sources of both distributions, and tests them in empty environments
# make pages   every command and code block of the pages, in their order, with the built wheels and nothing of the checkout importable
# make oldest  trainers' and learning tests with the oldest numpy, pandas, scikit-learn and scipy that pyproject.toml promises
# make pythons the tests of device and aggregator on every Python that pyproject.toml promises; on the image's, with the image's libraries
# make lock    the image's dependencies and what builds it and releases, each with the hashes of its files, into deploy/image
# make sbom    what is in the image, and what each wheel brings along, as CycloneDX, into build/sbom*.json
# make release      what a release publishes into dist, built by what is locked with hashes and nothing else
# make reproducible   builds a release from two clones, and fails where a byte differs
# make manifests   checks compose and deploy/kubernetes against the schemas of their formats, units and dashboard by their tests, and
#              deploy/prometheus with promtool, which fires every alert
# make rehearsal   boots the whole system from its built packages on loopback alone, kills each process under load, puts a backup back, fires alerts
# make image   the container images, where something that builds images is running; otherwise it says that there is none
# make javascript   builds and tests the npm package in Node, and holds it to its sizes
# make kotlin   lints, builds and tests the Kotlin client on a JDK that is here; the compiler comes from the package index, ktlint from npm
# make swift    builds and tests the Swift client; the compiler is that of Debian 13, from the mirror that apt is set to
# make browsers     its tests in Chromium and Firefox, against a real aggregator
# make browser the tests of pages in a headless Chromium (Debian: chromium, chromium-driver), with axe-core from npm
# make screenshots  pictures of every page in build/screenshots, and the README's of the demonstration
# make nightly everything at length: all tests marked long, fresh examples, fuzzing, soak and growth, every environment below
# make fuzz    looks for inputs that break what reads strangers' bytes, with Atheris in an environment of its own
# make mutants plants 200 bugs, one at a time, and fails where tests find fewer than nine of ten; hours
# make docs    the documentation as a site in build/docs; a warning is an error, and nothing in it is loaded from elsewhere
# make peers   the audit's search on other libraries, installed into an environment of their own

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SIMULATIONS := $(VENV)/.simulations
INSTALLED := $(VENV)/.installed
PEERS := .venv-peers
FLOWER := .venv-flower
ENGINES := .venv-engines
OLDEST := .venv-oldest
EMPTY := .venv-empty
TOOLS := .venv-tools
DOCS := .venv-docs
FUZZ := .venv-fuzz
RELEASE := .venv-release
REHEARSAL := .venv-rehearsal
AXE := $(VENV)/axe/node_modules/axe-core/axe.min.js
PROMTOOL := $(TOOLS)/prometheus/usr/bin/promtool
VITE := $(VENV)/vite/node_modules/vite/package.json

OPTIONS ?=
DATA ?=
LABEL ?=
KEEP ?=
CROWD ?=
DEVICES ?= 20000

# What takes environments of its own, each with a target below.
APART := tests/browser tests/engines tests/flower tests/phones tests/swift tests/pages/test_site.py

# Each run of tests says how many pass at least: one that finds fewer has lost some.
PYTEST := -m pytest --fewest

.PHONY: setup demo test pages check nightly fuzz mutants packages oldest engines browser screenshots flower javascript kotlin swift browsers differential pythons peers lock manifests sbom release reproducible rehearsal image docs clean
.DELETE_ON_ERROR:

setup: $(INSTALLED)

EDITABLE := --editable deploy/client-wheel --editable

$(SIMULATIONS): pyproject.toml deploy/client-wheel/pyproject.toml
	@echo "Installing what simulations take into $(VENV): a minute, and once only"
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Python 3.11 or newer is needed for development; set PYTHON=python3.11"; exit 1; }
	@$(PYTHON) -m venv $(VENV) || \
	  { echo "venv is missing; on Debian: apt-get install python3-venv"; exit 1; }
	$(BIN)/python -m pip install -qq --upgrade pip
	@$(BIN)/python -m pip install -qq $(EDITABLE) '.[simulations]'
	@touch $@

$(INSTALLED): $(SIMULATIONS)
	$(BIN)/python -m pip install -qq $(EDITABLE) '.[dev]'
	@touch $@

demo: $(SIMULATIONS)
	@echo "Simulated people answer a campaign, a model comes out, and a device classifies"
	@$(BIN)/ldp-simulate demo --devices $(DEVICES) $(if $(DATA),--data "$(DATA)" --label "$(LABEL)") $(if $(KEEP),--keep) $(if $(CROWD),--crowd)

# With bytecode, whatever the environment says: interpreters that tests start compile nothing, and asserts are rewritten once.
test: export PYTHONDONTWRITEBYTECODE =
test: $(INSTALLED)
	$(BIN)/python $(PYTEST) 5500 -n auto --dist worksteal --durations=10 $(APART:%=--ignore=%) $(OPTIONS)

check: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

$(ENGINES)/.installed: pyproject.toml deploy/client-wheel/pyproject.toml
	$(PYTHON) -m venv $(ENGINES)
	$(ENGINES)/bin/python -m pip install -qq --no-compile $(EDITABLE) '.[composition,dask,tests]' 'apache-beam>=2.60,<3'
	@touch $@

engines: $(ENGINES)/.installed
	$(ENGINES)/bin/python $(PYTEST) 26 tests/engines

packages: $(INSTALLED)
	$(BIN)/python $(PYTEST) 16 -m install tests/test_packaging.py tests/test_source_distributions.py

# Each time anew: it is about the wheels of now. Files that pages name are the checkout's, as a reader has them.
pages: $(INSTALLED)
	$(PYTHON) -m venv --clear $(EMPTY)
	$(EMPTY)/bin/python -m pip install -qq ./deploy/client-wheel '.[dev]'
	cd $(EMPTY) && PYTHONSAFEPATH=1 bin/python -m pytest --rootdir $(CURDIR) --config-file $(CURDIR)/pyproject.toml --fewest 30 -p no:cacheprovider \
	  -n auto --dist worksteal -k 'page_runs' $(CURDIR)/tests/pages/test_pages.py

$(OLDEST)/.installed: pyproject.toml deploy/client-wheel/pyproject.toml .ci/lowest
	$(PYTHON) -m venv $(OLDEST)
	$(OLDEST)/bin/python .ci/lowest pyproject.toml numpy pandas scikit-learn scipy > $(OLDEST)/lowest.txt
	$(OLDEST)/bin/python -m pip install -qq --no-compile --constraint $(OLDEST)/lowest.txt $(EDITABLE) '.[simulations,tests]'
	@touch $@

oldest: $(OLDEST)/.installed
	$(OLDEST)/bin/python $(PYTEST) 450 -p no:cacheprovider tests/ldp_aggregator/trainers tests/ldp_aggregator/learning

$(PEERS)/.installed: benchmarks/peers/requirements.txt
	$(PYTHON) -m venv $(PEERS)
	$(PEERS)/bin/python -m pip install -qq --requirement benchmarks/peers/requirements.txt
	@touch $@

# The newest Flower that pyproject.toml admits, and the oldest.
$(FLOWER)/.installed: RELEASE_OF_FLOWER := flwr[simulation]
$(FLOWER)-oldest/.installed: RELEASE_OF_FLOWER := flwr[simulation]==1.41.*
$(FLOWER)/.installed $(FLOWER)-oldest/.installed: pyproject.toml deploy/client-wheel/pyproject.toml
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip install -qq --no-compile $(EDITABLE) '.[flower,tests]' '$(RELEASE_OF_FLOWER)'
	@touch $@

flower: $(FLOWER)/.installed $(FLOWER)-oldest/.installed
	$(FLOWER)/bin/python $(PYTEST) 31 tests/flower
	$(FLOWER)-oldest/bin/python $(PYTEST) 31 tests/flower

PYTHONS ?=

pythons: $(INSTALLED)
	.ci/pythons $(PYTHONS)

$(TOOLS)/.installed: deploy/tools.in
	$(PYTHON) -m venv $(TOOLS)
	$(TOOLS)/bin/python -m pip install -qq --requirement deploy/tools.in
	@$(TOOLS)/bin/python -m pip install -qq --no-deps docker-compose==1.29.2 # for the schema in it, and nothing else
	@touch $@

# No header, no annotations, no index: the same file comes out whatever index it was made with.
LOCK = $(TOOLS)/bin/uv pip compile -q --upgrade --python-version 3.13 --python-platform linux --generate-hashes \
  --no-header --no-annotate --no-emit-index-url --no-emit-find-links \
  --no-emit-package ldp-bayes --no-emit-package ldp-bayes-client

IMAGES := aggregator relay issuer

lock: $(TOOLS)/.installed
	for one in $(IMAGES) build; do $(LOCK) deploy/image/$$one.in --output-file deploy/image/$$one.txt || exit 1; done

sbom: $(TOOLS)/.installed
	@mkdir -p build
	$(TOOLS)/bin/cyclonedx-py requirements deploy/image/aggregator.txt --pyproject pyproject.toml \
	  --mc-type application --output-reproducible --output-format JSON --output-file build/sbom.json
	printf './deploy/client-wheel' | $(LOCK) - --output-file build/client.txt
	printf './deploy/client-wheel\n.[aggregator]' | $(LOCK) - --output-file build/aggregator.txt
	$(TOOLS)/bin/cyclonedx-py requirements build/client.txt --pyproject deploy/client-wheel/pyproject.toml \
	  --mc-type library --output-reproducible --output-format JSON --output-file build/sbom-ldp-bayes-client.json
	$(TOOLS)/bin/cyclonedx-py requirements build/aggregator.txt --pyproject pyproject.toml \
	  --mc-type library --output-reproducible --output-format JSON --output-file build/sbom-ldp-bayes.json

$(RELEASE)/.installed: deploy/image/build.txt
	$(PYTHON) -m venv $(RELEASE)
	$(RELEASE)/bin/python -m pip install -qq --require-hashes --only-binary :all: -r deploy/image/build.txt
	@touch $@

release: $(RELEASE)/.installed
	$(RELEASE)/bin/python deploy/release/build --into dist

reproducible: $(RELEASE)/.installed
	PYTHON=$(CURDIR)/$(RELEASE)/bin/python deploy/release/compare

$(PROMTOOL): $(TOOLS)/.installed
	@cd $(TOOLS) && apt-get download -qq prometheus || \
	  { echo "promtool is in Debian's package prometheus, which apt does not find: apt-get update"; exit 1; }
	cd $(TOOLS) && dpkg -x prometheus_*.deb prometheus
	@touch $@

manifests: $(INSTALLED) $(TOOLS)/.installed $(PROMTOOL)
	$(TOOLS)/bin/kubernetes-validate --strict deploy/kubernetes/*.yaml
	$(TOOLS)/bin/python deploy/check_compose.py $(TOOLS)/lib/python*/site-packages/compose/config/compose_spec.json
	$(PROMTOOL) check config deploy/prometheus/prometheus.yml
	$(PROMTOOL) check rules deploy/prometheus/alerts.yaml
	$(PROMTOOL) test rules deploy/prometheus/alerts.test.yaml
	$(BIN)/python $(PYTEST) 70 tests/ldp_aggregator/cli/test_deployment.py tests/ldp_aggregator/server/test_metrics.py

rehearsal: $(INSTALLED) $(RELEASE)/.installed $(PROMTOOL)
	$(BIN)/python deploy/rehearsal/rehearse

image:
	@deploy/image/build

JAVASCRIPT := javascript/node_modules/.package-lock.json

$(JAVASCRIPT): javascript/package-lock.json
	cd javascript && npm ci --no-audit --no-fund
	@touch $@

# The lab's page carries the package's encoder, and the page to try all of the client: an old one is built anew here, and says so once.
BUNDLES := ldp-bayes-client.min.js ldp-bayes-client.crowd.min.js try/index.html try/try.css try/try.js
SERVED := ldp_aggregator/dashboard/static

javascript: $(JAVASCRIPT)
	cd javascript && npm run build && FEWEST=450 npm test
	@old=; for file in $(BUNDLES); do cmp -s javascript/dist/$$file $(SERVED)/$$file || { \
	  cp javascript/dist/$$file $(SERVED)/$$file && old="$$old $$file"; }; done; [ -z "$$old" ] || { \
	  echo "$(SERVED):$$old older than the package: built anew, commit it and run this again"; exit 1; }

# Lint, vectors, promises and the app in Java need no Python package; what is held beside Python needs `make setup`.
kotlin:
	$(PYTHON) kotlin/toolchain.py lint
	$(PYTHON) kotlin/build.py check
ifneq ($(wildcard $(INSTALLED)),)
	$(BIN)/python $(PYTEST) 28 -n auto tests/phones -k kotlin
	$(BIN)/python benchmarks/phones.py kotlin
endif

swift: $(INSTALLED)
	$(BIN)/python swift/toolchain.py lint
	$(BIN)/python swift/build.py
	$(BIN)/python $(PYTEST) 33 tests/phones tests/swift -k swift
	$(BIN)/python benchmarks/phones.py swift

BROWSER_TESTS ?= test/browsers/*.test.mjs
BROWSERS_FEWEST := 19

$(VITE): # beside the package, whose lock need not name a bundler's binaries of every platform
	npm install --silent --no-save --prefix $(VENV)/vite vite@7

browsers: $(INSTALLED) $(JAVASCRIPT) $(VITE)
	cd javascript && npm run build
	cd javascript && FEWEST=$(BROWSERS_FEWEST) npm run tested -- $(BROWSER_TESTS)

differential: $(INSTALLED) javascript
	$(BIN)/python $(PYTEST) 1 -n auto -m long tests/javascript/test_differential.py

$(AXE):
	npm install --silent --no-save --prefix $(VENV)/axe axe-core@4.10

browser: $(INSTALLED) $(AXE)
	$(BIN)/python $(PYTEST) 22 tests/browser

SCREENSHOTS := PYTHONPATH=tests/support:tests/support/learning $(BIN)/python docs/pictures/screenshots.py

screenshots: $(INSTALLED)
	$(SCREENSHOTS) build/screenshots
	$(SCREENSHOTS) build/screenshots --devices 4000 --picture docs/pictures/dashboard.png
	$(SCREENSHOTS) build/screenshots --try docs/pictures/try.png

$(DOCS)/.installed: docs/site/requirements.txt
	$(PYTHON) -m venv $(DOCS)
	$(DOCS)/bin/python -m pip install -qq --requirement docs/site/requirements.txt
	npm install --silent --no-save --prefix $(DOCS)/npm iframe-worker@1.0.4
	@touch $@

docs: $(INSTALLED) $(DOCS)/.installed
	$(BIN)/python docs/site/reference.py build/reference
	NO_MKDOCS_2_WARNING=1 $(DOCS)/bin/mkdocs build --quiet --strict
	$(BIN)/python $(PYTEST) 6 -q tests/pages/test_site.py

PEER_TRIALS ?= 2000

peers: $(INSTALLED) $(PEERS)/.installed
	$(BIN)/python benchmarks/audit_peers.py --peers $(PEERS)/bin/python --trials $(PEER_TRIALS)

$(FUZZ)/.installed: pyproject.toml deploy/client-wheel/pyproject.toml
	$(PYTHON) -m venv $(FUZZ)
	$(FUZZ)/bin/python -m pip install -qq --no-compile $(EDITABLE) '.[serve,tests]' 'atheris>=3,<4'
	@touch $@

SEED ?=

fuzz: $(FUZZ)/.installed
	$(FUZZ)/bin/python tests/fuzz/fuzz.py $(if $(SEED),--seed $(SEED))

# What is compiled has to be there as it is, to tell what a bug has changed. Where Swift cannot be had, its build says why.
mutants: $(INSTALLED) $(JAVASCRIPT) $(FLOWER)/.installed $(AXE)
	cd javascript && npm run build
	$(BIN)/python kotlin/build.py
	-$(BIN)/python swift/build.py
	$(BIN)/python tests/mutants/mutants.py $(if $(SEED),--seed $(SEED)) $(OPTIONS)

STEPS ?=

nightly: $(INSTALLED)
	.ci/nightly $(STEPS)

clean:
	rm -rf $(VENV) $(VENV)-python* $(OLDEST) $(EMPTY) $(ENGINES) $(PEERS) $(FLOWER) $(FLOWER)-oldest $(TOOLS) $(DOCS) $(FUZZ) $(RELEASE) $(REHEARSAL) javascript/node_modules javascript/dist build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
