"""Shares of all pairs of trade-off and regularisation in one linear model."""

from __future__ import annotations

import numpy as np

from sourcewise.core.discrepancy.methods import Measured
from sourcewise.core.mixture import HeldOutRows, mixture_shares
from sourcewise.core.weights import WeightProblem
from sourcewise.estimators.likelihood import setting_prior, trade_off_prior, without_small
from sourcewise.estimators.pool import Pool


def mix_models(
    pool: Pool,
    measured: Measured,
    models: np.ndarray,
    same: np.ndarray,
    trade_offs: np.ndarray,
    size: float,
) -> np.ndarray:
    """Return each pair's share in the final model, (n_trade_offs, n_settings).

    ``models`` are those of all distinct weightings under all settings, ``same`` says which
    weighting each (fold, trade-off) uses.
    """
    settings = pool.family.settings
    log_prior = trade_off_prior(pool, trade_offs)[:, None] + setting_prior(pool)
    which = same.reshape(len(pool.folds.held_out), -1).copy()
    # Without a fold a trade-off may let in what it keeps out in the end. What is best for such
    # sources, to know nothing, say, because their targets are in other units, is not best then.
    alone = _leave_reference_alone(pool, measured, trade_offs)
    which[:, alone] = which[:, np.argmin(trade_offs)][:, None]
    rows = _held_out_rows(pool, models, which, size)
    mixture = mixture_shares(rows, log_prior.ravel(), pool.choices.joint)
    mixture = mixture.reshape(-1, len(settings))
    by_trade_off = mixture.sum(axis=1)
    kept = without_small(by_trade_off, pool.choices.least_share)
    factors = np.divide(kept, by_trade_off, out=np.zeros_like(kept), where=kept > 0.0)
    return np.asarray(mixture * factors[:, None])


def _leave_reference_alone(pool: Pool, measured: Measured, trade_offs: np.ndarray) -> np.ndarray:
    """Whether each trade-off gives all weight to the reference, as the smallest of them does."""
    values = np.insert(measured.result.values, pool.position, 0.0)
    problem = WeightProblem.from_sources(values, pool.sizes)
    alone = [problem.weights(trade_off)[pool.position] == 1.0 for trade_off in trade_offs]
    return np.array(alone)


def _held_out_rows(pool: Pool, models: np.ndarray, same: np.ndarray, size: float) -> HeldOutRows:
    """Scores of all pairs on every fold, by models that have not seen it."""
    X, y, shares = pool.reference.X, pool.reference.y, pool.reference.shares
    n_settings = len(pool.family.settings)
    by_problem = models.reshape(-1, n_settings, *models.shape[1:])
    parts = []
    for mask, which in zip(pool.folds.held_out, same, strict=True):
        # (n_trade_offs, n_settings, n_outputs, d) to (n_rows, n_outputs, n_pairs)
        theirs = by_problem[which].reshape(-1, *models.shape[1:])
        parts.append(np.einsum("nd,pod->nop", X[mask], theirs, optimize=True))
    rows = np.concatenate([np.flatnonzero(mask) for mask in pool.folds.held_out])
    return HeldOutRows(
        np.concatenate(parts).astype(np.float64),
        y[rows],
        shares[rows] / len(pool.folds.folds),
        size,
        pool.n_classes,
        pool.scale,
        pool.choices.clip,
        pool.choices.least_probability,
    )
