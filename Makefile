# `make` lists the targets. Each one first builds .venv when pyproject.toml or the constraints are newer.
PYTHON ?= python3
# How many processes run the tests: "auto" is one for each core, three for two cores where the tests wait a third of the
# time, and two where they wait half of it.
WORKERS ?= auto
TIMES = $(if $(filter auto,$(WORKERS)),$(shell $(BIN)/python -c "import os; print((os.cpu_count() * $1 + 1) // 2)"),$(WORKERS))
BIN := .venv/bin
CODE := shared servers tests docker docs examples hatch_build.py
# What an author runs after each change; with AREA, all of what mirrors one folder of the source.
QUICK := $(if $(AREA),tests/$(AREA),--ignore=tests/checks -m "not slow")
# Without bytecode, each of the thousands of servers that tests start would be compiled anew.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.PHONY: help setup demo test check all-tests conformance compare bench mutants screenshots docs release lint types format serve clean

help: ## List the targets
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' Makefile | expand -t 13

setup: .venv/.stamp ## Build .venv with everything for development
	@echo 'Everything is in .venv. What comes next:'
	@echo '  make demo      see the servers at work'
	@echo '  make test      run the tests'
	@echo '  $(BIN)/mcp-server-bundle install filesystem DIR --client claude-desktop'

demo: .venv/.stamp ## Work through the servers, with the official client and ours
	@$(BIN)/python -m tests.checks.interop.demo
	@$(BIN)/python -m servers demo

test: .venv/.stamp ## Run the quick tests on all cores; AREA=servers/fetch: all tests of that folder
	$(BIN)/python -m pytest $(QUICK) -n $(call TIMES,3) --dist loadfile

check: .venv/.stamp ## Lint, check types and run all tests, side by side: what CI runs
	@$(MAKE) --no-print-directory --jobs lint types all-tests

# In the order of the folders: what takes minutes is in tests/checks, and would keep one core busy at the end.
all-tests: .venv/.stamp
	$(BIN)/python -m pytest -n $(call TIMES,4) --dist loadfile --no-loadscope-reorder

conformance: .venv/.stamp ## Run the official conformance suite on our servers and our client, in every version
	$(BIN)/python -m tests.checks.conformance.run

PROXIES := tests/checks/interop/gateway/test_matrix.py::test_the_proxy_of_others_goes_through_the_same_rows
compare: .venv/.stamp ## Try on other servers, and on ours, what these were seen to get wrong
	$(BIN)/python -m pytest tests/checks/comparison $(PROXIES) --peers -n $(WORKERS)

bench: .venv/.stamp ## Measure our server beside its peers
	$(BIN)/python -m tests.checks.benchmarks.run
	$(BIN)/python -m tests.checks.benchmarks.growth
	$(BIN)/python -m tests.checks.tasks

mutants: .venv/.stamp ## Change the code of AREA in small ways, and list what no test noticed
	@$(BIN)/python -m tests.checks.mutation.run $(AREA)

screenshots: .venv/.stamp ## Take pictures of the workbench and of the apps, in tests/checks/browser/pictures
	$(BIN)/python -m tests.checks.browser.screenshots

docs: .venv/.stamp ## Build the site of the documentation in build/docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet

lint: .venv/.stamp ## Check style and format
	$(BIN)/ruff check $(CODE)
	$(BIN)/ruff format --check $(CODE)

types: .venv/.stamp ## Check types, as each system has them
	$(BIN)/mypy
	$(BIN)/mypy --platform darwin --cache-dir .mypy_cache/darwin
	$(BIN)/mypy --platform win32 --cache-dir .mypy_cache/win32

format: .venv/.stamp ## Format, and repair what can be repaired safely
	$(BIN)/ruff check --fix $(CODE)
	$(BIN)/ruff format $(CODE)

release: .venv/.stamp ## Build and check what is published, in build/release; REPOSITORY=https://github.com/USER/NAME
	@REPOSITORY="$(REPOSITORY)" $(BIN)/python -m tests.checks.release

serve: .venv/.stamp ## Serve all servers over HTTP, this folder among what they serve
	$(BIN)/python -m servers serve

clean: ## Remove caches and builds, but not .venv
	rm -rf build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find $(CODE) -name __pycache__ -type d -prune -exec rm -rf {} +

# Unless PYTHON was given, a python3 that is too old or missing is made up for by a newer one found by its name.
OTHERS := $(if $(filter file,$(origin PYTHON)),python3.13 python3.12 python3.11)
.venv/.stamp: pyproject.toml tests/constraints.txt
	@for python in $(PYTHON) $(OTHERS); do \
	  $$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && break; python=; \
	done; \
	if [ -z "$$python" ]; then \
	  echo "Python 3.11 or newer is needed. Install it, or name it: make PYTHON=/path/to/python3" >&2; exit 1; \
	fi; \
	[ -x $(BIN)/pip ] || $$python -m venv .venv || { \
	  rm -rf .venv; \
	  echo "$$python can't make virtual environments. On Debian and Ubuntu: apt install python3-venv" >&2; \
	  exit 1; \
	}
	@echo 'Installing what the bundle and its tests need into .venv: 170 packages, 970 MB, a minute or two.'
	@$(BIN)/pip install -qq --disable-pip-version-check -e '.[dev]' -c tests/constraints.txt
	@touch $@
