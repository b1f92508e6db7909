"""What held-out reference rows say of a candidate, and what is said before they are asked."""

from __future__ import annotations

import numpy as np

from sourcewise.core.losses import NO_LOSS
from sourcewise.core.sparse_rows import squared_norms
from sourcewise.estimators.pool import Pool


def likelihood_size(pool: Pool, losses: np.ndarray) -> float:
    """Return how many rows a likelihood may count.

    ``losses`` are those of the best candidate on each reference row.
    """
    reference = pool.reference
    if pool.n_classes:
        return reference.size
    return reference.size * normality(losses, reference.shares)


def log_likelihood(pool: Pool, losses: np.ndarray, size: float) -> np.ndarray:
    """Log-likelihoods of ``size`` held-out rows by mean losses on them."""
    if pool.n_classes:
        return -size * losses  # log-losses are log-likelihoods
    # The normal likelihood with its variance fitted; a perfect fit has none.
    return np.asarray(-0.5 * size * np.log(np.maximum(losses, NO_LOSS)))


def normality(squared_errors: np.ndarray, shares: np.ndarray) -> float:
    """Share of the rows that a likelihood for normal errors may count.

    Of normal errors the fourth moment is three times the squared variance. Where it is more, a few
    rows make up most of the loss, and no more can be known than so many rows tell.
    """
    largest = squared_errors.max()
    if largest == 0.0:
        return 1.0
    squared_errors = squared_errors / largest  # none so small that its square is zero
    variance, fourth_moment = squared_errors @ shares, squared_errors**2 @ shares
    return float(min(1.0, 3.0 * variance**2 / fourth_moment))


def trade_off_prior(pool: Pool, trade_offs: np.ndarray) -> np.ndarray:
    """Logarithm of the prior of each trade-off, up to a constant: normal in its logarithm."""
    choices = pool.choices
    found = doublings_from(trade_offs, choices.preferred, choices.end_doublings)
    return np.asarray(-0.5 * (found / choices.doublings) ** 2)


def doublings_from(trade_offs: np.ndarray, preferred: float, beyond: float) -> np.ndarray:
    """Distance on a scale of powers of two; 0 and infinity lie so far beyond the others."""
    inner = (trade_offs > 0) & np.isfinite(trade_offs)
    found = np.log2(np.where(inner, trade_offs, preferred) / preferred)
    found[trade_offs == 0] = found[inner].min(initial=0.0) - beyond
    found[np.isinf(trade_offs)] = found[inner].max(initial=0.0) + beyond
    return np.asarray(found)


def setting_prior(pool: Pool) -> np.ndarray:
    """Logarithm of the prior of each regularisation of a default learner, up to a constant.

    The penalty of a linear model is a normal prior of its coefficients, with variance ``C``. The
    scores of rows then have the variance ``C E|x|^2``, and this one is normal in its logarithm
    around 1: what is expected is about as much signal as there is noise.
    """
    X, shares = pool.reference.X, pool.reference.shares
    squared_norm = float(shares @ squared_norms(X)) or 1.0
    decades = np.log10(pool.family.settings * squared_norm)
    return np.asarray(-0.5 * (decades / pool.choices.decades) ** 2)


def without_small(shares: np.ndarray, least_share: float) -> np.ndarray:
    """Leave out shares below the least, but never the largest; the others sum to 1 again."""
    kept = np.where(shares >= min(least_share, shares.max()), shares, 0.0)
    return np.asarray(kept / kept.sum())
