# `make help` says what there is.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
MPI := $(shell $(PYTHON) native/cmake/find_mpi.py --kind 2>/dev/null)
NATIVE := $(wildcard native/src/* native/include/halocline/*)

.DEFAULT_GOAL := help
.PHONY: help build run test test-full lint format bench docs sanitize lock clean

help: ## Show this list
	@sed -nE 's/^([a-z-]+):.*## (.*)/  make \1|\2/p' $(MAKEFILE_LIST) | column -t -s '|'

build: $(VENV)/built ## Build Halocline and its command in .venv

run: build ## Solve the Poisson problem on two ranks: table, pictures, page in out/poisson
	$(BIN)/halocline study convergence poisson --n 64,128,256,512,1024 --ranks 2 --html out/poisson/index.html

test: build ## Run the tests that take minutes
	$(BIN)/python -m pytest -m "not long" tests

test-full: build ## Run all tests
	$(BIN)/python -m pytest tests

lint: build $(VENV)/dev ## Check style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/clang-format --dry-run -Werror $(wildcard native/*/*.cpp native/*/*.hpp native/include/halocline/*)
	$(BIN)/clang-tidy --quiet -p build/native $(wildcard native/src/*.cpp)

format: $(VENV)/dev ## Bring the code into the style that lint asks for
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/clang-format -i $(wildcard native/*/*.cpp native/*/*.hpp native/include/halocline/*)

bench: build ## Print the ratios that the project promises
	$(BIN)/python benchmarks/run.py

docs: build $(VENV)/dev ## Build the documentation in out/docs
	$(BIN)/sphinx-build -q -W -b html docs out/docs

sanitize: ## Run the native tests under the address, undefined and thread sanitizers
	native/tests/sanitize.sh

lock: ## Renew the lock files
	native/cmake/lock.sh

clean: ## Remove what was built
	rm -rf $(VENV) build out

# The environment: everything at the versions of the lock file, with the system's MPI where there is one.
$(VENV)/installed: requirements.lock native/cmake/find_mpi.py native/cmake/check.sh
	@native/cmake/check.sh $(PYTHON)
	$(PYTHON) -m venv $(VENV)
ifeq ($(MPI),system)
	grep -v '^mpich==' requirements.lock > $(VENV)/requirements.txt
	$(BIN)/python -m pip install --quiet --no-binary mpi4py -r $(VENV)/requirements.txt
else
	$(BIN)/python -m pip install --quiet -r requirements.lock
endif
	@touch $@

$(VENV)/dev: requirements-dev.lock $(VENV)/installed
	$(BIN)/python -m pip install --quiet -r requirements-dev.lock
	@touch $@

# The package is editable: changes of Python count at once, changes of native code with `make build`.
$(VENV)/built: $(VENV)/installed pyproject.toml CMakeLists.txt $(NATIVE)
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --config-settings=build-dir=build/native --editable .
	@touch $@
