"""Shares of all pairs of trade-off and regularisation in one linear model."""

from __future__ import annotations

import numpy as np

from sourcewise.core.discrepancy.methods import Measured
from sourcewise.core.mixture import mixture_shares
from sourcewise.core.weights import WeightProblem
from sourcewise.estimators.held_out_grid import HeldOutGrid
from sourcewise.estimators.likelihood import without_small
from sourcewise.estimators.pool import Pool


def mix_models(grid: HeldOutGrid, size: float) -> np.ndarray:
    """Return each pair's share in the final model, (n_trade_offs, n_settings)."""
    choices = grid.pool.choices
    known = ~np.isnan(grid.mean_losses())
    pairs = [(int(i), int(k)) for i, k in np.argwhere(known)]
    rows = grid.held_out_rows(pairs, size)
    mixture = np.zeros(known.shape)
    mixture[known] = mixture_shares(rows, grid.log_prior[known], choices.joint)
    by_trade_off = mixture.sum(axis=1)
    kept = without_small(by_trade_off, choices.least_share)
    factors = np.divide(kept, by_trade_off, out=np.zeros_like(kept), where=kept > 0.0)
    return without_small(mixture * factors[:, None], choices.least_pair)


def leave_reference_alone(pool: Pool, measured: Measured, trade_offs: np.ndarray) -> np.ndarray:
    """Whether each trade-off gives all weight to the reference, as the smallest of them does."""
    values = np.insert(measured.result.values, pool.position, 0.0)
    problem = WeightProblem.from_sources(values, pool.sizes)
    alone = [problem.weights(trade_off)[pool.position] == 1.0 for trade_off in trade_offs]
    return np.array(alone)


def held_out_scores(grid: HeldOutGrid, mixture: np.ndarray) -> np.ndarray:
    """Scores of the average on the reference's rows, (n_rows, n_outputs).

    Each row is scored by models that have not seen it, of the first split into folds.
    """
    pairs = [(int(i), int(k)) for i, k in np.argwhere(mixture)]
    shares = np.array([mixture[pair] for pair in pairs])
    folds = range(grid.pool.folds.n_folds)
    scores = [
        np.stack([grid.scores[int(grid.which[v, i]), k] for i, k in pairs], axis=-1) @ shares
        for v in folds
    ]
    rows = np.concatenate([grid.rows[v] for v in folds])
    return np.asarray(np.concatenate(scores)[np.argsort(rows)], dtype=np.float64)
