"""Local models: one logistic regression for each source, from its own rows alone."""

from __future__ import annotations

from typing import Any

import numpy as np

from sourcewise.core.choices import DEFAULT
from sourcewise.core.data import SourceData
from sourcewise.core.family import SourceRuns
from sourcewise.core.folds import named_seed, stratified_folds
from sourcewise.core.logistic import n_outputs
from sourcewise.core.newton import newton_logistic
from sourcewise.core.sparse_rows import SparseRows, column_extremes
from sourcewise.core.sparse_span import MOST_ROWS
from sourcewise.estimators.pool import Pool

NEWTON_TOL = 1e-10


def fit_local_models(pool: Pool, C: float) -> np.ndarray:
    """Fit a model to each source, (n_sources, n_outputs, n_mapped_features)."""
    data = pool.data
    models = _fit(pool, C, slice(None), data.row_counts)
    constants = _constant_models(data)
    for i, label in _single_classes(data):
        models[i] = constants[label]
    return models


def fit_half_models(pool: Pool, C: float) -> tuple[np.ndarray, np.ndarray]:
    """Fit two models to each source, and split its rows into halves evenly by class.

    Model ``k`` of (n_sources, 2, n_outputs, n_mapped_features) has not seen half ``k``.
    """
    data = pool.data
    half = np.empty(len(data.y), dtype=np.intp)
    for name, rows in zip(pool.names, data.slices(), strict=True):
        rng = np.random.default_rng(named_seed(pool.seed, name))
        half[rows] = stratified_folds(data.y[rows], rows.stop - rows.start, 2, rng)
    run = 2 * data.source_of_row + half
    counts = np.bincount(run, minlength=2 * data.n_sources)
    models = _fit(pool, C, np.argsort(run, kind="stable"), counts)
    models = models.reshape(data.n_sources, 2, *models.shape[1:])[:, ::-1].copy()
    constants = _constant_models(data)
    for i, label in _single_classes(data):
        models[i] = constants[label]
    return models, half


def _fit(pool: Pool, C: float, order: np.ndarray | slice, counts: np.ndarray) -> np.ndarray:
    """Fit runs of so many rows, taken in some order; a run without rows has the zero model."""
    data = pool.data
    row_weights = np.repeat(data.sizes, data.row_counts) * data.row_shares
    d = data.X.shape[1]
    models = np.zeros((len(counts), n_outputs(data.n_classes), d))
    some = counts > 0
    few = not isinstance(data.X, SparseRows) or counts.max() <= MOST_ROWS
    if data.n_classes <= 2 and few:
        penalty = constant_penalty(d, penalise=pool.choices.as_given)
        stop = np.cumsum(counts)
        positions = np.arange(len(data.y))[order]
        for s in np.flatnonzero(some):
            rows = positions[stop[s] - counts[s] : stop[s]]
            models[s] = newton_logistic(
                data.X[rows],
                data.y[rows],
                row_weights[None, rows],
                np.array([C]),
                penalty=penalty,
                tol=NEWTON_TOL,
            )[0]
        return models
    models[some] = pool.family.fit_folds(
        SourceRuns(data.X[order], data.y[order], row_weights[order], counts[some]),
        np.full(len(data.y), -1),  # nothing is left out
        np.ones(int(some.sum()), dtype=np.intp),
        C,
    )
    return models


def _single_classes(data: SourceData) -> list[tuple[int, int]]:
    """Find the sources that show one class only, and which."""
    low = np.minimum.reduceat(data.y, data.starts[:-1])
    high = np.maximum.reduceat(data.y, data.starts[:-1])
    return [(int(i), int(low[i])) for i in np.flatnonzero(low == high)]


def _constant_models(data: SourceData) -> np.ndarray:
    """Model of a source that shows one class only: log-odds 1 for it whatever the features.

    This is the authors' choice, ``w = (0, ..., +-1)`` with the constant last; a regularised
    regression would drive the constant as far as its penalty allows.
    """
    k = n_outputs(data.n_classes)
    models = np.zeros((data.n_classes, k, data.X.shape[1]))
    column, value = _constant_column(data.X)
    unit = 1.0 / value
    if k == 1:
        models[0, 0, column], models[1, 0, column] = -unit, unit
        return models
    for label in range(k):
        models[label, :, column] = -unit / k
        models[label, label, column] += unit
    return models


def _constant_column(X: Any) -> tuple[int, float]:
    """Find the last column that is the same in all rows: ours, or the user's own instead."""
    if not isinstance(X, SparseRows):
        column = int(np.flatnonzero((X[:1] == X).all(axis=0) & (X[0] != 0))[-1])
        return column, float(X[0, column])
    if (X.last == X.last[0]).all() and X.last[0] != 0.0:
        return X.shape[1] - 1, float(X.last[0])
    low, high = column_extremes(X.features)  # given as they are: nothing is taken from any
    column = int(np.flatnonzero((low == high) & (low != 0.0))[-1])
    return column, float(low[column])


def constant_penalty(n_features: int, *, penalise: bool) -> np.ndarray:
    """Relative penalty of each mapped feature; the constant comes last."""
    penalty = np.ones(n_features)
    if not penalise:
        penalty[-1] = DEFAULT.intercept_penalty
    return penalty
