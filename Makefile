# Everything that is done with the sources. `make` alone explains. A step prints one line; its log is in .build/logs.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.NOTPARALLEL:
MAKEFLAGS += --no-print-directory --no-builtin-rules

VENV := .venv
BIN := $(VENV)/bin
STEP := .ci/step
PYTHON ?= $(shell for python in python3 python3.13 python3.12 python3.11; do \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && command -v $$python && break; done)

# One environment, always with the wheel of this checkout in it, never the checkout itself: what is tested is what ships.
# A stamp's name is the fingerprint of what it stands for, so a deleted file and another branch are changes, too.
fingerprint = $(shell find $(1) -type f ! -name '*.pyc' | LC_ALL=C sort | xargs sha256sum | sha256sum | cut -c1-16)
READY := $(VENV)/ready-$(call fingerprint,pyproject.toml constraints.txt)
WHEEL := $(VENV)/wheel-$(call fingerprint,pyproject.toml proxy README.md CHANGELOG.md LICENSE)

# Without it Python would take `proxy` from the working folder. `load` and `tests` are found by a line in the environment.
export PYTHONSAFEPATH := 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export COVERAGE_FILE := $(CURDIR)/.build/coverage
# Tests of the installation mean the environment above, no other.
export TIDEGATE_TEST_WHEEL := 1

QUICK := $(wildcard tests/unit tests/properties tests/simulation tests/histories tests/wire tests/nakadi)
# Tests that share a stack, a Spark, a browser or a container engine go to one worker (tests/conftest.py), the others to any.
# What meets brokers waits for half of its time, so there is one worker more than there are cores.
PYTEST := $(BIN)/python -m pytest -q --numprocesses $(shell expr $$(nproc) + 1) --dist loadgroup

# What an event's safety and speed depend on; all tests together must run through so much of it, in percent of lines and
# branches. Only `test-all` looks: under coverage the same tests take four times as long.
PROVEN := bridge congestion steering kafka_log nakadi_log rabbitmq publish_lane recording operations
PROVEN_AT_LEAST := 95
empty :=
comma := ,
PROVEN_FILES := $(subst $(empty) $(empty),$(comma),$(foreach part,$(PROVEN),*/proxy/$(part)/* */proxy/$(part).py))

.PHONY: help
help: ## this page
	@echo "Tidegate: events from Kafka to RabbitMQ, no faster than what stands behind RabbitMQ can take."
	@echo
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 20
	@echo
	@echo "Each makes what it needs first: an environment in .venv, a Kafka and a RabbitMQ of its own on free ports."
	@echo "Missing Debian packages are installed where that is permitted; else one sentence says what to install."

.PHONY: setup
setup: $(WHEEL) ## the environment in .venv, with the wheel of this checkout
	@:

.PHONY: check
check: lint ## format, lint, types, imports, quick tests and 160 simulated histories: before every commit (3 to 5 minutes on two cores)
	@mkdir -p .build/logs
	@timeout --foreground --kill-after=30 600 $(BIN)/python -m pytest -q --numprocesses logical -m "not long and not series" $(QUICK) 2>&1 \
		| tee --ignore-interrupts .build/logs/quick-tests.log

.PHONY: lint
lint: setup
	@$(STEP) format 60 "Format" -- $(BIN)/ruff format --check .
	@$(STEP) lint 60 "Lint" -- $(BIN)/ruff check .
	@$(STEP) types 300 "Types" -- $(BIN)/mypy
	@$(STEP) imports 60 "Imports run one way" -- $(BIN)/lint-imports

# All tests in one pytest: its closing line, repeated as the last that is printed, counts them all.
.PHONY: test
test: lint software ## everything that CI runs: check, then all tests on real brokers and the image (less than an hour on two cores)
	@timeout --foreground --kill-after=60 4500 env TIDEGATE_TEST_RABBITMQS="system 4" $(PYTEST) -m "not long" tests 2>&1 | tee --ignore-interrupts .build/logs/tests.log
	@tail -n 1 .build/logs/tests.log

# The same tests and those marked `long`: clusters, rotations, all histories. Hours, so it goes on after a failure.
.PHONY: test-all
test-all: lint software spark-cluster ## test, and the long series: clusters, rotations, a day's calm, all histories (hours)
	@env TIDEGATE_TEST_RABBITMQS="system 4" $(PYTEST) --cov --cov-report= tests
	@for part in $(PROVEN); do \
		echo "Branch coverage of $$part: $$($(BIN)/coverage report --format=total --include="*/proxy/$$part/*,*/proxy/$$part.py") %"; done
	@echo "Branch coverage of these together, at least $(PROVEN_AT_LEAST): $$($(BIN)/coverage report --format=total \
		--include='$(PROVEN_FILES)') %"
	@$(BIN)/coverage report --include='$(PROVEN_FILES)' --fail-under=$(PROVEN_AT_LEAST) > .build/logs/coverage.log || \
		{ cat .build/logs/coverage.log; exit 1; }

# Whatever takes long the first time, so that no test waits for it.
.PHONY: software
software: setup
	@$(STEP) rabbitmq-4 600 "A RabbitMQ 4 beside the system's" -- $(BIN)/python -m load.stack rabbitmq-4
	@$(STEP) browser 900 "A browser for the report's page" -- $(BIN)/python -m load.browser
	@$(STEP) stack 900 "A Kafka and a RabbitMQ start" -- $(BIN)/python -m load.stack run -- true
	@$(STEP) prometheus 900 "A Prometheus for tests of alerts" -- $(BIN)/python -m load.prometheus
	@$(STEP) helm 900 "A Helm for tests of the chart" -- $(BIN)/python -m load.helm
	@$(STEP) base-image 900 "A base for the image" -- $(BIN)/python -m load.container --base-only

.PHONY: spark-cluster
spark-cluster: setup
	@$(STEP) spark-cluster 1800 "A Spark cluster and an S3 start" -- $(BIN)/python -m load.spark_cluster -- true

# `LOG=nakadi`: from a scripted Nakadi instead of a real Kafka.
LOG ?= kafka
.PHONY: demo
demo: setup ## order confirmations, brand alerts and a campaign through real brokers, control off and on (5 minutes)
	@$(BIN)/python -m load.demo --log $(LOG)

# Interrupted, it goes on where it was. `python -m load.control --json FILE` runs a dozen scenarios on real brokers (an hour).
.PHONY: control
control: setup ## every policy and law: ten minutes on real brokers, every scenario simulated, a page that says which to choose (an hour)
	@$(BIN)/python -m load.compare

.PHONY: bench
bench: setup ## rates and CPU of Tidegate and others, in turn on real brokers: what a user pays (25 minutes)
	@$(BIN)/python -m load.bench throughput --json out/throughput.json

.PHONY: bench-check
bench-check: setup ## what `make bench` found beside load/results: what became slower or dearer, beyond what is chance
	@$(BIN)/python -m load.bench check load/results out/throughput.json

.PHONY: faults
faults: setup ## every real fault once: brokers, network, rights, replicas; nothing may be lost (6 minutes)
	@$(BIN)/python -m load.faults --json out/faults.json

# Interrupted, it goes on with `python -m load.faults --cluster --json out/clusters.json --resume`.
.PHONY: clusters
clusters: setup ## every real fault once on three nodes of each broker: some killed, silent, cut off (40 minutes)
	@$(BIN)/python -m load.faults --cluster --json out/clusters.json

# MINUTES of calm, as many of real faults, then SEEDS simulated histories.
MINUTES ?= 60
SEEDS ?= 0..99999
.PHONY: soak
soak: setup ## an hour of calm and one of real faults with memory, tasks and descriptors drawn, then 100,000 simulated histories
	@$(BIN)/python -m load.calm --json out/calm.json --minutes $(MINUTES)
	@$(BIN)/python -m load.soak --json out/soak.json --minutes $(MINUTES)
	@$(BIN)/python -m tests.histories --seeds $(SEEDS)

.PHONY: image
image: setup ## the container image localhost/tidegate:latest, with Docker, Podman or Buildah, and its SBOM (CycloneDX)
	@mkdir -p out
	@$(BIN)/python -m load.container --sbom out/tidegate.cdx.json

.PHONY: docs
docs: setup ## the docs site in .build/docs, every link checked (half a minute)
	@$(STEP) docs 300 "Docs, strictly" -- env NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build
	@echo "Open .build/docs/index.html"

.PHONY: constraints
constraints: .build/requirements.txt ## constraints.txt anew: the newest versions that pyproject.toml allows
	@rm -rf .build/newest
	@$(STEP) newest 600 "A fresh environment" -- $(PYTHON) -m venv .build/newest
	@$(STEP) resolve 900 "The newest versions" -- .build/newest/bin/pip install -r .build/requirements.txt
	@{ grep '^#' constraints.txt; .build/newest/bin/pip freeze --all --exclude pip | LC_ALL=C sort -f; } > .build/constraints.txt
	@mv .build/constraints.txt constraints.txt
	@rm -rf .build/newest
	@git --no-pager diff --stat constraints.txt

.PHONY: clean
clean: ## ends the stacks of this checkout and deletes all that was made in it
	@for home in .build/stack/*/; do \
		if [ -e "$$home/state.json" ]; then $(BIN)/python -m load.stack down --name "$$(basename "$$home")"; fi; done
	@rm -rf $(VENV) .build dist out .hypothesis .mypy_cache .pytest_cache .ruff_cache .import_linter_cache spark-warehouse
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
	@echo "What is fetched once per user (Kafka, RabbitMQ 4, an S3 and its client) stays in $${XDG_CACHE_HOME:-~/.cache}/tidegate."

$(READY): | .build/requirements.txt
	@if [ -z "$(PYTHON)" ]; then echo "Tidegate needs Python 3.11 or later: install it, or say where it is by PYTHON=..."; exit 2; fi
	@if ! $(PYTHON) -c 'import ensurepip, venv' 2>/dev/null; then \
		if [ "$$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then \
			echo "$(PYTHON) has no venv module: run \`sudo apt-get install python3-venv\` (or what installs it here) and repeat."; exit 2; fi; \
		$(STEP) venv 600 "Installing python3-venv with apt-get" -- sh -c 'apt-get update && apt-get install -y python3-venv'; fi
	@$(STEP) environment 600 "Environment in $(VENV)" -- $(PYTHON) -m venv --clear $(VENV)
	@$(STEP) dependencies 900 "Dependencies, as pinned" -- \
		$(BIN)/pip install --constraint constraints.txt --requirement .build/requirements.txt
	@pwd > "$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/tidegate-checkout.pth"
	@touch $@

$(WHEEL): $(READY)
	@rm -rf .build/wheel
	@$(STEP) build 400 "Wheel" -- $(BIN)/pip wheel --no-deps --no-build-isolation --wheel-dir .build/wheel .
	@$(STEP) install 400 "Wheel installed" -- $(BIN)/pip install --no-deps --force-reinstall .build/wheel/*.whl
	@rm -f $(VENV)/wheel-* && touch $@

# Run time, all extras, and the tool that builds the wheel.
.build/requirements.txt: pyproject.toml
	@mkdir -p .build
	@$(PYTHON) -c 'import tomllib; told = tomllib.load(open("$<", "rb")); project = told["project"]; \
		print(*project["dependencies"], *sum(project["optional-dependencies"].values(), []), *told["build-system"]["requires"], sep="\n")' > $@
