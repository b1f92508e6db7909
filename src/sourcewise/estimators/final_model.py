"""The default learner's final model: an average of those that have a share in it."""

from __future__ import annotations

from typing import Any

import numpy as np

from sourcewise.core.family import WeightedProblems
from sourcewise.core.weights import WeightProblem
from sourcewise.estimators.cross_validation import total_weight
from sourcewise.estimators.pool import Pool
from sourcewise.estimators.selection import Selection


def fit_average(
    pool: Pool, selection: Selection, discrepancies: np.ndarray, near: Any
) -> np.ndarray:
    """Fit the models of all pairs that have a share, to all rows, and average them.

    Scores of linear models are averaged by averaging their coefficients. ``near`` are models
    under all settings from nearby, or None.
    """
    data, settings = pool.data, selection.settings
    problem = WeightProblem.from_sources(discrepancies, data.sizes)
    used = np.flatnonzero(selection.shares)
    weights = np.stack([problem.weights(selection.trade_offs[k]) for k in used])
    # Several trade-offs may give the same weights: all of them to the reference, say.
    weights, which = np.unique(weights, axis=0, return_inverse=True)
    shares = np.zeros((len(weights), len(settings)))
    np.add.at(shares, which.ravel(), selection.mixture[used])
    needed = np.flatnonzero(shares.any(axis=0))
    totals = [
        total_weight(w, data.sizes, data.row_counts, pool.protocol.effective_total) for w in weights
    ]
    problems = WeightedProblems(
        data, weights, np.array(totals), pool.folds.held_out, np.full(len(weights), -1)
    )
    start = None if near is None else near[needed]
    models = pool.family.fit_grid(problems, settings[needed], start=start)
    return np.tensordot(shares[:, needed].ravel(), models.astype(np.float64), axes=1)
