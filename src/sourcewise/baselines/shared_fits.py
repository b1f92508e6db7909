"""What several baselines ask of the same pool of sources, computed once.

Local models are one logistic regression for each source, from its own rows alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from sourcewise.core.choices import DEFAULT
from sourcewise.core.data import SourceData
from sourcewise.core.family import SourceRuns, WeightedProblems, given_problems, kept_shares
from sourcewise.core.folds import named_seed, stratified_folds
from sourcewise.core.logistic import n_outputs
from sourcewise.core.sparse_rows import SparseRows, column_extremes
from sourcewise.estimators.cross_validation import total_weight
from sourcewise.estimators.pool import Pool

LOCAL_TOL = 1e-10  # a weak baseline flatters us


def fit_local_models(pool: Pool, C: float) -> np.ndarray:
    """Fit a model to each source, (n_sources, n_outputs, n_mapped_features)."""
    data = pool.data
    return _constant_where_sure(data, _fit(pool, C, slice(None), data.row_counts))


def fit_half_models(pool: Pool, C: float) -> tuple[np.ndarray, np.ndarray]:
    """Fit two models to each source, and split its rows into halves evenly by class.

    Model ``k`` of (n_sources, 2, n_outputs, n_mapped_features) has not seen half ``k``.
    """
    data = pool.data
    half = np.empty(len(data.y), dtype=np.intp)
    for name, rows in zip(pool.names, data.slices(), strict=True):
        rng = np.random.default_rng(named_seed(pool.options.seed, name))
        half[rows] = stratified_folds(data.y[rows], rows.stop - rows.start, 2, rng)
    run = 2 * data.source_of_row + half
    counts = np.bincount(run, minlength=2 * data.n_sources)
    models = _fit(pool, C, np.argsort(run, kind="stable"), counts)
    models = models.reshape(data.n_sources, 2, *models.shape[1:])[:, ::-1].copy()
    return _constant_where_sure(data, models), half


def _fit(pool: Pool, C: float, order: np.ndarray | slice, counts: np.ndarray) -> np.ndarray:
    """Fit runs of so many rows, taken in some order; a run without rows has the zero model."""
    data = pool.data
    row_weights = np.repeat(data.sizes, data.row_counts) * data.row_shares
    d = data.X.shape[1]
    models = np.zeros((len(counts), n_outputs(data.n_classes), d))
    some = counts > 0
    family: Any = pool.family
    models[some] = replace(family, tol=LOCAL_TOL, local_tol=LOCAL_TOL).fit_folds(
        SourceRuns(data.X[order], data.y[order], row_weights[order], counts[some]),
        np.full(len(data.y), -1),  # nothing is left out
        np.ones(int(some.sum()), dtype=np.intp),
        C,
    )
    return models


def _constant_where_sure(data: SourceData, models: np.ndarray) -> np.ndarray:
    """Give sources that show one class only the constant model of that class."""
    low = np.minimum.reduceat(data.y, data.starts[:-1])
    sure = np.flatnonzero(low == np.maximum.reduceat(data.y, data.starts[:-1]))
    constants = _constant_models(data)[low[sure]]
    models[sure] = constants if models.ndim == constants.ndim else constants[:, None]
    return models


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


@dataclass(frozen=True)
class Trained:
    """A model trained on weighted sources, its regularisation cross-validated on the reference."""

    C: float
    losses: np.ndarray  # of shape (n_settings,); mean loss on held-out reference rows
    model: np.ndarray  # of shape (n_outputs, n_mapped_features)
    # Of shape (n_validation_folds, n_outputs, n_mapped_features); with the same ``C``, without each
    # validation fold of the reference.
    fold_models: np.ndarray


class SharedFits:
    """Local models and weighted fits of one pool.

    Source weights come as arrays of shape (1 + n_validation_folds, n_sources): for all rows first,
    then without each validation fold of the reference.
    """

    def __init__(self, pool: Pool):
        self.pool = pool
        self._trained: dict[bytes, Trained] = {}
        self._local: dict[float, np.ndarray] = {}
        self._halves: dict[float, tuple[np.ndarray, np.ndarray]] = {}

    @property
    def held_out(self) -> np.ndarray:
        """Validation masks of the reference rows, (n_validation_folds, n_reference_rows)."""
        return self.pool.folds.held_out

    @property
    def reference_shares(self) -> np.ndarray:
        """How much each reference row counts."""
        data = self.pool.data
        return data.row_shares[data.rows(data.reference)]

    @cached_property
    def sizes(self) -> np.ndarray:
        """Effective sizes of the sources, (1 + n_validation_folds, n_sources)."""
        data = self.pool.data
        sizes = np.tile(data.sizes, (1 + len(self.held_out), 1))
        for v, mask in enumerate(self.held_out):
            kept = kept_shares(self.reference_shares, mask)
            sizes[1 + v, data.reference] = 1.0 / np.sum(kept**2)
        return sizes

    def by_size(self, kept: np.ndarray) -> np.ndarray:
        """Weights that make all rows of the kept sources count the same: ``m_i / m``."""
        sizes = self.sizes * kept
        return np.asarray(sizes / sizes.sum(axis=1, keepdims=True))

    @property
    def only_reference(self) -> np.ndarray:
        """Which sources are the reference."""
        return np.asarray(np.arange(self.pool.data.n_sources) == self.pool.data.reference)

    @property
    def reference_trained(self) -> Trained:
        """The reference's own model."""
        return self.train(self.by_size(self.only_reference))

    @cached_property
    def reference_predictions(self) -> np.ndarray:
        """Probabilities of the reference's rows by models that have not seen them."""
        by_fold = self.pool.family.predict(
            self.reference_trained.fold_models, self.pool.reference.X
        )
        summed = np.einsum("vnk,vn->nk", by_fold, self.held_out)
        return np.asarray(summed / len(self.pool.folds.folds))

    def setting(self, C: float | str) -> float:
        """Regularisation of local models; "cv" is the best for the reference alone."""
        return self.reference_trained.C if C == "cv" else float(C)

    def local_models(self, C: float | str) -> np.ndarray:
        """Each source's own model, (n_sources, n_outputs, n_mapped_features)."""
        setting = self.setting(C)
        if setting not in self._local:
            self._local[setting] = fit_local_models(self.pool, setting)
        return self._local[setting]

    def half_models(self, C: float | str) -> tuple[np.ndarray, np.ndarray]:
        """Two models of each source, each without one half of its rows, and the rows' halves."""
        setting = self.setting(C)
        if setting not in self._halves:
            self._halves[setting] = fit_half_models(self.pool, setting)
        return self._halves[setting]

    def train(self, weights: np.ndarray) -> Trained:
        """Train with these source weights under all regularisations, and choose one."""
        return self.train_all([weights])[0]

    def train_all(self, weightings: Sequence[np.ndarray]) -> list[Trained]:
        """Train with several weightings, in one batch."""
        new = {w.tobytes(): w for w in weightings if w.tobytes() not in self._trained}
        if new:
            problems, models = self.fit([*new.values()])
            chosen = [self.choose(of_folds) for of_folds in models[:, 1:]]
            best = np.array([position for position, _ in chosen])
            C, each = self.pool.family.settings[best], np.arange(len(new))
            family: Any = self.pool.family
            whole = each * models.shape[1]  # the problems of all rows
            final = family.fit_pairs(problems, whole, C, models[each, 0, best])
            for k, (key, (_, losses)) in enumerate(zip(new, chosen, strict=True)):
                without_folds = models[k, 1:, best[k]]
                self._trained[key] = Trained(float(C[k]), losses, final[k], without_folds)
        return [self._trained[w.tobytes()] for w in weightings]

    def fit(self, weightings: Sequence[np.ndarray]) -> tuple[WeightedProblems, np.ndarray]:
        """Fit (weightings, all rows and without each fold, settings, ...) in one batch."""
        problems, family = self.problems(weightings), self.pool.family
        models = np.asarray(family.fit_grid(problems, family.settings), dtype=np.float64)
        shape = len(weightings), 1 + len(self.held_out), len(family.settings)
        return problems, models.reshape(*shape, *models.shape[1:])

    def problems(self, weightings: Sequence[np.ndarray]) -> WeightedProblems:
        """All weightings, each for all rows and without each validation fold."""
        data, effective = self.pool.data, self.pool.choices.effective_total
        counts = np.tile(data.row_counts, (len(self.sizes), 1))
        counts[1:, data.reference] -= self.held_out.sum(axis=1)
        totals = [
            total_weight(w, m, n, effective)
            for weights in weightings
            for w, m, n in zip(weights, self.sizes, counts, strict=True)
        ]
        return given_problems(
            self.pool.sources,
            data,
            np.concatenate(weightings),
            np.array(totals),
            self.held_out,
            np.tile(np.arange(-1, len(self.held_out)), len(weightings)),
        )

    def choose(self, fold_models: np.ndarray) -> tuple[int, np.ndarray]:
        """Position of the setting with the lowest loss on held-out rows, and all losses.

        From models of shape (n_validation_folds, n_settings, n_outputs, n_mapped_features).
        """
        pool = self.pool
        X, y = pool.reference.X, pool.reference.y
        n_settings = fold_models.shape[1]
        losses = np.zeros((n_settings, len(y)))
        for mask, models in zip(self.held_out, fold_models, strict=True):
            predicted = pool.family.predict(models, X[mask])
            losses[:, mask] += pool.selection_loss(predicted, y[mask])
        means = losses @ self.reference_shares / len(pool.folds.folds)
        # Counts of errors are compared exactly: equal counts must tie, for the smallest setting.
        return int(np.argmin(np.round(means, 12))), means
