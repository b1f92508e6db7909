"""Final models, fitted to all rows: the default learner's, and those of a user's estimator."""

from __future__ import annotations

from typing import Any

import numpy as np

from sourcewise.core.family import LinearFamily
from sourcewise.core.mixture import ALONE, DEFAULT_LEARNER, TOLD, WEIGHTED
from sourcewise.core.weights import WeightProblem
from sourcewise.estimators.averaged import Member
from sourcewise.estimators.cross_validation import cutoff_problems, total_weight, weighting
from sourcewise.estimators.members import (
    MemberChoice,
    estimator_family,
    member_job,
)
from sourcewise.estimators.pool import Pool
from sourcewise.estimators.selection import Selection
from sourcewise.estimators.wrapped import Job
from sourcewise.progress import counter


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


def fit_weighting(pool: Pool, weights: np.ndarray) -> Any:
    """Fit the estimator with some source weights."""
    return estimator_family(pool).fit_all([_job(pool, weights, told=False)])[0]


def fit_members(
    pool: Pool, discrepancies: np.ndarray, chosen: MemberChoice, linear: Any
) -> list[Member]:
    """Fit all members of the average; ``linear`` is the fitted default learner, if it is one."""
    problem = WeightProblem.from_sources(discrepancies, pool.sizes)
    trade_offs = {ALONE: 0.0, WEIGHTED: pool.choices.preferred, TOLD: np.inf}
    fitted = [name for name in trade_offs if name in chosen.shares]
    models = estimator_family(pool).fit_all(
        [_job(pool, problem.weights(trade_offs[name]), told=name == TOLD) for name in fitted],
        counter("training", len(fitted)),
    )
    by_name = {DEFAULT_LEARNER: linear, **dict(zip(fitted, models, strict=True))}
    filled = None if pool.linear is None else pool.linear.filled
    return [
        Member(
            name,
            share,
            by_name[name],
            filled if name == DEFAULT_LEARNER else None,
            chosen.wrong.get(name, 0.0),
        )
        for name, share in chosen.shares.items()
    ]


def _job(pool: Pool, weights: np.ndarray, *, told: bool) -> Job:
    data = pool.data
    total = total_weight(weights, pool.sizes, data.row_counts, pool.choices.effective_total)
    row_weights = np.repeat(total * weights, data.row_counts) * data.row_shares
    return member_job(data, row_weights, told)
