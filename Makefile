# kernelcast: every target makes its own virtual environment (.venv) when it is missing.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
JOBS   ?= 2
MEASURED := projections/validation
PREDICTIONS ?= out/kernels.csv
LADDER_PREDICTIONS ?= out/ladder.csv

.DEFAULT_GOAL := help
.PHONY: help demo test lint validate bench accuracy vendor-gap published studies clean

help:
	@echo "make demo      install, then project real kernels on the H200 model beside what silicon measured"
	@echo "make test      lint, import rules and the whole test suite"
	@echo "make lint      ruff, import rules, mypy"
	@echo "make validate  predict every measured kernel of projections/validation (JOBS=$(JOBS))"
	@echo "make bench     speed of the engine (warp instructions per second) and of the tuner's screen (designs per second)"
	@echo "make studies   run the trade studies of projections/ again (minutes)"
	@echo "make accuracy  dashboard, error table, intervals and the README's accuracy table from the results of make validate"
	@echo "make published  tuned designs, projected, beside published times of other chips (minutes)"
	@echo "make vendor-gap  compiled kernels, projected, beside the vendor's library (minutes)"

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed-run: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install -q --disable-pip-version-check -e ".[sass]"
	@touch $@

$(VENV)/.installed-dev: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install -q --disable-pip-version-check -e ".[sass,dev]"
	@touch $@ $(VENV)/.installed-run

demo: $(VENV)/.installed-run
	@$(BIN)/kernelcast demo

test: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/lint-imports --no-cache
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/lint-imports --no-cache
	$(BIN)/mypy

validate: $(VENV)/.installed-run
	@mkdir -p out
	$(BIN)/kernelcast validate --measured $(MEASURED)/kernels.csv.gz --cubins $(MEASURED)/cubins.tar.xz \
	    --hw h200 -o out/kernels.csv --jobs $(JOBS)
	$(BIN)/kernelcast validate --measured $(MEASURED)/ladder.csv.gz --cubins $(MEASURED)/ladder_cubins.tar.xz \
	    --hw h200 -o out/ladder.csv --jobs $(JOBS)

accuracy: $(VENV)/.installed-run
	$(BIN)/kernelcast validate --measured $(MEASURED)/kernels.csv.gz --hw h200 \
	    --from $(PREDICTIONS) --publish $(MEASURED)/h200
	$(BIN)/python -m simulator.validation.accuracy_table --readme README.md --run "Triton kernels" $(MEASURED)/h200/errors.csv
	$(BIN)/kernelcast validate --measured $(MEASURED)/ladder.csv.gz --hw h200 \
	    --from $(LADDER_PREDICTIONS) --publish $(MEASURED)/h200/ladder
	$(BIN)/python -m simulator.validation.accuracy_table --readme $(MEASURED)/README.md \
	    --run "Hand-written CUDA kernels" $(MEASURED)/h200/ladder/errors.csv

vendor-gap: $(VENV)/.installed-run
	$(BIN)/python -m simulator.report.vendor_gap --hw h200 --jobs $(JOBS) --output projections/vendor_gap \
	    --run $(MEASURED)/kernels.csv.gz $(MEASURED)/cubins.tar.xz --run $(MEASURED)/ladder.csv.gz $(MEASURED)/ladder_cubins.tar.xz

published: $(VENV)/.installed-run
	$(BIN)/python -m simulator.tuning.published_measurements $(MEASURED)/published --jobs $(JOBS)

STUDIES := shared_memory_and_tensor_rate dram_and_l2 next_chip

studies: $(VENV)/.installed-run
	for name in $(STUDIES); do \
	    rm -rf projections/$$name/results; \
	    $(BIN)/kernelcast study projections/$$name/study.yaml -o projections/$$name/results --jobs $(JOBS) || exit 1; \
	done

bench: $(VENV)/.installed-dev
	$(BIN)/python tests/benchmarks/engine_speed.py
	$(BIN)/python tests/benchmarks/screen_speed.py

clean:
	rm -rf out dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis
