"""Fits of all pairs of trade-off and regularisation, judged on rows that they left out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from sourcewise.core.family import WeightedProblems, kept_shares
from sourcewise.core.weights import WeightProblem
from sourcewise.estimators.measure import Measured
from sourcewise.estimators.pool import Pool

Fit = Callable[[WeightedProblems], Any]


@dataclass(frozen=True)
class Judged:
    """Models under all settings, problem by problem, and what they lose on the reference.

    ``losses`` has the shape (n_problems, n_settings, n_rows).
    """

    models: Any
    losses: np.ndarray

    def models_of(self, problem: int) -> Any:
        """Return the models of one problem, under all settings."""
        n_settings = self.losses.shape[1]
        return self.models[problem * n_settings : (problem + 1) * n_settings]


def fit_and_judge(pool: Pool, problems: WeightedProblems, fit: Fit) -> Judged:
    """Fit weightings under all settings, and judge them on all reference rows."""
    X, y = pool.trusted
    models = fit(problems)
    losses = np.asarray(pool.selection_loss(pool.family.predict(models, X), y))
    shape = len(problems.weights), len(pool.family.settings), -1
    return Judged(models, losses.reshape(shape))


def candidates(
    pool: Pool, measured: Measured, trade_offs: np.ndarray
) -> tuple[WeightedProblems, np.ndarray]:
    """Weightings that cross-validation has to fit, and which one each (fold, trade-off) uses.

    Many trade-offs give the same weights (all of them the reference's, say): those are fitted
    once.
    """
    data, held_out = pool.data, pool.folds.held_out
    weights = np.empty((len(held_out), len(trade_offs), data.n_sources))
    totals = np.empty((len(held_out), len(trade_offs)))
    for v, (sizes, counts) in enumerate(without_folds(pool)):
        values = np.insert(measured.without_fold[v], data.reference, 0.0)
        problem = WeightProblem.from_sources(values, sizes)
        for k, trade_off in enumerate(trade_offs):
            weights[v, k] = problem.weights(trade_off)
            totals[v, k] = total_weight(weights[v, k], sizes, counts, pool.protocol.effective_total)
    fold = np.repeat(np.arange(len(held_out)), len(trade_offs))
    flat = weights.reshape(len(fold), -1)
    keys = np.column_stack([fold, flat, totals.ravel()])
    _, first, same = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    problems = WeightedProblems(data, flat[first], totals.ravel()[first], held_out, fold[first])
    return problems, same.ravel()


def without_folds(pool: Pool) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Effective sizes and numbers of rows of all sources, without each validation fold."""
    data = pool.data
    shares = data.row_shares[data.rows(data.reference)]
    for mask in pool.folds.held_out:
        sizes, counts = data.sizes.copy(), data.row_counts.copy()
        sizes[data.reference] = 1.0 / np.sum(kept_shares(shares, mask) ** 2)
        counts[data.reference] = np.sum(~mask)
        yield sizes, counts


def total_weight(
    weights: np.ndarray, sizes: np.ndarray, counts: np.ndarray, effective: bool
) -> float:
    """Return what row weights sum to, so that ``C`` means the same in every fit."""
    if effective:
        return float(1.0 / np.sum(weights**2 / sizes))
    return float(counts[weights > 0].sum())


def average_held_out(losses: np.ndarray, pool: Pool) -> np.ndarray:
    """Each reference row's loss where it was held out, averaged over repeats.

    From (n_validation_folds, n_choices, n_rows) to (n_choices, n_rows).
    """
    held_out = pool.folds.held_out
    return np.einsum("vcn,vn->cn", losses, held_out) / len(pool.folds.folds)
