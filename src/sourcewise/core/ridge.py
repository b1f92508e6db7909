"""The default regressor: ridge regression from moments, many weightings at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from sourcewise.core.choices import DEFAULT
from sourcewise.core.data import FloatArray, IntArray
from sourcewise.core.family import SharedRows, SourceRuns, WeightedProblems
from sourcewise.core.logistic import MANY_FEATURES, solve_with_ridge
from sourcewise.core.row_space import RowSpace
from sourcewise.core.source_curvature import row_moments

MOMENT_ENTRIES = 16_000_000  # of the moments that are asked of the sources at a time


@dataclass(frozen=True)
class RidgeFamily:
    """Ridge regression; the last column of ``X`` is the constant, hardly penalised.

    A model minimises ``sum_j r_j (x_j'w - y_j)^2 + |w|^2 / C``.
    """

    linear: ClassVar[bool] = True
    names_only: ClassVar[bool] = False

    settings: FloatArray
    intercept_penalty: float = DEFAULT.ridge_intercept_penalty

    def _penalty(self, n_features: int) -> FloatArray:
        penalty = np.ones(n_features)
        penalty[-1] = self.intercept_penalty
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
        self, runs: SourceRuns, fold: IntArray, n_folds: IntArray, setting: float
    ) -> FloatArray:
        """Fit from the moments of each fold: a model's are those of the other folds."""
        parts = []
        for s in np.flatnonzero(n_folds):
            rows = runs.rows(s)
            space = RowSpace.of(runs.X[rows])
            Z, weighted = space.X, space.X * runs.weights[rows, None]
            members = [fold[rows] == f for f in range(n_folds[s])]
            grams = np.stack([Z[m].T @ weighted[m] for m in members])
            moments = np.stack([runs.y[rows][m] @ weighted[m] for m in members])
            settings = np.full(n_folds[s], setting)
            models = self._solve(grams.sum(axis=0) - grams, moments.sum(axis=0) - moments, settings)
            parts.append(space.back(models))
        return np.concatenate(parts)

    def fit_beside(self, shared: SharedRows, runs: SourceRuns, setting: float) -> FloatArray:
        """Fit each source together with the shared rows, as `fit` does with one of them."""
        settings = np.full(shared.weights.shape[1], setting)
        return np.concatenate(
            [self.fit(*shared.join(runs, s), settings) for s in range(len(runs.counts))]
        )

    def fit_grid(
        self,
        problems: WeightedProblems,
        settings: FloatArray,
        start: FloatArray | None = None,
        on_fit: Callable[[int], None] | None = None,
    ) -> FloatArray:
        """Fit all problems under all settings, from weighted sums of the sources' moments."""
        problems, space = problems.in_row_space()
        reference = problems.reference
        d = reference.X.shape[1]
        shares = problems.reference_shares
        sums = problems.sources.weighted(problems.weights)
        own = {
            int(f): row_moments(reference.X, reference.y, shares[f + 1])
            for f in np.unique(problems.fold)
        }
        models = np.empty((len(problems), len(settings), 1, d))
        width = max(1, MOMENT_ENTRIES // d**2)
        for low in range(0, len(problems), width):
            some = np.arange(low, min(low + width, len(problems)))
            for p, gram, cross in zip(some, *sums.moments(some), strict=True):
                own_gram, own_cross = own[int(problems.fold[p])]
                share, total = problems.reference_weights[p], problems.totals[p]
                models[p] = self._solve(
                    np.broadcast_to(total * (gram + share * own_gram), (len(settings), d, d)),
                    np.broadcast_to(total * (cross + share * own_cross), (len(settings), d)),
                    settings,
                )
                if on_fit is not None:
                    on_fit(len(settings))
        return space.back(models.reshape(-1, 1, d))
