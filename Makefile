# hpcfit: the commands of a working copy. `make` lists them.
.DEFAULT_GOAL := help
.PHONY: help setup demo test science papers drill lint bench clean
MAKEFLAGS += --no-print-directory

python := .venv/bin/python
hpcfit := .venv/bin/hpcfit

# BLAS threads and MPI ranks compete for the same cores.
export OMP_NUM_THREADS ?= 1
# Open MPI on one machine: run as root in a container, run more ranks than cores without a busy wait, and do
# not bind, as two runs at once would be bound to the same cores.
export OMPI_ALLOW_RUN_AS_ROOT ?= 1
export OMPI_ALLOW_RUN_AS_ROOT_CONFIRM ?= 1
export OMPI_MCA_rmaps_base_oversubscribe ?= 1
export OMPI_MCA_mpi_yield_when_idle ?= 1
export OMPI_MCA_hwloc_base_binding_policy ?= none

help:  ## list these commands
	@awk -F ':.*  ## ' '/^[a-z]+:.*  ## / {printf "make %-7s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: .venv/.ready  ## build .venv with the hpcfit command and all that it needs
	@echo "ready: $(hpcfit)"

.venv/.ready: .ci/setup .ci/constraints.txt pyproject.toml
	@.ci/setup
# A .venv does not survive a move or a copy of its folder.
ifneq ($(shell cat .venv/.ready 2>/dev/null),$(CURDIR))
.PHONY: .venv/.ready
endif

demo: .venv/.ready  ## fit Hénon–Heiles to noisy chaotic data (jobs/demo.toml), show and draw the result
	@mkdir -p build
	$(hpcfit) run jobs/demo.toml -o build/demo.h5 --overwrite
	$(hpcfit) show build/demo.h5
	$(hpcfit) report build/demo.h5 -o build/demo.png
	$(hpcfit) report build/demo.h5 -o build/demo.html
	@echo "open build/demo.html in a browser, or look at build/demo.png"

test: lint  ## lint, then run all tests (ARGS="-k spectrum" goes to pytest)
	$(python) -m pytest $(ARGS)

science: .venv/.ready  ## the statistics of thousands of fits
	$(python) -m pytest -m science tests/science $(ARGS)

papers: .venv/.ready  ## the 31 scenarios of the two PARFIT papers and their Lyapunov spectra, beside what is printed
	@$(python) -m jobs.papers
	@$(python) -m jobs.spectra

drill: .venv/.ready  ## 60 kills of spectra, 40 faults of a campaign on a private SLURM: all must end as if undisturbed
	$(python) -m tests.drill.spectra build/drill
	$(python) -m tests.drill.campaign

bench: build/bench-venv/.ready  ## measure against heyoka, jitcode, casadi and scipy
	@mkdir -p build/bench
	for part in intervals dense compiling fits ensembles long spectra switches; do \
	    build/bench-venv/bin/python -m benchmarks.$$part --json build/bench/$$part.json || exit 1; done

# The peers see the packages of .venv, and leave it as it is.
site := import sysconfig; print(sysconfig.get_path("purelib"))
build/bench-venv/.ready: benchmarks/requirements.txt .venv/.ready
	$(python) -m venv --system-site-packages --clear build/bench-venv
	echo "import site; site.addsitedir('$$($(python) -c '$(site)')')" \
	    > $$(build/bench-venv/bin/python -c '$(site)')/hpcfit-venv.pth
	build/bench-venv/bin/pip --disable-pip-version-check install -q --no-deps -c .ci/constraints.txt \
	    -r benchmarks/requirements.txt
	touch $@

lint: .venv/.ready  ## ruff (check and format) and mypy
	$(python) -m ruff check .
	$(python) -m ruff format --check .
	$(python) -m mypy hpcfit

clean:  ## remove all that these commands made, .venv too
	rm -rf .venv build *.egg-info .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -prune -exec rm -rf {} +
