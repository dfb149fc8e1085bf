# `make run` and `make test` are all that a newcomer needs. `make help` lists the rest.
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
SHELL := /bin/sh

VENV := .venv
PY := $(VENV)/bin/python
PYTHON ?=
ARGS ?=

# uv refuses to work where it cannot write its cache, which is in HOME.
ifneq ($(shell [ -w "$$HOME" ] || echo missing),)
export UV_NO_CACHE := 1
endif

# The first interpreter that is new enough; PYTHON=… overrides the search.
FIND_PYTHON = for candidate in $(PYTHON) python3 python3.14 python3.13 python3.12 python3.11 python; do \
	if "$$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then echo "$$candidate"; break; fi; done

.PHONY: bench-auth bench-budgets bench-catalog bench-chat bench-deliveries bench-mcp bench-peers bench-recordings bench-scale bench-search bench-test dist help run test test-all coverage install check docs lock schemas format clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' Makefile

run: $(VENV)/run.stamp ## Set up and start everything: web server, worker, demo data
	@echo "Starting Signpost …"; exec $(PY) manage.py up $(ARGS)

# The tests start hundreds of processes. They keep bytecode even where the environment forbids it.
test test-all coverage bench-test: export PYTHONDONTWRITEBYTECODE =

test: $(VENV)/dev.stamp ## Set up and run the tests, but for slow ones: two to three minutes
	@$(PY) -m pytest -n auto -m "not slow" $(ARGS)

test-all: $(VENV)/dev.stamp ## Run all tests, with whole instances, killed processes, browsers and long searches
	@$(PY) -m pytest -n auto $(ARGS)

coverage: $(VENV)/dev.stamp ## Run the whole test suite, tell which lines and branches it missed, and fail if they are too many
	@$(PY) -m pytest -n auto --cov

install: $(VENV)/dev.stamp ## Set up only, with the development dependencies

check: $(VENV)/dev.stamp ## Lint, types, import contracts, language of the documentation, schemas, migrations, deployment checks
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy .
	$(VENV)/bin/lint-imports --no-cache
	$(PY) -m djlint --check --lint --quiet templates */templates
	$(PY) -m tests.docs.language
	$(PY) manage.py makemigrations --check --dry-run
	$(PY) manage.py schemas --check
	$(PY) -m tests.deploy_check

docs: $(VENV)/docs.stamp ## Build the documentation site into var/site, with warnings as errors
	@$(PY) -m sphinx -q -E -W --keep-going -c docs/site -d var/site-cache . var/site
	@echo "Open var/site/index.html"

# Extras stay in a lock: without them pip looks for `coverage[toml]` among newer versions, which have no hashes.
COMPILE = $(PY) -m uv pip compile -q --universal --generate-hashes --no-strip-extras --custom-compile-command 'make lock'
lock: $(VENV)/uv.stamp ## Resolve the dependencies again into the lock files
	$(COMPILE) pyproject.toml --extra project -o requirements/production.lock
	$(COMPILE) pyproject.toml --extra project --extra otel -c requirements/production.lock -o requirements/production-otel.lock
	$(COMPILE) pyproject.toml --extra project --extra otel --group dev --group browser -c requirements/production.lock \
		-o requirements/development.lock
	$(COMPILE) pyproject.toml --extra project --group bench -c requirements/production.lock -o benchmarks/requirements.lock
	$(COMPILE) --group docs -c requirements/development.lock -o requirements/docs.lock
	$(COMPILE) --group release -o requirements/release.lock
	$(COMPILE) --group peers -o benchmarks/peers.lock

dist: | $(VENV)/bin/python ## Build packages, bill of materials and licence list of the last commit into var/dist
	@scripts/dist $(PY)

bench-test: $(VENV)/dev.stamp ## Run the tests of the benchmarks
	@$(PY) -m pytest -n auto benchmarks/tests

# `make bench-deliveries ARGS=--quick`, for example.
bench-auth bench-budgets bench-catalog bench-chat bench-deliveries bench-hostile bench-mcp bench-recordings bench-scale bench-search: $(VENV)/dev.stamp ## Run one benchmark
	@$(PY) -m benchmarks $(@:bench-%=%) $(ARGS)

# In environments of their own: they and Signpost need different versions of the same packages.
PEERS := var/bench-peers
bench-peers: $(VENV)/uv.stamp ## Install what the benchmarks measure: peers, and Signpost as in production
	$(PY) -m uv venv -q --allow-existing --python $(PY) $(PEERS)/signpost
	$(PY) -m uv pip install -q --python $(PEERS)/signpost/bin/python --require-hashes -r requirements/production.lock
	$(PY) -m uv venv -q --allow-existing --python $(PY) $(PEERS)/gateways
	$(PY) -m uv pip install -q --python $(PEERS)/gateways/bin/python --require-hashes -r benchmarks/peers.lock
	$(PY) -m uv venv -q --allow-existing --python $(PY) $(PEERS)/bench
	$(PY) -m uv pip install -q --python $(PEERS)/bench/bin/python --require-hashes -r benchmarks/requirements.lock
	@mkdir -p $(PEERS)/portkey $(PEERS)/node
	cp benchmarks/chat/package.json benchmarks/chat/package-lock.json $(PEERS)/portkey/
	cp benchmarks/node/package.json benchmarks/node/package-lock.json $(PEERS)/node/
	cd $(PEERS)/portkey && npm ci --ignore-scripts --no-audit --no-fund
	cd $(PEERS)/node && npm ci --ignore-scripts --no-audit --no-fund

schemas: $(VENV)/dev.stamp ## Write docs/api again from the code
	$(PY) manage.py schemas

format: $(VENV)/dev.stamp ## Format the code and mend what the linter can mend
	$(PY) -m ruff check --fix-only .
	$(PY) -m ruff format .
	-$(PY) -m djlint --reformat --quiet templates */templates

clean: ## Remove the virtual environment and caches, but never var/ (your data)
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage htmlcov

$(VENV)/bin/python:
	@python=$$($(FIND_PYTHON)); \
	if [ -z "$$python" ]; then \
		echo "Signpost needs Python 3.11 or newer; none was found. Name one: make run PYTHON=/path/to/python3" >&2; exit 1; fi; \
	echo "Creating $(VENV) …"; \
	if command -v uv >/dev/null 2>&1; then uv venv -q --allow-existing --python "$$python" $(VENV); \
	else "$$python" -m venv $(VENV); fi

# INSTALL takes a lock file. uv checks the same hashes as pip, only faster.
define INSTALL
	@echo "Installing $(1): one to three minutes with pip, seconds with uv …"
	@if command -v uv >/dev/null 2>&1; then uv pip install --python $(PY) --require-hashes -r $(1); \
	else $(PY) -m ensurepip >/dev/null 2>&1; $(PY) -m pip install --disable-pip-version-check --require-hashes -r $(1); fi
	@touch $@
endef

$(VENV)/run.stamp: requirements/production.lock | $(VENV)/bin/python
	$(call INSTALL,requirements/production.lock)

$(VENV)/dev.stamp: requirements/development.lock | $(VENV)/bin/python
	$(call INSTALL,requirements/development.lock)
	@touch $(VENV)/run.stamp

$(VENV)/docs.stamp: requirements/docs.lock | $(VENV)/dev.stamp
	$(call INSTALL,requirements/docs.lock)

$(VENV)/uv.stamp: | $(VENV)/dev.stamp
	@$(PY) -m uv --version >/dev/null 2>&1 || \
		if command -v uv >/dev/null 2>&1; then uv pip install -q --python $(PY) uv; \
		else $(PY) -m pip install -qq uv; fi
	@touch $@
