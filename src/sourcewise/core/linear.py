"""The default classifier: regularised logistic regression, many weightings at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sourcewise.core.batched_logistic import fit_logistic_batch
from sourcewise.core.choices import DEFAULT
from sourcewise.core.data import FloatArray, IntArray
from sourcewise.core.family import SharedRows, SourceRuns, Visit, WeightedProblems, all_pairs
from sourcewise.core.fold_logistic import REFRESH_CLASSES, fit_logistic_folds
from sourcewise.core.linear_grid import fit_weighted
from sourcewise.core.logistic import n_outputs, probabilities, scores_each
from sourcewise.core.loss import Logistic
from sourcewise.core.row_space import RowSpace
from sourcewise.core.sparse_fits import fit_sparse_rows
from sourcewise.core.sparse_rows import SparseRows
from sourcewise.core.sparse_span import MOST_ROWS

ALONE = 1e-3  # of the tolerance, for models that stand alone
# Of models beside shared rows: their losses are averaged, not ranked. But rows of a small share
# change the objective by its square, and must not be lost in the tolerance.
JOINT_TOL = 1e-5
# Several classes: with more features than rows their folds stand far apart, and the decrease that
# the curvature of their mean predicts is too small.
JOINT_TOL_CLASSES = 1e-7  # single precision reaches it
JOINT_TOL_SPARSE = 1e-6  # likewise: two classes are fitted as several are
SMALL_SHARE = 0.05
LEAST_TOL = 1e-10
# From this tolerance on single precision does, which is twice as fast, unless features are of
# another order of magnitude than the reference's: those have a standard deviation of about 1.
SINGLE_TOL = 1e-6
SINGLE_LARGEST = 100.0
STEPWISE = 0.01  # times a tolerance where sparse rows are too many for exact curvature
STACK_ELEMENTS = 1_000_000  # features stacked at a time


@dataclass(frozen=True)
class LogisticFamily:
    """L2-regularised logistic regression; the last column of ``X`` is the constant."""

    linear: ClassVar[bool] = True
    names_only: ClassVar[bool] = False

    n_classes: int
    settings: FloatArray  # values of ``C``, as in scikit-learn
    # Whether the constant's coefficient is penalised like the others.
    penalise_constant: bool = False
    # Predicted relative decrease at which fits stop: in general, of many that are compared, and of
    # few whose digits will be looked at.
    tol: float = 1e-8
    grid_tol: float = 1e-8
    final_tol: float = 1e-10
    # No model of a source's own is fitted closer: far below the noise of a few hundred rows.
    local_tol: float = 1e-7
    # What the constant's coefficient is penalised by otherwise.
    intercept_penalty: float = DEFAULT.intercept_penalty

    def _penalty(self, n_features: int) -> FloatArray:
        penalty = np.ones(n_features)
        if not self.penalise_constant:
            penalty[-1] = self.intercept_penalty
        return penalty

    def fit(
        self, X: FloatArray, y: IntArray, row_weights: FloatArray, settings: FloatArray
    ) -> FloatArray:
        """Coefficients of shape (n_models, n_outputs, n_features)."""
        # Weightings have a start in common. What is left of it must not tell one of the rows that
        # it leaves out.
        return self._fit(X, y, row_weights, settings, ALONE * self.tol)

    def _fit(
        self,
        X: FloatArray,
        y: IntArray,
        row_weights: FloatArray,
        settings: FloatArray,
        tol: float,
    ) -> FloatArray:
        if isinstance(X, SparseRows) and len(X) > MOST_ROWS:
            return self._fit_many_sparse(X, y, row_weights, settings)
        space = RowSpace.of(X)
        return space.back(
            fit_logistic_folds(
                space.X,
                y,
                row_weights,
                settings,
                n_classes=self.n_classes,
                penalty=self._penalty(space.X.shape[1]),
                tol=tol,
                # Coordinates of sparse rows are as many as the rows: a matrix is dear.
                refresh=REFRESH_CLASSES if isinstance(X, SparseRows) else None,
            )
        )

    def _fit_many_sparse(
        self,
        X: SparseRows,
        y: IntArray,
        row_weights: FloatArray,
        settings: FloatArray,
        start: FloatArray | None = None,
    ) -> FloatArray:
        loss, penalty = Logistic(self.n_classes), self._penalty(X.shape[1])
        return fit_sparse_rows(
            X, y, row_weights, settings, loss=loss, penalty=penalty, tol=self.tol, start=start
        )

    def predict(self, models: FloatArray, X: FloatArray) -> FloatArray:
        """Probabilities of shape (n_models, n_rows, n_classes)."""
        return self.from_scores(self.scores(models, X))

    def scores(self, models: FloatArray, X: FloatArray) -> FloatArray:
        """Scores of shape (n_models, n_rows, n_outputs)."""
        n_models, outputs, d = models.shape
        scores = X @ models.reshape(-1, d).T
        return np.asarray(scores.reshape(len(X), n_models, outputs).transpose(1, 0, 2))

    def from_scores(self, scores: FloatArray) -> FloatArray:
        """Probabilities from scores."""
        return probabilities(scores)

    def predict_each(self, models: FloatArray, which: IntArray, X: FloatArray) -> FloatArray:
        """Probabilities of each row by its own model."""
        return probabilities(scores_each(models, which, X))

    def fit_folds(
        self, runs: SourceRuns, fold: IntArray, n_folds: IntArray, setting: float
    ) -> FloatArray:
        """Fit sources of like size together where there are two classes, else one by one."""
        if isinstance(runs.X, SparseRows):
            return self._fit_sparse_folds(runs, fold, n_folds, setting)
        d = runs.X.shape[1]
        first = np.concatenate([[0], np.cumsum(n_folds)])
        models = np.empty((first[-1], n_outputs(self.n_classes), d), dtype=runs.X.dtype)
        if self.n_classes > 2:
            for s in np.flatnonzero(n_folds):
                rows = runs.rows(s)
                left_out = fold[rows, None] == np.arange(n_folds[s])
                models[first[s] : first[s + 1]] = self._fit(
                    runs.X[rows],
                    runs.y[rows],
                    np.where(left_out, 0.0, runs.weights[rows, None]),
                    np.full(n_folds[s], setting),
                    max(self.tol, self.local_tol),
                )
            return models
        for some in like_runs(runs.counts, n_folds, d):
            k = n_folds[some[0]]
            taken, inside = _stack(runs.starts[some], runs.counts[some])
            weights = np.where(inside, runs.weights[taken], 0.0)[:, :, None]
            weights = np.where(fold[taken][:, :, None] == np.arange(k), 0.0, weights)
            tol = np.full(len(some), max(self.tol, self.local_tol))
            fitted = self._fit_stacked(runs.X[taken], runs.y[taken], weights, setting, tol)
            models[(first[some, None] + np.arange(k)).ravel(), 0] = fitted.reshape(-1, d)
        return models

    def fit_beside(self, shared: SharedRows, runs: SourceRuns, setting: float) -> FloatArray:
        """Fit sources of like size together where there are two classes, else one by one."""
        n_shared, n_models = shared.weights.shape
        d = runs.X.shape[1]
        own_total = np.add.reduceat(runs.weights, runs.starts)
        share = own_total / (own_total + shared.weights.sum(axis=0).max())
        sparse = isinstance(runs.X, SparseRows)
        whole = JOINT_TOL if self.n_classes <= 2 else JOINT_TOL_CLASSES
        if sparse:
            whole = min(whole, JOINT_TOL_SPARSE)
        tol = np.maximum(whole * np.minimum(share / SMALL_SHARE, 1.0) ** 2, LEAST_TOL)
        n_sources = len(runs.counts)
        models = np.empty((n_sources, n_models, n_outputs(self.n_classes), d), dtype=runs.X.dtype)
        if sparse:
            for s in range(n_sources):
                models[s] = self._fit_sparse(
                    *shared.join(runs, s), setting, float(tol[s]), start=shared.models
                )
            return models.reshape(-1, *models.shape[2:])
        # Each source by itself, so that nobody's precision depends on who is fitted beside it.
        largest = np.maximum.reduceat(np.abs(runs.X).max(axis=1), runs.starts)
        largest = np.maximum(largest, np.abs(shared.X).max())
        single = (tol >= min(SINGLE_TOL, whole)) & (largest <= SINGLE_LARGEST)
        if self.n_classes > 2:
            for s in range(n_sources):
                X, y, weights = shared.join(runs, s)
                models[s] = self._fit(
                    X.astype(np.float32 if single[s] else X.dtype, copy=False),
                    y,
                    weights,
                    np.full(n_models, setting),
                    float(tol[s]),
                )
            return models.reshape(-1, *models.shape[2:])
        for dtype, chosen in ((np.float32, single), (runs.X.dtype, ~single)):
            for some in like_runs(runs.counts + n_shared, n_models * chosen, d):
                taken, inside = _stack(runs.starts[some], runs.counts[some])
                weights = np.where(inside, runs.weights[taken], 0.0)[:, :, None]
                weights = np.broadcast_to(weights, (*inside.shape, n_models))
                models[some, :, 0] = self._fit_stacked(
                    np.concatenate([_for_each(shared.X, some), runs.X[taken]], axis=1, dtype=dtype),
                    np.concatenate([_for_each(shared.y, some), runs.y[taken]], axis=1),
                    np.concatenate([_for_each(shared.weights, some), weights], axis=1),
                    setting,
                    tol[some],
                    start=_for_each(shared.models[:, 0], some),
                )
        return models.reshape(-1, *models.shape[2:])

    def _fit_sparse_folds(
        self, runs: SourceRuns, fold: IntArray, n_folds: IntArray, setting: float
    ) -> FloatArray:
        """Fit one source after the other, each in the span of its own rows."""
        parts = []
        for s in np.flatnonzero(n_folds):
            rows = runs.rows(s)
            left_out = fold[rows, None] == np.arange(n_folds[s])
            weights = np.where(left_out, 0.0, runs.weights[rows, None])
            tol = max(self.tol, self.local_tol)
            parts.append(self._fit_sparse(runs.X[rows], runs.y[rows], weights, setting, tol))
        return np.concatenate(parts)

    def _fit_sparse(
        self,
        X: Any,
        y: IntArray,
        row_weights: FloatArray,
        setting: float,
        tol: float,
        start: FloatArray | None = None,
    ) -> FloatArray:
        """Coefficients (n_models, n_outputs, n_features) of the sparse rows of one source.

        From `SINGLE_TOL` on they are fitted in single precision, as in `fit_beside`.
        """
        settings = np.full(row_weights.shape[1], setting)
        if len(X) > MOST_ROWS:
            # What an approximate curvature predicts is less than what is left to gain.
            stepwise = replace(self, tol=STEPWISE * tol)
            return stepwise._fit_many_sparse(X, y, row_weights, settings, start)
        single = tol >= SINGLE_TOL and X.largest <= SINGLE_LARGEST
        rows = X.astype(np.float32 if single else X.dtype, copy=False)
        return self._fit(rows, y, row_weights, settings, tol)

    def _fit_stacked(
        self,
        X: FloatArray,
        y: IntArray,
        row_weights: FloatArray,
        setting: float,
        tol: FloatArray,
        start: FloatArray | None = None,
    ) -> FloatArray:
        """Two classes: coefficients (n_runs, n_models, n_features) of stacked runs."""
        space = RowSpace.of(X)
        fitted = fit_logistic_batch(
            space.X,
            y,
            row_weights,
            C=setting,
            penalty=self._penalty(space.X.shape[2]),
            tol=tol,
            start=None if start is None else space.into(start),
        )
        return space.back(fitted)

    def fit_grid(
        self,
        problems: WeightedProblems,
        settings: FloatArray,
        on_fit: Callable[[int], None] | None = None,
    ) -> FloatArray:
        """Fit all problems under all settings."""
        pairs = all_pairs(len(problems), settings)
        return fit_weighted(problems, self._penalty, *pairs, tol=self.grid_tol, on_stop=on_fit)

    def walk_grid(
        self,
        problems: WeightedProblems,
        settings: FloatArray,
        visit: Visit,
        on_fit: Callable[[int], None] | None = None,
    ) -> None:
        """Fit one setting after the other, the strongest first."""
        pairs, tol = all_pairs(len(problems), settings), self.grid_tol
        fit_weighted(problems, self._penalty, *pairs, tol=tol, visit=visit, on_stop=on_fit)

    def fit_pairs(
        self,
        problems: WeightedProblems,
        which: IntArray,
        settings: FloatArray,
        start: FloatArray | None,
    ) -> FloatArray:
        """Fit some pairs of problem and setting, to the last digits, from models nearby."""
        tol = self.final_tol
        return fit_weighted(problems, self._penalty, which, settings, tol=tol, start=start)


def _stack(starts: IntArray, counts: IntArray) -> tuple[IntArray, NDArray[np.bool_]]:
    """Rows of some runs, (n_runs, n_longest), and which are the run's own.

    Shorter runs are filled up with rows that are to have weight zero.
    """
    position = np.arange(counts.max())
    inside = position < counts[:, None]
    return starts[:, None] + np.minimum(position, counts[:, None] - 1), inside


def _for_each(rows: NDArray[Any], runs: IntArray) -> NDArray[Any]:
    """Repeat the same rows for every run."""
    return np.broadcast_to(rows, (len(runs), *rows.shape))


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
