"""What a column of running numbers costs, by where features are cut off.

``python -m benchmarks.running_number`` draws twelve normal features and a number: every source
begins a million higher than the one before (80 trusted rows, eight sources of 100, four of them
with shuffled labels). It prints the mean error on 2,000 rows whose numbers lie among the trusted
ones', follow the last source's, or have got to a billion by then. Plus-minus is one standard error
over the draws.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Collection
from dataclasses import replace
from unittest import mock

import numpy as np
from joblib import Parallel, delayed

from sourcewise import SourceWeightedClassifier
from sourcewise.core.choices import DEFAULT

TRUSTED, SOURCES, ROWS, BAD, TEST = 80, 8, 100, 4, 2000
GOLD = "gold"
NUMBERED = ("as trusted", "going on", "a billion")
STEP = 1_000_000  # from where one source begins to where the next one does
FORMER_LIMIT = 1e6
CUT_OFF, IN_TRAINING_ONLY = "cut off at 100", "cut off at 100, in training only"
# Name: which rows, where lambda is fixed, where features are cut off.
METHODS = {
    "reference only": ("all", 0.0, DEFAULT.largest),
    "clean sources alone": ("clean", np.inf, DEFAULT.largest),
    CUT_OFF: ("all", "cv", DEFAULT.largest),
    "cut off at a million": ("all", "cv", FORMER_LIMIT),
}


def draw_rows(rng: np.random.Generator, n_rows: int, direction: np.ndarray) -> tuple:
    """Features and labels of rows that are not numbered yet."""
    X = rng.normal(size=(n_rows, len(direction)))
    return X, (X @ direction + 0.5 * rng.normal(size=n_rows) > 0).astype(int)


def one_draw(seed: int, methods: Collection[str] = tuple(METHODS)) -> dict[str, list[float]]:
    """Errors by how the test rows are numbered, and the fit's processor time, of every method."""
    rng = np.random.default_rng(seed)
    direction = rng.normal(size=12)
    direction /= np.linalg.norm(direction)
    names = [f"source-{k}" for k in range(SOURCES)]
    sources = np.repeat([GOLD, *names], [TRUSTED] + [ROWS] * SOURCES)
    X, y = draw_rows(rng, len(sources), direction)
    for name in names[:BAD]:
        y[sources == name] = rng.permutation(y[sources == name])
    begins = STEP * np.repeat(np.arange(SOURCES + 1), [TRUSTED] + [ROWS] * SOURCES)
    X = np.column_stack([begins + np.arange(len(X)), X])
    X_test, y_test = draw_rows(rng, TEST, direction)
    numbers = (
        rng.integers(0, TRUSTED, TEST),
        X[-1, 0] + 1 + np.arange(TEST),
        1_000 * STEP + np.arange(TEST),
    )
    tests = [np.column_stack([number, X_test]) for number in numbers]
    clean = ~np.isin(sources, names[:BAD])
    found = {}
    for method in methods:
        which, trade_off, limit = METHODS[method]
        rows = clean if which == "clean" else np.ones_like(clean)
        model = SourceWeightedClassifier(reference=GOLD, trade_off=trade_off, random_state=seed)
        changed = replace(DEFAULT, largest=limit)
        with mock.patch("sourcewise.core.choices.DEFAULT", changed):
            start = time.process_time()
            model.fit(X[rows], y[rows], sources=sources[rows])
            seconds = time.process_time() - start
        found[method] = [np.mean(model.predict(test) != y_test) for test in tests] + [seconds]
        if method == CUT_OFF:
            scores = [test @ model.coef_[0] + model.intercept_[0] for test in tests]
            found[IN_TRAINING_ONLY] = [np.mean((score > 0) != y_test) for score in scores]
            found[IN_TRAINING_ONLY].append(seconds)
    return found


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    if options.draws < 2 or options.jobs < 1:
        parser.error("--draws is at least 2, --jobs at least 1.")
    draws = Parallel(n_jobs=options.jobs)(delayed(one_draw)(s) for s in range(options.draws))
    print(f"{'':<33}", *(f"{name:>13}" for name in NUMBERED), f"{'CPU s':>6}")
    for method in draws[0]:
        values = np.array([found[method] for found in draws])
        means, errors = values.mean(axis=0), values.std(axis=0, ddof=1) / np.sqrt(len(values))
        cells = [f"{f'{means[k]:.3f} ± {errors[k]:.3f}':>13}" for k in range(len(NUMBERED))]
        print(f"{method:<33}", *cells, f"{means[-1]:>6.1f}")


if __name__ == "__main__":
    main()
