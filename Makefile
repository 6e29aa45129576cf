# Two commands do everything: `make up` leaves a running fleet, `make test` passes the tests.
STACK ?= local
N ?= 3
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
COLLECTION := $(VENV)/collections/ansible_collections/gpufleet

PYTEST := $(BIN)/python -m pytest
# Two targets at once, one per core; each prints when it ends.
BOTH = $(MAKE) --no-print-directory --jobs=2 --keep-going --output-sync=target

.PHONY: setup up down status lint tools bench schema docs hosts-up hosts-down help
.PHONY: test test-unit test-engine test-hosts test-long test-long-engine test-long-hosts

help:
	@echo "make up [STACK=local|idc|aks-dev|aks-prod]  a running fleet on this machine, then its status"
	@echo "make test                                   all checks, and all tests but the long ones"
	@echo "make test-unit, test-engine, test-hosts     parts of it: in one process, on a real API server, on simulated hosts"
	@echo "make test-long                              the long tests, which \`make test\` leaves out"
	@echo "make setup                                  .venv with the gpufleet command"
	@echo "make down                                   stops what make up started"
	@echo "make bench                                  ratios, printed as tables"
	@echo "make hosts-up N=3, make hosts-down          simulated bare-metal hosts"

setup: $(STAMP)

$(STAMP): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "gpufleet needs Python 3.11 or newer; set PYTHON=..."; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --requirement requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --config-settings editable_mode=compat --editable .
	@mkdir -p $(COLLECTION) && ln -sfn ../../../.. $(COLLECTION)/hosts  # this folder is the collection gpufleet.hosts
	@touch $@

up: setup
	@$(BIN)/python -m twin up --stack $(STACK)

down: setup
	@$(BIN)/python -m twin down

status: setup
	@. ./.twin/clusters/$(STACK)/env && $(BIN)/gpufleet status -s $(STACK)

lint: setup
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo --no-cache

# From here to `bench`: each is a part of `test` or `test-long`, and can be run alone.
test: lint
	@echo "test-unit, test-hosts, test-engine: two at a time, each prints when it ends"
	@$(BOTH) test-unit test-hosts test-engine

test-unit: setup
	$(PYTEST) --ignore=tests/engine --ignore=tests/hosts

# The programs are built once per user and version, for half an hour; the tests beside it go first.
tools: setup
	nice $(BIN)/python -m twin tools

test-engine: tools
	$(PYTEST) tests/engine

test-hosts: setup
	$(PYTEST) tests/hosts

test-long: setup
	@echo "test-long-hosts, test-long-engine: both at a time, each prints when it ends"
	@$(BOTH) test-long-hosts test-long-engine

test-long-engine: tools
	$(PYTEST) -m long --ignore=tests/hosts

test-long-hosts: setup
	$(PYTEST) -m long tests/hosts

bench: setup
	@$(BIN)/python -m tests.bench $(WRITE)

schema docs: setup
	@$(BIN)/python docs/generate.py

hosts-up: setup
	@$(BIN)/python -m twin.hosts up --count $(N)

hosts-down: setup
	@$(BIN)/python -m twin.hosts down
