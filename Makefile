# Each target makes .venv if need be; a stamp per set of extras keeps the second run quick.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# The CPU build where the package index offers one; any torch>=2.4 will do.
TORCH ?= torch==2.13.0

.PHONY: tables stale demo test test-all test-machines coverage lint docs notebooks bench dist release-check methods soak peers browser clean

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.core: $(BIN)/python pyproject.toml
	$(BIN)/pip install --quiet --disable-pip-version-check -e .
	touch $@

$(VENV)/.lint: $(BIN)/python pyproject.toml
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[test]'
	touch $@ $(VENV)/.core

$(VENV)/.test: $(BIN)/python pyproject.toml
	$(BIN)/pip install --quiet --disable-pip-version-check '$(TORCH)'
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[test,learn,study,proofs,torch,sklearn,dask,fast]'
	touch $@ $(VENV)/.lint $(VENV)/.study $(VENV)/.core

$(VENV)/.study: $(BIN)/python pyproject.toml
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[learn,study]'
	touch $@ $(VENV)/.core

$(VENV)/.docs: $(BIN)/python pyproject.toml
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[docs]'
	touch $@ $(VENV)/.core

demo: $(VENV)/.study
	$(BIN)/ode2opt demo

# The report is tested in Debian's chromium; where it cannot be installed these tests are skipped
# (in CI they fail).
browser:
	@command -v chromium >/dev/null || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null \
	  && (apt-get update -qq; apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core) >/dev/null 2>&1; } \
	  || echo "no chromium: the tests that need a browser will not run"

# A file of tests runs in one process, so that what it trains is trained once.
PYTEST = $(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder

test: $(VENV)/.test browser
	$(PYTEST)

# Counting the lines that tests run is free from Python 3.12 on (sys.monitoring); on 3.11 the tests
# take 1.3 to 1.5 times as long, so that only `make coverage` counts there. The lowest share that
# passes is fail_under in pyproject.toml.
CORE = $(shell $(BIN)/python -c 'import sys; print("sysmon" if sys.version_info >= (3, 12) else "ctrace")')
COUNTED = --cov --cov-report=term:skip-covered

# With what is marked exhaustive, compiled as users have it and not as is quickest.
test-all: $(VENV)/.test browser
	XLA_FLAGS= COVERAGE_CORE=$(CORE) $(PYTEST) -m "" $(if $(filter sysmon,$(CORE)),$(COUNTED))
	@$(if $(filter ctrace,$(CORE)),echo "coverage: make coverage (or Python 3.12, where it is free)",:)

coverage: $(VENV)/.test browser
	COVERAGE_CORE=$(CORE) $(PYTEST) $(COUNTED)

# What computes (tests/problems, solvers, paper, proofs, and of integrations scipy, torch and sklearn) with
# the BLAS kernels of other processors, one and two threads, and the oldest versions that
# pyproject.toml allows, in .venv-oldest*; one line each. WORDS="Zen oldest" chooses some by name.
test-machines: $(VENV)/.test
	TORCH='$(TORCH)' $(BIN)/python tools/machines.py $(WORDS)

lint: $(VENV)/.lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/check-jsonschema --quiet --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(BIN)/check-jsonschema --quiet --builtin-schema vendor.citation-file-format CITATION.cff

# The documentation site, in build/site; a broken link is an error. The search needs a server:
# .venv/bin/mkdocs serve, or any other on that folder.
docs: $(VENV)/.docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "build/site/index.html"

# The tables of the pages, from benchmarks/results/*.json, which the scripts write with --record.
tables: $(BIN)/python
	$(BIN)/python tools/tables.py
	$(BIN)/python tools/plan_table.py

# Pages and results that are older than the code they speak of: to be read, or measured, again.
stale: $(BIN)/python
	$(BIN)/python tools/stale_pages.py

# The notebooks of the documentation, run anew: what they print and draw is kept in them.
notebooks: $(VENV)/.study $(VENV)/.lint
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[notebooks,sklearn]'
	$(BIN)/python tools/notebooks.py
	$(BIN)/ruff format docs/notebooks

# Writes benchmarks/results.json, adds a line to benchmarks/history.jsonl and compares with the last
# line of this machine. Commit the line where the machine had nothing else to do.
bench: $(VENV)/.study
	$(BIN)/python benchmarks/run.py

# Source distribution and wheel, in dist.
dist: $(BIN)/python
	$(BIN)/pip install --quiet --disable-pip-version-check build
	$(BIN)/python -m build

# Whether a release can be tagged (RELEASING.md); prints its notes, or what is missing.
release-check: $(VENV)/.lint
	$(BIN)/python tools/release.py

# The learned methods that come with the package, in ode2opt/learned: about ten minutes of a core.
methods: $(VENV)/.study
	$(BIN)/python tools/shipped_methods.py

# The attacks of tests/fuzz at length; prints counts.
soak: $(VENV)/.test
	$(BIN)/python tests/fuzz/soak_files.py
	$(BIN)/python tests/fuzz/soak_solves.py --count 10000 --methods 2
	$(BIN)/python -W ignore tests/fuzz/soak_solves.py --wild --count 6000 --methods 2 --most 4000
	$(BIN)/python tests/fuzz/soak_estimators.py --count 600
	$(BIN)/python tests/fuzz/command_lines.py
	$(BIN)/python tests/fuzz/soak_kills.py --count 200

# Other people's solvers beside ours, in .venv-peers: an hour of a quiet machine, and the pages are
# written anew. What is done is kept in build/peers: a run that was interrupted goes on.
# WORDS="--quick" tries it in minutes, WORDS="--only unseen" one part of it.
PEERS := .venv-peers

$(PEERS)/.peers: pyproject.toml
	$(PYTHON) -m venv $(PEERS)
	$(PEERS)/bin/pip install --quiet --disable-pip-version-check -e '.[peers]'
	touch $@

peers: $(PEERS)/.peers
	$(PEERS)/bin/python benchmarks/all_peers.py $(WORDS)
	$(PEERS)/bin/python tools/tables.py

clean:
	rm -rf $(VENV) .venv-oldest .venv-oldest-sklearn $(PEERS) .coverage .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
