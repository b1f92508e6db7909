"""The default learners: regularised logistic regression and ridge, a whole grid at a time.

A *family* is what the discrepancies and the choice of the trade-off need of a learner: fit many
row weightings of some rows, predict with all of them. Families for arbitrary estimators live
outside the core and offer the same two calls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from sourcewise.core.curvature import Pilots
from sourcewise.core.data import FloatArray, IntArray, SourceData
from sourcewise.core.logistic import (
    MANY_FEATURES,
    fit_logistic,
    n_outputs,
    probabilities,
    solve_with_ridge,
)
from sourcewise.core.logistic_grid import solve_grid
from sourcewise.core.row_space import RowSpace
from sourcewise.core.source_gradients import GridProblem
from sourcewise.core.stacked import fit_logistic_stacked

LOCAL_TOL = 1e-7  # of local models: far below the noise of a few hundred rows
STACK_ELEMENTS = 1_000_000  # features stacked at a time
MAX_COLUMNS = 4096  # scores a row gets at a time, over all models of a batch
# A free intercept would run off to infinity on a source with one class; this holds it without
# being felt elsewhere.
INTERCEPT_PENALTY = 1e-3


class Family(Protocol):
    """A learner with a grid of settings, fitted to many weightings at once."""

    settings: FloatArray

    def fit(self, X: FloatArray, y: Any, row_weights: FloatArray, settings: FloatArray) -> Any:
        """Fit one model for each column of ``row_weights`` (n_rows, n_models)."""

    def fit_folds(
        self,
        X: FloatArray,
        y: Any,
        row_weights: FloatArray,
        starts: IntArray,
        counts: IntArray,
        fold: IntArray,
        n_folds: IntArray,
        setting: float,
    ) -> Any:
        """Fit, for runs of rows, one model without each fold; models in (run, fold) order.

        Run ``s`` has ``counts[s]`` rows from ``starts[s]`` on and ``n_folds[s]`` folds.
        """

    def fit_grid(self, problems: WeightedProblems, settings: FloatArray, start: Any = None) -> Any:
        """Fit every weighting under every setting; models in (weighting, setting) order.

        ``start`` is a batch of one model near the solutions, if one is known.
        """

    def predict(self, models: Any, X: FloatArray) -> FloatArray:
        """Return probabilities (n_models, n_rows, n_classes) or predictions (n_models, n_rows)."""

    def predict_each(self, models: Any, which: IntArray, X: FloatArray) -> FloatArray:
        """Predict row ``j`` by model ``which[j]``: (n_rows, n_classes) or (n_rows,)."""


@dataclass(frozen=True)
class WeightedProblems:
    """Many weightings of one pool of sources.

    Attributes
    ----------
    data : SourceData
    weights : array of shape (n_problems, n_sources)
        Source weights ``alpha``.
    totals : array of shape (n_problems,)
        What the row weights sum to: the number of rows that ``C`` is to be understood against.
    held_out : bool array of shape (n_folds, n_reference_rows)
        Reference rows that a problem may leave out.
    fold : int array of shape (n_problems,)
        Row of ``held_out``, or -1 for none.
    """

    data: SourceData
    weights: FloatArray
    totals: FloatArray
    held_out: np.ndarray[Any, np.dtype[np.bool_]]
    fold: IntArray

    @property
    def reference_shares(self) -> FloatArray:
        """Shares of the reference's rows: all of them, then without each held-out set."""
        shares = self.data.row_shares[self.data.rows(self.data.reference)]
        return np.stack([shares, *(kept_shares(shares, mask) for mask in self.held_out)])

    def row_weights(self, problem: int) -> FloatArray:
        """Weights of all rows in one problem: ``total * alpha_i * share_j``."""
        data = self.data
        shares = data.row_shares
        if self.fold[problem] >= 0:
            shares = shares.copy()
            shares[data.rows(data.reference)] = kept_shares(
                shares[data.rows(data.reference)], self.held_out[self.fold[problem]]
            )
        per_source = self.totals[problem] * self.weights[problem]
        return np.asarray(np.repeat(per_source, data.row_counts) * shares)


def kept_shares(shares: FloatArray, held_out: np.ndarray[Any, np.dtype[np.bool_]]) -> FloatArray:
    """Shares of one source's rows after some are left out; they still sum to 1."""
    kept = np.where(held_out, 0.0, shares)
    return np.asarray(kept / kept.sum())


@dataclass(frozen=True)
class LogisticFamily:
    """L2-regularised logistic regression; the last column of ``X`` is the constant.

    Attributes
    ----------
    n_classes : int
    settings : array
        Values of ``C``, as in scikit-learn.
    penalise_constant : bool
        Whether the constant's coefficient is penalised like the others.
    tol : float
    """

    n_classes: int
    settings: FloatArray
    penalise_constant: bool = False
    tol: float = 1e-8

    def _penalty(self, n_features: int) -> FloatArray:
        penalty = np.ones(n_features)
        if not self.penalise_constant:
            penalty[-1] = INTERCEPT_PENALTY
        return penalty

    def fit(
        self, X: FloatArray, y: IntArray, row_weights: FloatArray, settings: FloatArray
    ) -> FloatArray:
        """Coefficients of shape (n_models, n_outputs, n_features)."""
        space = RowSpace.of(X)
        return space.back(
            fit_logistic(
                space.X,
                y,
                row_weights,
                settings,
                n_classes=self.n_classes,
                penalty=self._penalty(space.X.shape[1]),
                tol=self.tol,
            )
        )

    def predict(self, models: FloatArray, X: FloatArray) -> FloatArray:
        """Probabilities of shape (n_models, n_rows, n_classes)."""
        n_models, outputs, d = models.shape
        scores = X @ models.reshape(-1, d).T
        return probabilities(scores.reshape(len(X), n_models, outputs).transpose(1, 0, 2))

    def predict_each(self, models: FloatArray, which: IntArray, X: FloatArray) -> FloatArray:
        """Probabilities of each row by its own model."""
        return probabilities(np.einsum("jod,jd->jo", models[which], X))

    def fit_folds(
        self,
        X: FloatArray,
        y: IntArray,
        row_weights: FloatArray,
        starts: IntArray,
        counts: IntArray,
        fold: IntArray,
        n_folds: IntArray,
        setting: float,
    ) -> FloatArray:
        """Fit runs of like size together where there are two classes, else one by one."""
        d = X.shape[1]
        first = np.concatenate([[0], np.cumsum(n_folds)])
        models = np.empty((first[-1], n_outputs(self.n_classes), d), dtype=X.dtype)
        if self.n_classes > 2:
            for s in np.flatnonzero(n_folds):
                rows = slice(starts[s], starts[s] + counts[s])
                left_out = fold[rows, None] == np.arange(n_folds[s])
                models[first[s] : first[s + 1]] = self.fit(
                    X[rows],
                    y[rows],
                    np.where(left_out, 0.0, row_weights[rows, None]),
                    np.full(n_folds[s], setting),
                )
            return models
        for runs in like_runs(counts, n_folds, d):
            k = n_folds[runs[0]]
            # Shorter runs are filled up with rows of weight zero.
            position = np.arange(counts[runs].max())
            inside = position < counts[runs, None]
            taken = starts[runs, None] + np.minimum(position, counts[runs, None] - 1)
            weights = np.where(inside, row_weights[taken], 0.0)[:, :, None]
            weights = np.where(fold[taken][:, :, None] == np.arange(k), 0.0, weights)
            space = RowSpace.of(X[taken])
            fitted = fit_logistic_stacked(
                space.X,
                y[taken],
                weights,
                C=setting,
                penalty=self._penalty(space.X.shape[2]),
                tol=max(self.tol, LOCAL_TOL),
            )
            models[(first[runs, None] + np.arange(k)).ravel(), 0] = space.back(fitted).reshape(
                -1, d
            )
        return models

    def fit_grid(
        self,
        problems: WeightedProblems,
        settings: FloatArray,
        start: FloatArray | None = None,
        on_fit: Callable[[int], None] | None = None,
        pilots: Pilots | None = None,
    ) -> FloatArray:
        """Fit all problems under all settings in batches of columns."""
        n_settings = len(settings)
        space = RowSpace.of(problems.data.X)
        data = problems.data.with_features(space.X)
        width = max(1, MAX_COLUMNS // (n_settings * n_outputs(self.n_classes)))
        # Problems of neighbouring weights start from each other, so they must share a batch.
        order = np.lexsort((problems.fold, problems.weights[:, problems.data.reference]))
        parts = []
        for low in range(0, len(order), width):
            chosen = order[low : low + width]
            scaled = problems.weights[chosen] * problems.totals[chosen, None]
            parts.append(
                solve_grid(
                    GridProblem(
                        data=data,
                        weights=np.repeat(scaled, n_settings, axis=0).T,
                        C=np.tile(settings, len(chosen)),
                        fold=np.repeat(problems.fold[chosen] + 1, n_settings),
                        reference_shares=problems.reference_shares,
                        penalty=self._penalty(data.X.shape[1]),
                    ),
                    # What is fitted from nearby is the final model: its digits will be looked at.
                    tol=self.tol if start is None else 1e-3 * self.tol,
                    start=None if start is None else space.into(start[0]),
                    pilots=pilots,
                    on_stop=on_fit,
                )
            )
        models = np.concatenate(parts).reshape(len(order), n_settings, *parts[0].shape[1:])
        return space.back(models[np.argsort(order)].reshape(-1, *parts[0].shape[1:]))


def like_runs(counts: IntArray, n_folds: IntArray, n_features: int) -> list[IntArray]:
    """Group runs of rows of the same number of folds and about the same length."""
    groups: list[IntArray] = []
    order = np.lexsort((counts, n_folds))
    order = order[n_folds[order] > 0]
    begin = 0
    for end in range(1, len(order) + 1):
        shortest = counts[order[begin]]
        whole = (
            end == len(order)
            or n_folds[order[end]] != n_folds[order[begin]]
            or counts[order[end]] > 1.25 * shortest
            or (end - begin + 1) * counts[order[end]] * n_features > STACK_ELEMENTS
        )
        if whole:
            groups.append(order[begin:end])
            begin = end
    return groups


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
