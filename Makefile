# Each target sets up what it needs in .venv, from any Python 3.11 to 3.13: make test PYTHON=python3.12

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DEV := $(VENV)/.dev-stamp
BENCH := $(VENV)/.bench-stamp
DOCS := $(VENV)/.docs-stamp
TORCH := $(VENV)/.torch-stamp
RAY := $(VENV)/.ray-stamp
DIST := $(VENV)/.dist-stamp

.PHONY: help demo test test-neural test-ray test-slow test-front test-pythons test-lowest fuzz soak lint format bench bench-tagging bench-parsing bench-classifier bench-tables bench-bandit bench-bandits bench-compiling bench-imperative bench-own-space bench-checks bench-neural bench-regret bench-decisions bench-heuristics bench-ray bench-mixing bench-serving study docs notebooks docs-serve dist clean
.DEFAULT_GOAL := help

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(DEV)  ## a policy overtakes its teacher; then the paper in small, with a report
	@echo "==> lols reproduce all --quick: first a policy that overtakes its teacher, then the paper on generated data"
	@mkdir -p reports/demo
	@$(BIN)/lols reproduce all --quick --json reports/demo/reproduce.json --html reports/demo/report.html

# Kernels are compiled in the two processes of pytest already, so not beside each other as well.
PYTEST := LOLS_COMPILE_AHEAD=0 $(BIN)/python -m pytest -q -n auto --maxprocesses 2 --dist loadfile

LINT := $(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy && $(BIN)/lint-imports --no-cache

# Lint takes one core for half a minute; what it says is shown after the tests.
test: $(DEV)  ## lint, and the tests and doctests that take no more than a few seconds each
	@echo "==> tests and doctests, and lint beside them; make test-slow has more"
	@{ $(LINT); } >$(VENV)/lint.log 2>&1 & lint=$$!; \
	$(PYTEST) -m "not slow and not ray" --doctest-modules --ignore src/lols/torch --ignore tests/torch src/lols tests; \
	tests=$$?; wait $$lint; lint=$$?; cat $(VENV)/lint.log; exit $$((tests > lint ? tests : lint))

# PyTorch takes 5 GB with its libraries for GPUs, so only who works on neural policies installs it.
test-neural: $(TORCH)  ## the tests and doctests of lols.torch, after installing PyTorch and Transformers (5 GB)
	@echo "==> tests and doctests of neural policies"
	@$(PYTEST) -m "not ray and not slow" --doctest-modules src/lols/torch tests/torch

test-ray: $(RAY)  ## the tests of lols.engines on Ray, after installing it: clusters on this machine, faults
	@echo "==> tests of Ray"
	@LOLS_COMPILE_AHEAD=0 timeout 300 $(BIN)/python -m pytest -q -m ray tests/engines

# Only the files that have such tests are looked at; of tests with many cases some will do here.
UNCOMPILED = $(PYTEST) -m "uncompiled and not slow" $$(grep -rl --include='test_*.py' mark.uncompiled tests)

test-slow: $(DEV)  ## the slow tests, those of kernels as plain Python, and again with bounds checks
	@echo "==> the slow tests: kills, statistics of long runs, pages of the documentation"
	@$(PYTEST) -m slow tests
	@echo "==> tests of kernels, as plain Python (NUMBA_DISABLE_JIT=1)"
	@NUMBA_DISABLE_JIT=1 $(UNCOMPILED)
	@echo "==> tests of kernels, compiled with bounds checks (NUMBA_BOUNDSCHECK=1)"
	@NUMBA_BOUNDSCHECK=1 $(UNCOMPILED)

# What differs most between versions of Python: docstrings, signatures, the command line.
test-front: $(DEV)  ## the doctests, and the tests of the command line and of lols.train
	@echo "==> doctests and tests of the command line, with $$($(BIN)/python --version)"
	@$(PYTEST) -m "not slow" --doctest-modules --ignore src/lols/torch src/lols tests/test_front.py tests/docs tests/cli

# Those of pyenv are looked for in its folder: its commands on the path need not find one.
test-pythons: $(DEV)  ## make test-front with each other supported Python of this machine, in .venv-3.13 and so on
	@here=$$($(BIN)/python -c 'import sys; print("%d.%d" % sys.version_info[:2])'); \
	for version in 3.11 3.12 3.13; do \
		[ $$version = $$here ] && continue; \
		for python in python$$version $${PYENV_ROOT:-$$HOME/.pyenv}/versions/$$version.*/bin/python; do \
			$$python -c 'import ensurepip' 2>/dev/null || continue; \
			$(MAKE) --no-print-directory test-front PYTHON=$$python VENV=.venv-$$version || exit 1; \
			continue 2; \
		done; \
		echo "==> there is no Python $$version here"; \
	done

# What users may have: the lowest versions that pyproject.toml admits, in an environment of their own.
LOWEST := .venv-lowest
LOWEST_TESTS := tests/cli/test_cli.py tests/cli/test_command_options.py tests/cli/test_verb_options.py tests/io \
	tests/tasks/test_pickle.py tests/tasks/tables/test_classifier.py tests/tasks/tables/test_classifier_files.py \
	tests/tasks/tables/test_classifier_cli_reports.py tests/contract/test_task.py tests/contract/test_frames.py \
	tests/bandit/test_bandit_log.py tests/tasks/test_confidence.py tests/torch tests/engines

test-lowest: $(LOWEST)/.stamp  ## the tests that touch other packages most, with the lowest versions of these (6 GB)
	@echo "==> tests with the lowest versions of all dependencies"
	@LOLS_COMPILE_AHEAD=0 $(LOWEST)/bin/python -m pytest -q -n auto --maxprocesses 2 --dist loadfile \
		-m "not slow and not ray" -p no:cacheprovider $(LOWEST_TESTS)
	@LOLS_COMPILE_AHEAD=0 timeout 300 $(LOWEST)/bin/python -m pytest -q -m ray -p no:cacheprovider tests/engines

# How long, and from which seed: make fuzz MINUTES=30 SEED=7 (without SEED, another one each time, which is printed)
MINUTES ?= 5
CAMPAIGN = --minutes $(MINUTES) $(if $(SEED),--seed $(SEED))

fuzz: $(DEV)  ## mutated files, models, checkpoints, logs and requests, for MINUTES=5 or longer
	@$(BIN)/python -m tests.fuzz $(CAMPAIGN)

soak: $(DEV)  ## what is killed and resumed, or shared by threads, for MINUTES=5 or longer
	@$(BIN)/python -m tests.fuzz.soak $(CAMPAIGN)

lint: $(DEV)  ## ruff (rules and format), mypy, and the layers by import-linter
	@echo "==> ruff, mypy and import-linter"
	@$(LINT)

format: $(DEV)  ## rewrite the files the way lint wants them
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

bench: $(BENCH)  ## measure the engine against other systems
	@echo "==> benchmarks/run.py"
	@$(BIN)/python benchmarks/run.py

bench-tagging: $(BENCH)  ## measure the tagger against other systems (needs the data)
	@echo "==> benchmarks/tagging.py"
	@$(BIN)/python benchmarks/tagging.py

bench-parsing: $(BENCH)  ## measure the parser against other systems (needs the data)
	@echo "==> benchmarks/parsing.py"
	@$(BIN)/python benchmarks/parsing.py

bench-classifier: $(BENCH)  ## measure the classifier against other systems (needs the data)
	@echo "==> benchmarks/classifier.py"
	@$(BIN)/python benchmarks/classifier.py

bench-tables: $(BENCH)  ## the classifier beside LightGBM and logistic regression on small tables
	@echo "==> tables that scikit-learn ships or makes"
	@$(BIN)/python -m benchmarks.tables

bench-bandit: $(DEV)  ## measure the bandit's decisions a second
	@echo "==> benchmarks/bandit.py"
	@$(BIN)/python benchmarks/bandit.py

bench-bandits: $(BENCH)  ## the bandit's defaults beside Vowpal Wabbit and LinUCB (needs the data)
	@echo "==> bandits on tables, slates and pages"
	@$(BIN)/python -m benchmarks.bandits

bench-neural: $(TORCH)  ## train the neural parser under three teachers; speed, and where the time goes (needs the data)
	@echo "==> benchmarks/neural.py"
	@$(BIN)/python benchmarks/neural.py

bench-compiling: $(DEV)  ## measure what a first run costs, with nothing compiled yet
	@echo "==> benchmarks/compiling.py"
	@$(BIN)/python benchmarks/compiling.py

bench-imperative: $(BENCH)  ## measure tasks written as programs against Vowpal Wabbit's Python hook (needs the data)
	@echo "==> benchmarks/imperative.py"
	@$(BIN)/python benchmarks/imperative.py

bench-own-space: $(DEV)  ## measure a task of one's own against the built-in one (needs the data)
	@echo "==> benchmarks/own_space.py"
	@$(BIN)/python benchmarks/own_space.py

bench-checks: $(DEV)  ## measure what bounds checks cost tasks of one's own
	@echo "==> benchmarks/checks.py"
	@$(BIN)/python -m benchmarks.checks

bench-regret: $(DEV)  ## measure how fast the bandit's regret falls
	@echo "==> benchmarks/regret.py"
	@$(BIN)/python benchmarks/regret.py

bench-decisions: $(DEV)  ## microseconds for a decision of a learned dispatching rule
	@echo "==> benchmarks/decisions.py"
	@$(BIN)/python benchmarks/decisions.py

bench-heuristics: $(DEV)  ## LOLS or reference roll-outs, if the teacher is a heuristic
	@echo "==> benchmarks/heuristics.py"
	@$(BIN)/python benchmarks/heuristics.py

bench-ray: $(RAY)  ## what engines cost and gain: exact and pass mode on Ray, bytes for each batch (needs the data)
	@echo "==> benchmarks/ray.py"
	@$(BIN)/python -m benchmarks.ray

bench-mixing: $(DEV)  ## how near pass mode comes to one machine: 2, 8 and 32 shards, five seeds (needs the data)
	@echo "==> benchmarks/mixing.py"
	@$(BIN)/python -m benchmarks.mixing

bench-serving: $(DEV)  ## cold and warm starts, latency and memory of a service
	@echo "==> benchmarks/serving.py"
	@$(BIN)/python -m benchmarks.serving

study: $(DEV)  ## which roll-out, which coin, which learner (needs the data)
	@echo "==> benchmarks/study.py"
	@$(BIN)/python benchmarks/study.py

# (not --quiet: it hides warnings from --strict, too)
docs: $(DOCS)  ## build the documentation into site/; broken links are errors
	@echo "==> mkdocs: docs/ into site/"
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict
	@echo "site/index.html can be opened as it is"

notebooks: $(DEV)  ## run the notebooks of the documentation and store their outputs
	@$(BIN)/python docs/tools/notebooks.py

docs-serve: $(DOCS)  ## show the documentation while you write it
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs serve

# The wheel is built from the sdist, so that the sdist is known to be complete.
dist: $(DIST)  ## build wheel and sdist into dist/, check them, and run the README's first example with the wheel
	@echo "==> building sdist and wheel into dist/"
	@rm -rf dist
	@$(BIN)/python -m build --quiet
	@echo "==> twine check --strict"
	@$(BIN)/python -m twine check --strict dist/*
	@$(BIN)/python -m scripts.try_wheel

clean:  ## remove caches and build outputs (not .venv)
	@rm -rf build dist reports site .hypothesis .mypy_cache .pytest_cache .ruff_cache
	@find . -path ./$(VENV) -prune -o -name __pycache__ -type d -exec rm -rf {} +

# What is installed, in words, and which extra of pyproject.toml that is; the target is a file that says it is done.
define install
	@echo "==> installing $(1) into $(VENV)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[$(2)]'
	@touch $@
endef

$(DEV): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 14))' 2>/dev/null || \
		{ echo "$(PYTHON) is not Python 3.11, 3.12 or 3.13: name one that is, as in 'make test PYTHON=python3.12'"; exit 1; }
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || \
		{ echo "==> creating $(VENV)"; $(PYTHON) -m venv --clear $(VENV); }
	$(call install,lols and its development tools,dev)

$(LOWEST)/.stamp: pyproject.toml
	@echo "==> installing lols and the lowest versions of its dependencies into $(LOWEST)"
	@$(PYTHON) -m venv --clear $(LOWEST)
	@$(LOWEST)/bin/python -m pip install --quiet --disable-pip-version-check uv
	@$(LOWEST)/bin/uv pip install --quiet --python $(LOWEST)/bin/python --resolution lowest-direct --editable '.[test,plots,ray,transformers]'
	@touch $@

$(BENCH): $(DEV)
	$(call install,the systems compared with,bench)

$(TORCH): $(DEV)
	$(call install,PyTorch and Transformers,transformers)

$(RAY): $(DEV)
	$(call install,Ray,ray)

$(DIST): $(DEV)
	$(call install,what wheels are built and checked with,dist)

$(DOCS): $(DEV)
	$(call install,what the documentation is built with,docs)
