# Two commands do everything: `make up` leaves a running fleet, `make test` passes the tests.
STACK ?= local
N ?= 3
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
COLLECTION := $(VENV)/collections/ansible_collections/gpufleet

.PHONY: setup up down status test test-hosts lint bench schema docs hosts-up hosts-down help

help:
	@echo "make up [STACK=local|idc|aks-dev|aks-prod]  a running fleet on this machine, then its status"
	@echo "make test                                   all checks and tests"
	@echo "make test-hosts                             the part of them that runs on simulated hosts"
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

test: lint
	$(BIN)/python -m twin tools
	$(BIN)/python -m pytest

test-hosts: setup
	$(BIN)/python -m pytest tests/hosts

bench: setup
	@$(BIN)/python -m tests.bench $(WRITE)

schema docs: setup
	@$(BIN)/python docs/generate.py

hosts-up: setup
	@$(BIN)/python -m twin.hosts up --count $(N)

hosts-down: setup
	@$(BIN)/python -m twin.hosts down
