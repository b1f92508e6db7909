"""The default regressor: ridge regression from moments, many weightings at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from sourcewise.core.choices import DEFAULT
from sourcewise.core.data import FloatArray, IntArray
from sourcewise.core.family import SharedRows, SourceRuns, Visit, WeightedProblems, all_pairs
from sourcewise.core.linear_grid import fit_weighted
from sourcewise.core.logistic import MANY_FEATURES, scores_each, solve_with_ridge
from sourcewise.core.loss import Squared
from sourcewise.core.row_space import RowSpace
from sourcewise.core.source_curvature import row_moments
from sourcewise.core.sparse_fits import fit_sparse_rows
from sourcewise.core.sparse_rows import SparseRows, stack_rows
from sourcewise.core.sparse_span import MOST_ROWS

MANY_MOMENTS = 400  # coordinates beyond which gradients cost less than solving systems
# Predicted relative decrease at which fits by gradients stop: of many that are compared, and of few
# whose digits will be looked at.
WIDE_TOL = 1e-7
WIDE_FINAL_TOL = 1e-14
SPARSE_TOL = 1e-10  # of models of many sparse rows, which are fitted stepwise
LEAST_LEFT = 1e-9  # of 1 minus a row's leverage; below, the identity loses too many digits
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
        if isinstance(X, SparseRows) and len(X) > MOST_ROWS:
            return self._fit_many_sparse(X, y, row_weights, settings)
        space = RowSpace.of(X)
        X = space.X
        columns, which = np.unique(row_weights, axis=1, return_inverse=True)
        grams = np.stack([X.T @ (X * r[:, None]) for r in columns.T])
        moments = (columns * y[:, None]).T @ X
        which = which.ravel()
        return space.back(self._solve(grams[which], moments[which], settings))

    def _fit_many_sparse(
        self,
        X: SparseRows,
        y: FloatArray,
        row_weights: FloatArray,
        settings: FloatArray,
        start: FloatArray | None = None,
    ) -> FloatArray:
        loss, penalty = Squared(), self._penalty(X.shape[1])
        return fit_sparse_rows(
            X, y, row_weights, settings, loss=loss, penalty=penalty, tol=SPARSE_TOL, start=start
        )

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
        return self.from_scores(self.scores(models, X))

    def scores(self, models: FloatArray, X: FloatArray) -> FloatArray:
        """Predictions of shape (n_models, n_rows, 1)."""
        return np.asarray((X @ models[:, 0].T).T[:, :, None])

    def from_scores(self, scores: FloatArray) -> FloatArray:
        """Predictions from scores: the same."""
        return scores[:, :, 0]

    def predict_each(self, models: FloatArray, which: IntArray, X: FloatArray) -> FloatArray:
        """Prediction of each row by its own model."""
        return scores_each(models, which, X)[:, 0]

    def fit_folds(
        self, runs: SourceRuns, fold: IntArray, n_folds: IntArray, setting: float
    ) -> FloatArray:
        """Fit from one factorisation of a source's rows, or from the moments of each fold."""
        parts = []
        for s in np.flatnonzero(n_folds):
            rows = runs.rows(s)
            if isinstance(runs.X, SparseRows) and runs.counts[s] > MOST_ROWS:
                left_out = fold[rows, None] == np.arange(n_folds[s])
                weights = np.where(left_out, 0.0, runs.weights[rows, None])
                settings = np.full(n_folds[s], setting)
                parts.append(self._fit_many_sparse(runs.X[rows], runs.y[rows], weights, settings))
                continue
            space = RowSpace.of(runs.X[rows])
            Z, y, weights = space.X, runs.y[rows], runs.weights[rows]
            left_out = fold[rows] == np.arange(n_folds[s])[:, None]
            if pays(*Z.shape):
                models = self._without(Z, y, weights, left_out, setting)
            else:
                of_folds = [row_moments(Z[out], y[out], weights[out]) for out in left_out]
                grams, moments = (np.stack(part) for part in zip(*of_folds, strict=True))
                # A model's moments are those of the other folds.
                models = self._solve(
                    grams.sum(axis=0) - grams,
                    moments.sum(axis=0) - moments,
                    np.full(len(left_out), setting),
                )
            parts.append(space.back(models))
        return np.concatenate(parts)

    def _without(
        self,
        X: FloatArray,
        y: FloatArray,
        weights: FloatArray,
        left_out: NDArray[np.bool_],
        setting: float,
    ) -> FloatArray:
        """Models (n_groups, 1, n_features) without each group of the first rows."""
        models = ridge_without(X, y, weights, left_out, self._penalty(X.shape[1]) / setting)
        if models is not None:
            return models[:, None]
        row_weights = np.repeat(weights[:, None], len(left_out), axis=1)
        row_weights[: left_out.shape[1]][left_out.T] = 0.0
        return self.fit(X, y, row_weights, np.full(len(left_out), setting))

    def fit_beside(self, shared: SharedRows, runs: SourceRuns, setting: float) -> FloatArray:
        """Fit each source together with the shared rows.

        Weightings of these that leave some out, as folds do, share one factorisation if the shared
        rows are few. If they are many, their moments are what all sources share.
        """
        base = shared.weights.max(axis=1)
        left_out = (shared.weights != base[:, None]).T
        n_sources = len(runs.counts)
        settings = np.full(len(left_out), setting)
        if not pays(*shared.X.shape):
            of_shared = [row_moments(shared.X, shared.y, r) for r in shared.weights.T]
            grams, moments = (np.stack(part) for part in zip(*of_shared, strict=True))
            own = [row_moments(*runs.of(s)) for s in range(n_sources)]
            return np.concatenate([self._solve(grams + g, moments + b, settings) for g, b in own])
        if np.any(shared.weights[left_out.T] != 0.0):  # weightings that differ in another way
            return np.concatenate(
                [self.fit(*shared.join(runs, s), settings) for s in range(n_sources)]
            )
        parts = []
        for s in range(n_sources):
            X, y, weights = runs.of(s)
            if isinstance(X, SparseRows) and len(X) + len(shared.X) > MOST_ROWS:
                parts.append(self.fit(*shared.join(runs, s), settings))
                continue
            space = RowSpace.of(stack_rows([shared.X, X]))
            y, weights = np.concatenate([shared.y, y]), np.concatenate([base, weights])
            parts.append(space.back(self._without(space.X, y, weights, left_out, setting)))
        return np.concatenate(parts)

    def fit_grid(
        self,
        problems: WeightedProblems,
        settings: FloatArray,
        on_fit: Callable[[int], None] | None = None,
    ) -> FloatArray:
        """Fit all problems under all settings."""
        pairs = all_pairs(len(problems), settings)
        if _has_few_coordinates(problems):
            return self._from_moments(problems, *pairs, on_fit)
        return fit_weighted(problems, self._penalty, *pairs, tol=WIDE_TOL, on_stop=on_fit)

    def walk_grid(
        self,
        problems: WeightedProblems,
        settings: FloatArray,
        visit: Visit,
        on_fit: Callable[[int], None] | None = None,
    ) -> None:
        """Fit one setting after the other, the strongest first.

        With few features all settings cost little more than one, and nothing is given up.
        """
        if not _has_few_coordinates(problems):
            pairs = all_pairs(len(problems), settings)
            fit_weighted(problems, self._penalty, *pairs, tol=WIDE_TOL, visit=visit, on_stop=on_fit)
            return
        models = self.fit_grid(problems, settings, on_fit)
        by_setting = models.reshape(len(problems), len(settings), *models.shape[1:])
        for k in np.argsort(settings):
            visit(float(settings[k]), np.arange(len(problems)), by_setting[:, k])

    def fit_pairs(
        self,
        problems: WeightedProblems,
        which: IntArray,
        settings: FloatArray,
        start: FloatArray | None,
    ) -> FloatArray:
        """Fit some pairs of problem and setting, to the last digits."""
        if _has_few_coordinates(problems):
            return self._from_moments(problems, which, settings)
        tol = WIDE_FINAL_TOL
        return fit_weighted(problems, self._penalty, which, settings, tol=tol, start=start)

    def _from_moments(
        self,
        problems: WeightedProblems,
        which: IntArray,
        settings: FloatArray,
        on_fit: Callable[[int], None] | None = None,
    ) -> FloatArray:
        """Solve from weighted sums of the sources' moments."""
        problems, space = problems.in_row_space()
        reference = problems.reference
        d = reference.X.shape[1]
        shares = problems.reference_shares
        sums = problems.sources.weighted(problems.weights)
        own = {
            int(f): row_moments(reference.X, reference.y, shares[f + 1])
            for f in np.unique(problems.fold)
        }
        models = np.empty((len(which), 1, d))
        width = max(1, MOMENT_ENTRIES // d**2)
        for low in range(0, len(problems), width):
            some = np.arange(low, min(low + width, len(problems)))
            for p, gram, cross in zip(some, *sums.moments(some), strict=True):
                own_gram, own_cross = own[int(problems.fold[p])]
                share, total = problems.reference_weights[p], problems.totals[p]
                mine = np.flatnonzero(which == p)
                models[mine] = self._solve(
                    np.broadcast_to(total * (gram + share * own_gram), (len(mine), d, d)),
                    np.broadcast_to(total * (cross + share * own_cross), (len(mine), d)),
                    settings[mine],
                )
                if on_fit is not None:
                    on_fit(len(mine))
        return space.back(models)


def _has_few_coordinates(problems: WeightedProblems) -> bool:
    """Whether matrices of the size of the features, or of the rows, can be afforded."""
    n_trusted, d = problems.reference.X.shape
    return bool(min(d, n_trusted + int(problems.sources.row_counts.sum())) <= MANY_MOMENTS)


def pays(n_left_out: int, n_features: int) -> bool:
    """Whether rows that are ever left out are few enough beside the features."""
    return n_left_out <= 2 * n_features


def ridge_without(
    X: FloatArray,
    y: FloatArray,
    weights: FloatArray,
    left_out: NDArray[np.bool_],
    ridge: FloatArray,
) -> FloatArray | None:
    r"""Models without the rows of each group, from one factorisation of all rows.

    With :math:`A = Z^\top Z + Q` of all rows, scaled by the roots of their weights, and their model
    :math:`w`, the model without the rows :math:`S` is, by Woodbury's identity,

    .. math:: w_{-S} = w - A^{-1} Z_S^\top \big( I - Z_S A^{-1} Z_S^\top \big)^{-1} (u_S - Z_S w) ,

    with :math:`u` the scaled targets: a system of the size of :math:`S` instead of one of all
    features.

    Parameters
    ----------
    X : array of shape (n_rows, n_features)
    y : array of shape (n_rows,)
    weights : array of shape (n_rows,)
    left_out : bool array of shape (n_groups, n_some)
        Of the first ``n_some`` rows; the others are in every model.
    ridge : array of shape (n_features,)

    Returns
    -------
    coef : array of shape (n_groups, n_features), or None
        None where rounding would spoil it: a group that all but decides a coefficient.
    """
    root = np.sqrt(weights.astype(np.float64))
    Z, u = X * root[:, None], y * root
    A = Z.T @ Z
    A[np.diag_indices(len(ridge))] += ridge
    some = left_out.shape[1]
    try:
        factor = cho_factor(A, lower=True, overwrite_a=True, check_finite=False)
        solved = cho_solve(factor, np.column_stack([Z[:some].T, Z.T @ u]), check_finite=False)
        influence, w = solved[:, :some], solved[:, some]
        leverage = Z[:some] @ influence
        if some and np.diag(leverage).max() > 1.0 - LEAST_LEFT:
            return None
        missed = u[:some] - Z[:some] @ w
        models = np.empty((len(left_out), len(w)))
        for model, group in zip(models, left_out, strict=True):
            S = np.flatnonzero(group)
            left = np.eye(len(S)) - leverage[np.ix_(S, S)]
            part = cho_solve(cho_factor(left, lower=True, check_finite=False), missed[S])
            model[:] = w - influence[:, S] @ part
    except LinAlgError:
        return None
    return models
