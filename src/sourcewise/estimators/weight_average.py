"""Source weights averaged over trade-offs, for estimators whose models cannot be averaged."""

from __future__ import annotations

import numpy as np
from scipy.special import softmax

from sourcewise.core.discrepancy.methods import Measured, know_nothing_loss
from sourcewise.core.family import WeightedProblems, given_problems
from sourcewise.core.weights import WeightProblem
from sourcewise.estimators.cross_validation import (
    Fit,
    Judged,
    average_held_out,
    fit_and_judge,
    total_weight,
    without_folds,
)
from sourcewise.estimators.likelihood import log_likelihood, trade_off_prior, without_small
from sourcewise.estimators.pool import Pool


def posterior_shares(
    pool: Pool, losses: np.ndarray, size: float, trade_offs: np.ndarray
) -> np.ndarray:
    """Share of each trade-off by Bayes' rule, from its mean loss on ``size`` unseen rows."""
    evidence = log_likelihood(pool, losses, size) + trade_off_prior(pool, trade_offs)
    return without_small(softmax(evidence), pool.choices.least_share)


def average_weights(
    pool: Pool,
    measured: Measured,
    grid: Judged,
    problems: WeightedProblems,
    fit: Fit,
    losses: np.ndarray,
    size: float,
    trade_offs: np.ndarray,
) -> np.ndarray:
    """Return the share of each trade-off in the weights, by mean losses (n_trade_offs,).

    The average is cross-validated itself, to see that it is no worse than the reference alone: a
    small share of the weight is no small thing where a source's features or targets are in other
    units. Problems that the grid has fitted already are not fitted again.
    """
    shares = posterior_shares(pool, losses, size, trade_offs)
    alone = trade_offs == 0.0
    if not alone.any() or shares[alone].sum() == 1.0:
        return shares
    average = _averaged(pool, measured, shares, trade_offs)
    known = problems.find(average)
    found, new = grid.losses[known], known < 0
    if new.any():
        found[new] = fit_and_judge(pool, average.only(new), fit).losses
    of_average = float((average_held_out(found, pool) @ pool.reference.shares)[0])
    if reference_is_likelier(pool, float(losses[alone][0]), of_average, size):
        return np.asarray(alone / alone.sum())
    return shares


def _averaged(
    pool: Pool, measured: Measured, shares: np.ndarray, trade_offs: np.ndarray
) -> WeightedProblems:
    """Weightings of all folds by the weights that will be used.

    With a fold left out a trade-off may let sources in that it keeps out in the end, and what is
    best for those is not best for the final weights.
    """
    held_out = pool.folds.held_out
    values = np.insert(measured.result.values, pool.position, 0.0)
    weights = averaged_weights(values, pool.sizes, trade_offs, shares)
    effective = pool.choices.effective_total
    totals = [total_weight(weights, *without, effective) for without in without_folds(pool)]
    repeated = np.tile(weights, (len(held_out), 1))
    folds = np.arange(len(held_out))
    return given_problems(pool.sources, pool.data, repeated, np.array(totals), held_out, folds)


def averaged_weights(
    discrepancies: np.ndarray, sizes: np.ndarray, trade_offs: np.ndarray, shares: np.ndarray
) -> np.ndarray:
    """Average the weights over the trade-offs."""
    problem = WeightProblem.from_sources(discrepancies, sizes)
    used = np.flatnonzero(shares)
    weights = [problem.weights(trade_offs[k]) for k in used]
    return np.average(weights, axis=0, weights=shares[used])


def reference_is_likelier(pool: Pool, of_reference: float, of_average: float, size: float) -> bool:
    """Whether the reference alone is clearly likelier than an average, by their mean losses.

    It is the one candidate that is the same with and without a validation fold.
    """
    guess = know_nothing_loss(pool.reference, pool.selection_loss)
    losses = np.array([guess, of_average, of_reference])
    nothing, average, reference = log_likelihood(pool, losses, size)
    lost = pool.choices.lost_part * (reference - nothing)
    return bool(reference - average > max(pool.choices.likelier, lost))
