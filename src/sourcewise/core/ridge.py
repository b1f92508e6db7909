"""The default regressor: ridge regression from moments, many weightings at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from sourcewise.core.data import FloatArray, IntArray
from sourcewise.core.family import WeightedProblems, join_rows, kept_shares
from sourcewise.core.logistic import MANY_FEATURES, solve_with_ridge
from sourcewise.core.row_space import RowSpace


@dataclass(frozen=True)
class RidgeFamily:
    """Ridge regression; the last column of ``X`` is the constant, which is not penalised.

    A model minimises ``sum_j r_j (x_j'w - y_j)^2 + |w|^2 / C``.
    """

    settings: FloatArray

    def _penalty(self, n_features: int) -> FloatArray:
        penalty = np.ones(n_features)
        penalty[-1] = 1e-8
        return penalty

    def fit(
        self, X: FloatArray, y: FloatArray, row_weights: FloatArray, settings: FloatArray
    ) -> FloatArray:
        """Coefficients of shape (n_models, 1, n_features)."""
        space = RowSpace.of(X)
        X = space.X
        columns, which = np.unique(row_weights, axis=1, return_inverse=True)
        grams = np.stack([X.T @ (X * r[:, None]) for r in columns.T])
        moments = (columns * y[:, None]).T @ X
        which = which.ravel()
        return space.back(self._solve(grams[which], moments[which], settings))

    def _solve(self, grams: FloatArray, moments: FloatArray, settings: FloatArray) -> FloatArray:
        d = moments.shape[1]
        if d > MANY_FEATURES:  # half the work, and one system at a time
            ridge = self._penalty(d) / settings[:, None]
            return np.stack(
                [solve_with_ridge(G, q, b) for G, q, b in zip(grams, ridge, moments, strict=True)]
            )[:, None, :]
        system = grams + np.eye(d) * (self._penalty(d) / settings[:, None])[:, None, :]
        return np.linalg.solve(system, moments[:, :, None]).transpose(0, 2, 1)

    def predict(self, models: FloatArray, X: FloatArray) -> FloatArray:
        """Predictions of shape (n_models, n_rows)."""
        return np.asarray(models[:, 0] @ X.T)

    def predict_each(self, models: FloatArray, which: IntArray, X: FloatArray) -> FloatArray:
        """Prediction of each row by its own model."""
        return np.asarray(np.einsum("jd,jd->j", models[which, 0], X))

    def fit_folds(
        self,
        X: FloatArray,
        y: FloatArray,
        row_weights: FloatArray,
        starts: IntArray,
        counts: IntArray,
        fold: IntArray,
        n_folds: IntArray,
        setting: float,
    ) -> FloatArray:
        """Fit from the moments of each fold: a model's are those of the other folds."""
        parts = []
        for s in np.flatnonzero(n_folds):
            rows = slice(starts[s], starts[s] + counts[s])
            space = RowSpace.of(X[rows])
            Z, weighted = space.X, space.X * row_weights[rows, None]
            members = [fold[rows] == f for f in range(n_folds[s])]
            grams = np.stack([Z[m].T @ weighted[m] for m in members])
            moments = np.stack([y[rows][m] @ weighted[m] for m in members])
            settings = np.full(n_folds[s], setting)
            models = self._solve(grams.sum(axis=0) - grams, moments.sum(axis=0) - moments, settings)
            parts.append(space.back(models))
        return np.concatenate(parts)

    def fit_beside(
        self,
        shared: tuple[FloatArray, FloatArray],
        shared_weights: FloatArray,
        alone: FloatArray,
        X: FloatArray,
        y: FloatArray,
        row_weights: FloatArray,
        starts: IntArray,
        counts: IntArray,
        setting: float,
    ) -> FloatArray:
        """Fit each run together with the shared rows, as `fit` does with one of them."""
        settings = np.full(shared_weights.shape[1], setting)
        parts = []
        for start, count in zip(starts, counts, strict=True):
            rows = slice(start, start + count)
            own = X[rows], y[rows], row_weights[rows]
            parts.append(self.fit(*join_rows(shared, shared_weights, *own), settings))
        return np.concatenate(parts)

    def fit_grid(
        self,
        problems: WeightedProblems,
        settings: FloatArray,
        start: FloatArray | None = None,
        on_fit: Callable[[int], None] | None = None,
    ) -> FloatArray:
        """Fit all problems under all settings, from Gram matrices."""
        space = RowSpace.of(problems.data.X)
        problems = replace(problems, data=problems.data.with_features(space.X))
        data = problems.data
        d = data.X.shape[1]
        # Sources of fewer rows than features are smaller than their Gram matrices.
        by_source = d <= MANY_FEATURES or len(data.X) > data.n_sources * d
        weighted_moments = _moments_by_source(problems) if by_source else _moments_by_row(problems)
        models = np.empty((len(problems.weights), len(settings), 1, d))
        for p, (G, b) in enumerate(weighted_moments):
            models[p] = self._solve(
                np.broadcast_to(G, (len(settings), d, d)),
                np.broadcast_to(b, (len(settings), d)),
                settings,
            )
            if on_fit is not None:
                on_fit(len(settings))
        return space.back(models.reshape(-1, 1, d))


def _moments_by_source(problems: WeightedProblems) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Yield every problem's Gram matrix and moments, from those of each source: one pass."""
    data = problems.data
    d = data.X.shape[1]
    grams = np.empty((data.n_sources, d, d))
    moments = np.empty((data.n_sources, d))
    for i, rows in enumerate(data.slices()):
        weighted = data.X[rows] * data.row_shares[rows, None]
        grams[i] = data.X[rows].T @ weighted
        moments[i] = data.y[rows] @ weighted
    trusted = data.rows(data.reference)
    X_t, y_t, shares = data.X[trusted], data.y[trusted], data.row_shares[trusted]
    fold_moments = {}
    for f in np.unique(problems.fold[problems.fold >= 0]):
        weighted = X_t * kept_shares(shares, problems.held_out[f])[:, None]
        fold_moments[int(f)] = (X_t.T @ weighted, y_t @ weighted)
    for p, (alpha, f) in enumerate(zip(problems.weights, problems.fold, strict=True)):
        G, b = np.tensordot(alpha, grams, axes=1), alpha @ moments
        if f >= 0:
            G_f, b_f = fold_moments[int(f)]
            G = G + alpha[data.reference] * (G_f - grams[data.reference])
            b = b + alpha[data.reference] * (b_f - moments[data.reference])
        yield problems.totals[p] * G, problems.totals[p] * b


def _moments_by_row(problems: WeightedProblems) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Yield the same from the rows themselves."""
    data = problems.data
    for p in range(len(problems.weights)):
        weight = problems.row_weights(p)
        used = np.flatnonzero(weight)
        weighted = data.X[used] * weight[used, None]
        yield data.X[used].T @ weighted, data.y[used] @ weighted
