# Every target sets up what it needs in .venv; nothing else on the machine is touched.
PYTHON ?= python3
BIN := .venv/bin
export OMP_NUM_THREADS ?= 1

.PHONY: demo test lint bench clean
.DEFAULT_GOAL := test

.venv/bin/python:
	$(PYTHON) -m venv .venv

.venv/.demo-ready: pyproject.toml | .venv/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[cli]'
	touch $@

.venv/.dev-ready: pyproject.toml | .venv/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	touch $@ .venv/.demo-ready

demo: .venv/.demo-ready
	$(BIN)/sourcewise demo

test: .venv/.dev-ready
	$(BIN)/python -m pytest --cov --cov-report=term

lint: .venv/.dev-ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: .venv/.dev-ready
	mkdir -p bench-results
	$(BIN)/python -m benchmarks.weights --json bench-results/weights.json
	$(BIN)/python -m benchmarks.training --exactness --json bench-results/training.json
	$(BIN)/python -m benchmarks.baselines --json bench-results/baselines.json
	$(BIN)/python -m benchmarks.add_source --json bench-results/add_source.json
	$(BIN)/python -m benchmarks.growth --json bench-results/growth.json

clean:
	rm -rf .venv .pytest_cache .mypy_cache .ruff_cache .coverage
