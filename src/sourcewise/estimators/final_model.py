"""The default learner's final model: an average of those that have a share in it."""

from __future__ import annotations

import numpy as np

from sourcewise.core.family import LinearFamily
from sourcewise.core.weights import WeightProblem
from sourcewise.estimators.cross_validation import cutoff_problems, weighting
from sourcewise.estimators.pool import Pool
from sourcewise.estimators.selection import Selection


def fit_average(
    pool: Pool, selection: Selection, discrepancies: np.ndarray, near: np.ndarray | None
) -> np.ndarray:
    """Fit the models of all pairs that have a share, to all rows, and average them.

    Scores of linear models are averaged by averaging their coefficients. ``near`` are models
    of all pairs from nearby, (n_trade_offs, n_settings, n_outputs, n_features), or None.
    """
    settings = selection.settings
    problem = WeightProblem.from_sources(discrepancies, pool.sizes)
    used = np.flatnonzero(selection.shares)
    weightings = [
        weighting(pool, problem, trade_off, pool.row_counts)
        for trade_off in selection.trade_offs[used]
    ]
    # Several trade-offs may give the same weights: all of them to the reference, say.
    _, first, which = np.unique(
        [w.cutoff for w in weightings], return_index=True, return_inverse=True
    )
    shares = np.zeros((len(first), len(settings)))
    np.add.at(shares, which.ravel(), selection.mixture[used])
    of_untrusted = np.delete(discrepancies, pool.position)[None]
    problems = cutoff_problems(pool, of_untrusted, [weightings[k] for k in first])
    pairs = np.nonzero(shares)
    family: LinearFamily = pool.family  # type: ignore[assignment]
    start = None if near is None else near[used[first]][pairs]
    models = family.fit_pairs(problems, pairs[0], settings[pairs[1]], start)
    return np.tensordot(shares[pairs], models.astype(np.float64), axes=1)
