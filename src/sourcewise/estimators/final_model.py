"""The default learner's final model: an average of those that have a share in it."""

from __future__ import annotations

from typing import Any

import numpy as np

from sourcewise.core.weights import WeightProblem
from sourcewise.estimators.cross_validation import cutoff_problems, weighting
from sourcewise.estimators.pool import Pool
from sourcewise.estimators.selection import Selection


def fit_average(
    pool: Pool, selection: Selection, discrepancies: np.ndarray, near: Any
) -> np.ndarray:
    """Fit the models of all pairs that have a share, to all rows, and average them.

    Scores of linear models are averaged by averaging their coefficients. ``near`` are models
    under all settings from nearby, or None.
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
    needed = np.flatnonzero(shares.any(axis=0))
    of_untrusted = np.delete(discrepancies, pool.position)[None]
    problems = cutoff_problems(pool, of_untrusted, [weightings[k] for k in first])
    start = None if near is None else near[needed]
    models = pool.family.fit_grid(problems, settings[needed], start=start)
    return np.tensordot(shares[:, needed].ravel(), models.astype(np.float64), axes=1)
