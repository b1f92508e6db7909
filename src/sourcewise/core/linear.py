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
from sourcewise.core.family import SharedRows, SourceRuns, WeightedProblems
from sourcewise.core.grid_problem import GridProblem
from sourcewise.core.logistic import (
    fit_logistic,
    n_outputs,
    probabilities,
)
from sourcewise.core.logistic_grid import solve_grid
from sourcewise.core.row_space import RowSpace

LOCAL_TOL = 1e-7  # of local models: far below the noise of a few hundred rows
# Of models beside shared rows: their losses are averaged, not ranked. But rows of a small share
# change the objective by its square, and must not be lost in the tolerance.
JOINT_TOL = 1e-5
SMALL_SHARE = 0.05
LEAST_TOL = 1e-10
# From this tolerance on single precision does, which is twice as fast, unless features are of
# another order of magnitude than the reference's: those have a standard deviation of about 1.
SINGLE_TOL = 1e-6
SINGLE_LARGEST = 100.0
STACK_ELEMENTS = 1_000_000  # features stacked at a time
MAX_COLUMNS = 4096  # scores a row gets at a time, over all models of a batch


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
    intercept_penalty : float
        What the constant's coefficient is penalised by otherwise.
    """

    linear: ClassVar[bool] = True
    names_only: ClassVar[bool] = False

    n_classes: int
    settings: FloatArray
    penalise_constant: bool = False
    tol: float = 1e-8
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
        self, runs: SourceRuns, fold: IntArray, n_folds: IntArray, setting: float
    ) -> FloatArray:
        """Fit sources of like size together where there are two classes, else one by one."""
        d = runs.X.shape[1]
        first = np.concatenate([[0], np.cumsum(n_folds)])
        models = np.empty((first[-1], n_outputs(self.n_classes), d), dtype=runs.X.dtype)
        if self.n_classes > 2:
            for s in np.flatnonzero(n_folds):
                rows = runs.rows(s)
                left_out = fold[rows, None] == np.arange(n_folds[s])
                models[first[s] : first[s + 1]] = self.fit(
                    runs.X[rows],
                    runs.y[rows],
                    np.where(left_out, 0.0, runs.weights[rows, None]),
                    np.full(n_folds[s], setting),
                )
            return models
        for some in like_runs(runs.counts, n_folds, d):
            k = n_folds[some[0]]
            taken, inside = _stack(runs.starts[some], runs.counts[some])
            weights = np.where(inside, runs.weights[taken], 0.0)[:, :, None]
            weights = np.where(fold[taken][:, :, None] == np.arange(k), 0.0, weights)
            tol = np.full(len(some), max(self.tol, LOCAL_TOL))
            fitted = self._fit_stacked(runs.X[taken], runs.y[taken], weights, setting, tol)
            models[(first[some, None] + np.arange(k)).ravel(), 0] = fitted.reshape(-1, d)
        return models

    def fit_beside(self, shared: SharedRows, runs: SourceRuns, setting: float) -> FloatArray:
        """Fit sources of like size together where there are two classes, else one by one."""
        n_shared, n_models = shared.weights.shape
        d = runs.X.shape[1]
        own_total = np.add.reduceat(runs.weights, runs.starts)
        share = own_total / (own_total + shared.weights.sum(axis=0).max())
        tol = np.maximum(JOINT_TOL * np.minimum(share / SMALL_SHARE, 1.0) ** 2, LEAST_TOL)
        n_sources = len(runs.counts)
        models = np.empty((n_sources, n_models, n_outputs(self.n_classes), d), dtype=runs.X.dtype)
        if self.n_classes > 2:
            for s in range(n_sources):
                models[s] = replace(self, tol=float(tol[s])).fit(
                    *shared.join(runs, s), np.full(n_models, setting)
                )
            return models.reshape(-1, *models.shape[2:])
        # Each source by itself, so that nobody's precision depends on who is fitted beside it.
        largest = np.maximum.reduceat(np.abs(runs.X).max(axis=1), runs.starts)
        largest = np.maximum(largest, np.abs(shared.X).max())
        single = (tol >= SINGLE_TOL) & (largest <= SINGLE_LARGEST)
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
        start: FloatArray | None = None,
        on_fit: Callable[[int], None] | None = None,
    ) -> FloatArray:
        """Fit all problems under all settings in batches of columns."""
        n_settings = len(settings)
        by_strength = np.argsort(settings) if start is not None and len(start) > 1 else slice(None)
        # Of all rows, and from nearby: that is the final model, and its digits will be looked at.
        final = start is not None and bool((problems.fold < 0).all())
        problems, space = problems.in_row_space()
        width = max(1, MAX_COLUMNS // (n_settings * n_outputs(self.n_classes)))
        # Problems of neighbouring weights start from each other, so they must share a batch.
        order = np.lexsort((problems.fold, problems.reference_weights))
        parts = []
        for low in range(0, len(order), width):
            chosen = np.repeat(order[low : low + width], n_settings)
            parts.append(
                solve_grid(
                    GridProblem(
                        sources=problems.sources,
                        reference=problems.reference,
                        weights=problems.weights.in_columns(chosen).scaled(problems.totals[chosen]),
                        reference_weights=problems.reference_weights[chosen]
                        * problems.totals[chosen],
                        C=np.tile(settings, len(chosen) // n_settings),
                        fold=problems.fold[chosen] + 1,
                        reference_shares=problems.reference_shares,
                        penalty=self._penalty(problems.reference.X.shape[1]),
                    ),
                    tol=1e-3 * self.tol if final else self.tol,
                    start=None if start is None else space.into(start[by_strength]),
                    on_stop=on_fit,
                )
            )
        models = np.concatenate(parts).reshape(len(order), n_settings, *parts[0].shape[1:])
        return space.back(models[np.argsort(order)].reshape(-1, *parts[0].shape[1:]))


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
