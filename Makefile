# `make help` says what there is.
PYTHON ?= python3
VENV := .venv
BUILD := build/native
BIN := $(VENV)/bin
STUB := $(BIN)/python -m nanobind.stubgen -q -m halocline._native
JOBS := $(shell nproc)
# processes that share out the files of tests: one more than the two cores of CI, since they often wait
WORKERS ?= 3
# seconds after which a test is a hang: its stack is shown, and it fails. Limits of tests themselves are shorter
# (tests/support/hang.py), but the first test of ranks in a file counts the time of all that share its mpiexec.
HANG := 7200
PYTEST = $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder --durations=25 \
  --max-worker-restart 0 -o faulthandler_timeout=$(HANG) -o faulthandler_exit_on_timeout=true
# of test-openmpi: the library of an Open MPI (this is Debian's), and the tests of ranks
OPENMPI ?= $(firstword $(wildcard /usr/lib/*/libmpi.so.40))
OPENMPI_TESTS := $(addprefix tests/mpi/test_,ranks.py exchange.py communication.py bitwise.py)
# of gpu-check and gpu-bench; CHECK and BENCH are more options for their programs
DEVICE ?= cuda
WITH_WHEELS = $(if $(WHEELS),--wheels $(WHEELS))
NATIVE := $(wildcard native/src/*/* native/include/halocline/* native/cmake/*.*)
SOURCES := $(wildcard native/src/*/*pp native/tests/*pp native/include/halocline/*)

.DEFAULT_GOAL := help
.PHONY: help build run test test-full test-openmpi lint format bench gpu-check gpu-bench docs sanitize release lock \
  clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: $(VENV)/built ## Build Halocline and its command in .venv

run: build ## Solve the Poisson problem on two ranks: table, pictures, page in out/poisson
	$(BIN)/halocline study convergence poisson --n 256,512,1024 --ranks 2 --threads 1 --pictures out/poisson \
	  --html out/poisson/index.html --csv out/poisson/convergence.csv --json out/poisson/convergence.json

# the next run finds the kernels that this one compiled; those of test-full are compiled anew
test: export HALOCLINE_TEST_CACHE ?= $(CURDIR)/build/test-cache
test: build ## Run the tests that belong to every change
	$(PYTEST) -m "not long" tests

test-full: build ## Run all tests; those of ranks with Open MPI too, where it is installed
	$(PYTEST) tests || failed=1; \
	if [ -e "$(OPENMPI)" ] || [ "$$HALOCLINE_TEST_OPENMPI" = required ]; then \
	  $(MAKE) test-openmpi || failed=1; \
	else \
	  echo "no tests with Open MPI: there is no libmpi.so.40 (Debian: openmpi-bin)"; \
	fi; exit $${failed:-0}

test-openmpi: build ## Run the tests of ranks with Open MPI: OPENMPI is its library
	@test -e "$(OPENMPI)" || { \
	  echo "there is no Open MPI: apt-get install openmpi-bin," \
	    "or name its library: make test-openmpi OPENMPI=/opt/openmpi/lib/libmpi.so.40" >&2; exit 1; }
	HALOCLINE_MPI=$(OPENMPI) $(PYTEST) -m "not long" $(OPENMPI_TESTS)

lint: build $(VENV)/dev ## Check style, types and native code
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python tools/prose/lint.py
	$(BIN)/mypy
	$(STUB) -o build/_native.pyi && diff build/_native.pyi src/halocline/_native.pyi
	$(BIN)/clang-format --dry-run -Werror $(SOURCES)
	printf '%s\n' native/src/*/*.cpp | \
	  xargs -P $(JOBS) -n 2 $(BIN)/clang-tidy --quiet -p build/native \
	  --extra-arg=-idirafter$$(dirname $$(g++ -print-file-name=include/omp.h))

format: build $(VENV)/dev ## Bring the code into the style that lint asks for
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(STUB) -o src/halocline/_native.pyi
	$(BIN)/clang-format -i $(SOURCES)

bench: build ## Print the ratios that the project promises
	$(BIN)/python benchmarks/run.py

gpu-check: ## Check runs on this machine's devices; needs no network: DEVICE=opencl, WHEELS=.whl
	$(PYTHON) tools/gpu_check.py --device $(DEVICE) $(WITH_WHEELS) --json out/gpu-check/$(DEVICE).json $(CHECK)

gpu-bench: ## Measure on this machine's devices, into benchmarks/results: DEVICE, WHEELS as for gpu-check
	python=$$($(PYTHON) tools/gpu_python.py $(WITH_WHEELS)) || exit 1; \
	for name in heat mhd cg exchange launches; do \
	  echo "== gpu_$$name"; \
	  $$python benchmarks/gpu_$$name.py --device $(DEVICE) --json $(BENCH) || failed=1; \
	done; exit $${failed:-0}

docs: build $(VENV)/dev ## Build the documentation in out/docs; write the reference of the command, and the gallery
	$(BIN)/python tools/command_reference.py
	$(BIN)/python tools/gallery.py
	$(BIN)/sphinx-build -q -W -j $(JOBS) -b html docs out/docs

sanitize: $(VENV)/installed ## Run the native tests under the address, undefined and thread sanitizers
	tools/sanitize.sh $(BIN)/python

release: $(VENV)/installed ## Check and build a release in dist: RELEASE=--rehearse builds any commit
	$(BIN)/python -m pip install --quiet 'pip>=25.1'
	$(BIN)/python -m pip install --quiet --group release
	$(BIN)/python tools/release.py $(RELEASE)

lock: ## Renew the lock files
	$(PYTHON) tools/lock.py

clean: ## Remove what was built
	rm -rf $(VENV) build out

# The environment: everything at the versions of the lock file.
$(VENV)/installed: requirements.lock
	@missing=$$(tools/missing.sh $(PYTHON)) || exit 1; \
	if [ -n "$$missing" ]; then echo "cannot build yet: apt-get install" $$missing >&2; exit 1; fi
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet -r requirements.lock
	@touch $@

$(VENV)/dev: requirements-dev.lock $(VENV)/installed
	$(BIN)/python -m pip install --quiet -r requirements-dev.lock
	@touch $@

# The package is editable: a change of Python counts at once, a change of native code after `make build`,
# which compiles what has changed in $(BUILD).
$(VENV)/built: $(VENV)/installed pyproject.toml CMakeLists.txt $(NATIVE)
	flock $(VENV) $(BIN)/python -m pip install --quiet --no-deps --no-build-isolation \
	  --config-settings=build-dir=$(BUILD) --editable .
	@touch $@
