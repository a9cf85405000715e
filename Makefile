# Everything a developer runs. Each target makes the virtual environment it needs, and may be run again at any time.

VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# For every platform, with hashes, and without the name of the registry it asked.
TOOLS := $(VENV)-tools
TOOLS_READY := $(TOOLS)/.ready
COMPILE := $(TOOLS)/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
  --no-emit-index-url --no-header
PYTEST := $(BIN)/python -m pytest
# Workers each take the next file. What keeps the cores busy comes first, by itself, with a worker for each of two cores:
# on the lab things happen in time, and must not wait for a core. There each worker has a lab of its own, and mostly waits.
BY_FILE := --dist loadfile --no-loadscope-reorder
PAIR := -n 2 $(BY_FILE)
ON_LABS := -n 3 $(BY_FILE)
WITHOUT_LAB := tests/processes tests/recorded_plans tests/tidy tests/unit

.DEFAULT_GOAL := help
.PHONY: help demo check test test-long lint types tidy unit generate lab soak oracle bench wheel lock audit sbom clean

help:  ## this list
	@sed -n 's/^\([a-z-]*\):.*##  */  make \1\t/p' $(MAKEFILE_LIST) | expand -t 20

demo: $(READY)  ## what it does, in half a minute, on an imagined cluster
	@$(BIN)/reconciler demo

check: lint types  ## lint, types, tidy, and the unit tests of files that are quick
	@$(PYTEST) --quick tests/tidy/test_rules.py tests/unit -n 2

test: $(READY) lint types  ## all tests, the real control plane included (the first run builds it)
	@$(PYTEST) --whole $(WITHOUT_LAB) $(PAIR)
	@$(BIN)/python -m tests.lab build
	@$(PYTEST) --whole $(addprefix --ignore ,$(WITHOUT_LAB)) $(ON_LABS)

test-long: $(READY)  ## slow stories on the real control plane; CI runs them after make test
	@$(BIN)/python -m tests.lab build
	@$(PYTEST) -m long $(ON_LABS)

lint: $(READY)
	@$(BIN)/ruff check . && $(BIN)/ruff format --check .

types: $(READY)
	@$(BIN)/mypy

tidy: $(READY)
	@$(PYTEST) tests/tidy

unit: $(READY)
	@$(PYTEST) tests/unit -n 2

generate: $(READY)  ## schemas, CRDs, rights and the reference of the kinds again, from reconciler/model
	@$(BIN)/reconciler schema --write .

lab: $(READY)  ## a real control plane with 12 GPU nodes, until Ctrl-C
	@$(BIN)/python -m tests.lab

soak: $(READY)  ## the long tests; figures go to tests/results
	@$(PYTEST) -m soak -s

oracle: $(READY)  ## long comparisons with the real thing; figures go to tests/results
	@$(PYTEST) -m oracle -s

bench: $(READY)  ## measurements; figures go to tests/results
	@$(PYTEST) -m bench -s

wheel: $(READY)  ## the wheel, into dist/
	@$(BIN)/pip wheel --quiet --no-deps --no-build-isolation --wheel-dir dist .

lock: $(TOOLS_READY)  ## write the hashed locks again, from pyproject.toml and requirements-tools.in
	@$(COMPILE) --output-file requirements.lock --all-extras pyproject.toml
	@$(COMPILE) --output-file requirements-dev.lock --all-extras --group dev --constraint requirements.lock pyproject.toml
	@$(COMPILE) --output-file requirements-tools.lock requirements-tools.in

audit: $(TOOLS_READY)  ## known vulnerabilities of all that is shipped; AUDIT="--cache-dir DIR" takes answers of an earlier run
	@$(TOOLS)/bin/pip-audit --strict --disable-pip --require-hashes --requirement requirements.lock $(AUDIT)

sbom: $(TOOLS_READY)  ## what is shipped and where it comes from, into dist/sbom.json (CycloneDX)
	@mkdir -p dist
	@$(TOOLS)/bin/python -W ignore -m cyclonedx_py requirements --pyproject pyproject.toml --output-reproducible --output-file dist/sbom.json requirements.lock

clean:  ## remove what make made here; the lab's cache stays (python -m tests.lab cache)
	@rm -rf $(VENV) $(TOOLS) dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis

$(READY): requirements-dev.lock pyproject.toml
	@python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "Python 3.11 or newer is needed, and python3 is $$(python3 --version)."; exit 1; }
	@echo "setting up $(VENV): about half a minute"
	@python3 -m venv --clear $(VENV) \
	  || { echo "python3 cannot make a virtual environment; on Debian and Ubuntu: apt-get install python3-venv."; exit 1; }
	@$(BIN)/python -m pip install --progress-bar on --disable-pip-version-check --require-hashes -r requirements-dev.lock
	@$(BIN)/python build_karpenter_schema.py
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

$(TOOLS_READY): requirements-tools.lock
	@python3 -m venv --clear $(TOOLS)
	@$(TOOLS)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-tools.lock
	@touch $@
