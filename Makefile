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

.PHONY: help run test test-all check format docs bench lock install clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' Makefile

run: $(VENV)/run.stamp ## Set up and start everything: web server, worker, demo data
	@echo "Starting Signpost …"; exec $(PY) manage.py up $(ARGS)

# The tests start many processes. They keep bytecode even where the environment forbids it.
test test-all: export PYTHONDONTWRITEBYTECODE =

test: $(VENV)/dev.stamp ## Set up and run the tests, but for slow ones
	@$(PY) -m pytest -n auto -m "not slow" $(ARGS)

test-all: $(VENV)/dev.stamp ## Run all tests, with whole instances, killed processes, browsers and long searches
	@$(PY) -m pytest -n auto $(ARGS)

install: $(VENV)/dev.stamp ## Set up only, with the development dependencies

check: $(VENV)/dev.stamp ## Lint, types, import contracts, templates, schemas, migrations, deployment checks
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy .
	$(VENV)/bin/lint-imports --no-cache
	$(PY) -m djlint --lint --quiet templates */templates
	$(PY) manage.py makemigrations --check --dry-run
	$(PY) manage.py schemas --check
	$(PY) -m tests.deploy_check

format: $(VENV)/dev.stamp ## Format the code, correct what the linter can correct, write docs/api again
	$(PY) -m ruff check --fix-only .
	$(PY) -m ruff format .
	$(PY) manage.py schemas

docs: $(VENV)/docs.stamp ## Build the documentation site into var/site, with warnings as errors
	@$(PY) -m sphinx -q -E -W --keep-going -c docs/site -d var/site-cache . var/site
	@echo "Open var/site/docs/README.html"

bench: $(VENV)/dev.stamp ## Run the benchmarks and print their tables; ARGS="deliveries --quick" runs one
	@$(PY) -m benchmarks $(ARGS)

# Extras stay in a lock: without them pip looks for `coverage[toml]` among newer versions, which have no hashes.
COMPILE = $(PY) -m uv pip compile -q --universal --generate-hashes --no-strip-extras --custom-compile-command 'make lock'
lock: $(VENV)/uv.stamp ## Resolve the dependencies again into the lock files
	$(COMPILE) pyproject.toml --extra project -o requirements/production.lock
	$(COMPILE) pyproject.toml --extra project --group dev --group browser -c requirements/production.lock \
		-o requirements/development.lock
	$(COMPILE) --group docs -c requirements/development.lock -o requirements/docs.lock

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
