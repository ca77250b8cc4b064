# Everything a checkout needs, from Python 3.11 or 3.12, make and the package registries alone. `make` says what there is.
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
# The first that starts and is 3.11 or 3.12: a version manager puts names on the path that do not start.
FITS   := import sys; sys.exit(sys.version_info[:2] not in ((3, 11), (3, 12)))
PYTHON ?= $(shell for p in python3.12 python3.11 python3 python; do $$p -c '$(FITS)' 2>/dev/null && echo $$p && break; done)

# Two processes: more would each start a Spark of their own, and a third won nothing.
PYTEST := $(BIN)/python -m pytest --numprocesses 2 --dist loadfile --no-loadscope-reorder --max-worker-restart 0

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-long test-tidb test-upstream coverage lint types bench bench-compare fuzz airflow docs reference sbom audit clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(READY) ## install everything into .venv; again only when a lock or pyproject.toml changed

$(READY): requirements.lock requirements-build.lock pyproject.toml
	@test -x $(BIN)/python || test -n "$(PYTHON)" || { echo "make: no Python 3.11 or 3.12 on the path; say make PYTHON=/path/to/python3.11" >&2; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --no-deps --require-hashes -r requirements-build.lock
	$(BIN)/uv pip install --quiet --compile-bytecode --python $(BIN)/python --no-deps --require-hashes -r requirements.lock || \
		$(BIN)/python -m pip install --quiet --no-deps --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	$(BIN)/python -m compileall -q jobs
	$(BIN)/python -m tidelake.demo.warm & compiled=$$!; \
		$(BIN)/python -m tidelake.spark.jars && $(BIN)/python -m tidelake.spark.archive_classes && wait $$compiled
	touch $@

demo: $(READY) ## run four feeds in four protocols for three hours and compare every table with the truth
	$(BIN)/tidelake demo

test: $(READY) ## run all tests but the long ones
	$(PYTEST) -m "not long"

test-long: $(READY) ## run all tests, with every kill test and workload, and a backfill on a real scheduler
	TIDELAKE_SEARCH=whole $(PYTEST) -m "not tidb and not upstream"
	$(BIN)/python -m tests.airflow.backfill

test-tidb: $(READY) ## compare with a real TiDB: random DDL on filled tables, exports, hours, verify; needs Go, which builds it once
	$(BIN)/python -m tests.tidb.programs
	$(BIN)/python -m pytest --numprocesses 0 -m tidb tests/tidb

test-upstream: $(READY) ## land what Debezium, Maxwell and Canal send of a real MariaDB and MySQL, and compare; needs mariadbd
	$(BIN)/python -m tests.upstream.programs
	$(BIN)/python -m pytest --numprocesses 0 -m upstream tests/upstream

coverage: $(READY) ## run the tests that start no Spark and no Airflow, and print the lines of the package that they miss
	$(PYTEST) -m "not long and not spark and not airflow" --cov --cov-report term

lint: $(READY) ## run ruff and check the import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

types: $(READY) ## run mypy, strict on the package
	$(BIN)/mypy

bench: $(READY) ## run the benchmarks; exit code 1 if a limit is not kept
	$(BIN)/python -m tests.benchmarks

bench-compare: $(READY) ## compare the two newest runs of bench
	$(BIN)/python -m tests.benchmarks.compare

fuzz: $(READY) ## decode a million hostile messages of all protocols and print the outcomes
	$(BIN)/python -m tests.fuzz

airflow: $(READY) ## start Airflow on the demo lake, on loopback; prints the URL and how the command line sees the lake
	$(BIN)/python -m tidelake.demo.airflow

DOCS := $(VENV)/docs
$(DOCS)/.ready: requirements-docs.lock
	@test -n "$(PYTHON)" || { echo "make: no Python 3.11 or 3.12 on the path; say make PYTHON=/path/to/python3.11" >&2; exit 1; }
	$(PYTHON) -m venv $(DOCS)
	$(DOCS)/bin/python -m pip install --quiet --no-deps --require-hashes -r requirements-docs.lock
	touch $@

docs: $(DOCS)/.ready ## build the documentation into site/; a warning is an error
	$(DOCS)/bin/python -m sphinx --builder html --fail-on-warning --keep-going --quiet --doctree-dir $(DOCS)/doctrees docs site
	@echo "open site/index.html"

reference: $(READY) ## write docs/reference/cli.md, docs/reference/feed-toml.md and schemas/feed.schema.json from the code
	$(BIN)/python docs/generate.py

AUDIT := $(VENV)/audit
$(AUDIT)/.ready: requirements-audit.lock $(READY)
	$(BIN)/python -m venv $(AUDIT)
	$(AUDIT)/bin/python -m pip install --quiet --no-deps --require-hashes -r requirements-audit.lock
	touch $@

sbom: $(AUDIT)/.ready ## write sbom.json: packages and jars of the image with their hashes, as CycloneDX
	$(AUDIT)/bin/cyclonedx-py requirements requirements-runtime.lock --pyproject pyproject.toml --output-reproducible --output-file sbom.json
	$(BIN)/python docker/sbom_jars.py sbom.json jobs/tidelake/spark/jars.sha256

audit: $(AUDIT)/.ready ## ask PyPI for known vulnerabilities of the locked packages; fails if there is one
	$(AUDIT)/bin/pip-audit --strict --disable-pip --no-deps --require-hashes --requirement requirements.lock --requirement requirements-build.lock

clean: ## remove what make and the demo made; the shared jar cache stays
	rm -rf $(VENV) .tidelake .airflow .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache spark-warehouse sbom.json site tests/benchmarks/results
	find jobs tests dags -name __pycache__ -type d -prune -exec rm -rf {} +
