# make setup   a virtual environment in .venv with everything, on a fresh machine
# make run     real gradients: predicted on a 64-rank network, then really reduced by 2 to 4 processes
# make test   lint, types, layers, the site, and all kinds of tests
# make test-core   tests of the core by themselves, without lint; and that it works without each extension
# make test-all   the same with all tests: what it adds is in CONTRIBUTING.md
# make deep   only what test-all adds to test; CI runs it once a week
# make floor  the kernels' tests with the oldest Numba, NumPy, rich and tomli-w that are allowed
# make docs    the site, in docs/_build
# MPI=system   use the MPI that is installed instead of the mpich wheel
# TORCH_INDEX_URL=...   where pip finds the torch build you want; by default its own index
PYTHON ?= python3
MPI ?= mpich
VENV := .venv
BIN := $(VENV)/bin
MPI_EXTRA := $(if $(filter system,$(MPI)),mpi,mpich)
export PATH := $(CURDIR)/$(BIN):$(PATH)
# Open MPI refuses root and more ranks than cores unless told otherwise; MPICH ignores these.
export OMPI_ALLOW_RUN_AS_ROOT := 1
export OMPI_ALLOW_RUN_AS_ROOT_CONFIRM := 1
export PRTE_MCA_rmaps_default_mapping_policy := :oversubscribe

.PHONY: setup run test test-core test-all deep one-half other-half beside waiting under-mpi without-jit floor lint docs fuzz mutants lock audit sbom bench clean

setup: $(VENV)/.ready

$(VENV)/.ready: pyproject.toml constraints.txt
	@echo "Installing into $(VENV), with torch and MPI: some 2 GB, a few minutes; then kernels are compiled, once."
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade 'pip>=25.1'
	$(BIN)/pip install --quiet --constraint constraints.txt $(if $(TORCH_INDEX_URL),--index-url $(TORCH_INDEX_URL)) torch
	$(BIN)/pip install --quiet --constraint constraints.txt --group dev --editable '.[$(MPI_EXTRA),opt,chakra,packets,report,plot,testbed,serve,yaml,data,dask,graph,perfetto,complete]'
	-$(BIN)/commsim warmup
	touch $@
	@echo "Done. \`. $(VENV)/bin/activate\` puts the command \`commsim\` on your path."

run: setup
	$(BIN)/python -m benchmarks.real_gradients

# Pytest keeps its rewritten assertions with the bytecode: most of the time of collecting.
test test-all deep without-jit under-mpi one-half other-half waiting: export PYTHONDONTWRITEBYTECODE :=
test: DRAWN := and not deep
# In three lanes: two halves of the tests that fill the cores, and beside them what is shorter or waits for other
# processes, one after the other. What one lane leaves of a core the others take. Halves are folders, each with a process
# of its own: two workers of pytest-xdist would collect all tests and load all kernels twice (a seventh of the time).
test test-all: setup
	$(MAKE) -j3 one-half other-half beside 'DRAWN=$(DRAWN)'

deep: setup
	$(MAKE) -j2 one-half other-half 'DRAWN=and deep'
	$(MAKE) waiting under-mpi without-jit 'DRAWN=and deep'

beside: setup
	$(MAKE) lint
	$(MAKE) under-mpi without-jit 'DRAWN=$(DRAWN)'
	$(MAKE) docs COMMSIM_SITE_PICTURES=empty
	$(MAKE) waiting 'DRAWN=$(DRAWN)'

# Tests that start processes and wait for them, which alone would leave a core idle: the third lane's part of all.
WAITING := tests/emulation tests/live tests/real tests/sweep

ONE_HALF := $(patsubst %,tests/%,answers api auto benchmarks cli collectives core costmodel diagnosis docs engine experts \
  formats hostile jobs nccl packets)
FILLING := $(BIN)/python -m pytest -p no:xdist -m

one-half: setup
	$(FILLING) '$(strip not mpi $(DRAWN))' $(ONE_HALF)

other-half: setup
	$(FILLING) '$(strip not mpi $(DRAWN))' $(ONE_HALF:%=--ignore=%) $(WAITING:%=--ignore=%)

waiting: setup
	$(BIN)/python -m pytest -m '$(strip not mpi $(DRAWN))' $(WAITING)

under-mpi: setup
	$(BIN)/python -m pytest -m '$(strip mpi $(DRAWN))'

without-jit: setup
	NUMBA_DISABLE_JIT=1 $(FILLING) '$(strip nojit $(DRAWN))'

# What the core is: `benchmarks.house.slices`; its tests are in folders of the same names.
test-core: setup
	$(BIN)/python -m pytest -m 'not mpi and not deep and not slow and not needs_kernel' -n 2 --dist loadfile \
	  tests/core tests/routing tests/topologies tests/collectives tests/engine tests/prediction tests/report tests/cli \
	  tests/test_import.py tests/test_without_extensions.py

# Kernels with the oldest Numba, NumPy and others that pyproject.toml allows, in an environment of its own.
OLDEST := $(shell sed -n 's/^dependencies = \[\(.*\)\]/\1/p' pyproject.toml | tr -d '",' | sed 's/>=/==/g')
floor:
	$(PYTHON) -m venv $(VENV)_floor
	$(VENV)_floor/bin/pip install --quiet --upgrade 'pip>=25.1'
	$(VENV)_floor/bin/pip install --quiet $(OLDEST) --editable . pytest pytest-xdist pytest-benchmark hypothesis scipy networkx
	NUMBA_CACHE_DIR=$(CURDIR)/$(VENV)_floor/kernels $(VENV)_floor/bin/python -m pytest -m nojit tests/core tests/engine \
	  tests/ranking/synthesis/trees tests/switches/test_replay.py
	$(VENV)_floor/bin/python -m pytest tests/core/compiling tests/core/test_jit.py

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: setup
	$(BIN)/python -m sphinx -q -W --keep-going -b html docs docs/_build

# Seeded attacks with options, files, packets and requests: make fuzz TIMES=1000 SEED=7
fuzz: setup
	COMMSIM_FUZZ=$(or $(TIMES),100) COMMSIM_FUZZ_SEED=$(or $(SEED),1) $(BIN)/python -m pytest -m '' tests/hostile \
	  tests/live/test_fuzz.py tests/placement/service/test_security.py

# Seeded mutations of the code that tests should notice: make mutants AREA=routing TIMES=20 SEED=7
mutants: setup
	$(BIN)/python -m benchmarks.mutants $(AREA) --times $(or $(TIMES),13) --seed $(or $(SEED),1)

# Versions and hashes of all that `make setup` installs but torch, for this Python and system, in requirements.lock.
lock: setup
	$(BIN)/pip lock --quiet --constraint constraints.txt --group dev --editable '.[mpich,opt,chakra,packets,report,plot,testbed,serve,yaml,data,dask,graph,perfetto,complete]' -o pylock.toml
	$(BIN)/python .ci/lock.py pylock.toml > requirements.lock
	rm pylock.toml

# Known vulnerabilities of what is installed; asks the index of advisories, so it is no part of `make test`.
audit: setup
	$(BIN)/pip install --quiet 'pip-audit>=2.9'
	$(BIN)/pip-audit --skip-editable

# CycloneDX bill of materials of what is installed, for a release.
sbom: setup
	$(BIN)/pip install --quiet 'cyclonedx-bom>=5'
	$(BIN)/cyclonedx-py environment $(BIN)/python --output-reproducible -o commsim.cdx.json

bench: setup
	$(BIN)/python -m pytest benchmarks --benchmark-enable --benchmark-only

clean:
	rm -rf $(VENV) $(VENV)_floor .mypy_cache .ruff_cache .pytest_cache .hypothesis build docs/_build docs/_generated *.egg-info
