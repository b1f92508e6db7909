# Every target sets up what it needs in .venv; nothing else on the machine is touched.
PYTHON ?= python3
BIN := .venv/bin
export OMP_NUM_THREADS ?= 1
# Processes of the test suite.
JOBS ?= 2

.PHONY: demo test test-fast test-oldest coverage lint bench docs dist clean
.DEFAULT_GOAL := test

.venv/bin/python:
	$(PYTHON) -m venv .venv

.venv/.demo-ready: pyproject.toml | .venv/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[cli]'
	touch $@

.venv/.dev-ready: pyproject.toml | .venv/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	touch $@ .venv/.demo-ready

# Torch, Pillow and a network, for the tests of pictures; not needed by anything else. The newest
# version whose build for processors alone is known to install.
TORCH ?= torch==2.13.0

.venv/.images-ready: pyproject.toml | .venv/.dev-ready
	$(BIN)/python -m pip install --quiet --disable-pip-version-check '$(TORCH)' -e '.[images]'
	touch $@

demo: .venv/.demo-ready
	$(BIN)/sourcewise demo

test: .venv/.dev-ready .venv/.images-ready
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal

# The same, counting which lines run, which slows everything down.
coverage: .venv/.dev-ready .venv/.images-ready
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal --cov --cov-report=term

# For the work at hand: without what starts processes, runs whole studies or every document.
test-fast: .venv/.dev-ready
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal -m "not slow"

# The suite on the oldest versions that pyproject.toml allows.
.venv-oldest/.ready: pyproject.toml tests/oldest.py
	$(PYTHON) -m venv .venv-oldest
	$(PYTHON) tests/oldest.py > .venv-oldest/constraints.txt
	.venv-oldest/bin/python -m pip install --quiet --disable-pip-version-check \
	  -c .venv-oldest/constraints.txt -e '.[dev]'
	touch $@

test-oldest: .venv-oldest/.ready
	.venv-oldest/bin/python -m pytest -n $(JOBS) --dist worksteal

# The site, in docs/_build/html: warnings are errors.
.venv/.docs-ready: pyproject.toml | .venv/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[docs]'
	touch $@

docs: .venv/.docs-ready
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html

# An archive and a wheel, checked as somebody gets them: without extras, and with the command line.
dist: .venv/.dev-ready
	rm -rf dist
	$(BIN)/python -m build --outdir dist .
	$(BIN)/twine check --strict dist/*
	rm -rf dist/.light dist/.whole
	$(PYTHON) -m venv dist/.light
	dist/.light/bin/python -m pip install --quiet --disable-pip-version-check dist/*.whl
	cd dist/.light && bin/python -c 'import sourcewise; print(sourcewise.__version__)'
	$(PYTHON) -m venv dist/.whole
	wheel=$$(ls dist/*.whl) && \
	  dist/.whole/bin/python -m pip install --quiet --disable-pip-version-check "$$wheel[cli]"
	cd dist/.whole && bin/sourcewise demo
	rm -rf dist/.light dist/.whole

lint: .venv/.dev-ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python tests/budget.py

bench: .venv/.dev-ready
	mkdir -p bench-results
	$(BIN)/python -m benchmarks.weights --json bench-results/weights.json
	$(BIN)/python -m benchmarks.training --exactness --json bench-results/training.json
	$(BIN)/python -m benchmarks.baselines --json bench-results/baselines.json
	$(BIN)/python -m benchmarks.add_source --json bench-results/add_source.json
	$(BIN)/python -m benchmarks.growth --json bench-results/growth.json

clean:
	rm -rf .venv .venv-oldest dist docs/_build docs/api docs/gallery .pytest_cache .mypy_cache .ruff_cache .coverage
