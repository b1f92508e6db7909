"""Synthetic pools in the shapes of the paper's two studies, and the unit that costs are told in."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegressionCV

from sourcewise import ReferenceKFold

# sources, rows each, columns with the constant one, sources with shuffled labels
SHAPES = {
    "animals 60 x 500 x 101": (60, 500, 101, 20),
    "products 11 x 100 x 26": (11, 100, 26, 4),
    "products 957 x 100 x 26": (957, 100, 26, 300),
}


def make_pool(
    n_sources: int, rows: int, columns: int, n_bad: int, *, seed: int = 0, dtype: Any = np.float64
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features with the decaying spectrum of embeddings, noisy labels, some of them shuffled.

    The last column is constant. Source 0 is the reference.
    """
    rng = np.random.default_rng(seed)
    n, d = n_sources * rows, columns - 1
    spectrum = np.arange(1, d + 1) ** -0.75
    X = np.empty((n, columns), dtype=dtype)
    X[:, :d] = rng.normal(size=(n, d)) * spectrum
    X[:, d] = 1.0
    score = X[:, :d] @ (rng.normal(size=d) / spectrum**0.5)
    y = (score / score.std() + 0.5 * rng.logistic(size=n) > 0).astype(np.intp)
    sources = np.repeat(np.arange(n_sources), rows)
    for bad in range(1, n_bad + 1):
        mine = sources == bad
        y[mine] = rng.permutation(y[mine])
    return X, y, sources


def cpu_seconds(call: Callable[[], Any]) -> float:
    """CPU time of one call, all threads of this process."""
    start = time.process_time()
    call()
    return time.process_time() - start


def unit(X: np.ndarray, y: np.ndarray, sources: np.ndarray) -> float:
    """CPU seconds of the unit U: one `LogisticRegressionCV` on the same arrays.

    Ten values of C, five folds that hold out reference rows only, default solver and tolerance.
    """
    folds = list(ReferenceKFold(5, reference=0).split(X, y, sources=sources))
    model = LogisticRegressionCV(Cs=np.logspace(-4, 4, 10), cv=folds, fit_intercept=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", FutureWarning)
        return cpu_seconds(lambda: model.fit(X, y))
