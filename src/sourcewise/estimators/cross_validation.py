"""Fits of all pairs of trade-off and regularisation, judged on rows that they left out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from sourcewise.core.discrepancy.methods import Measured
from sourcewise.core.family import WeightedProblems, kept_shares
from sourcewise.core.source_weights import CutoffWeights, cutoff_and_scale
from sourcewise.core.weights import WeightProblem
from sourcewise.estimators.pool import Pool


def candidates(
    pool: Pool, measured: Measured, trade_offs: np.ndarray
) -> tuple[WeightedProblems, np.ndarray]:
    """Weightings that cross-validation has to fit, and which one each (fold, trade-off) uses.

    Many trade-offs give the same weights (all of them the reference's, say): those are fitted
    once.
    """
    found = []
    for v, (sizes, counts) in enumerate(without_folds(pool)):
        values = np.insert(measured.without_fold[v], pool.position, 0.0)
        problem = WeightProblem.from_sources(values, sizes)
        found += [weighting(pool, problem, t, counts, v) for t in trade_offs]
    _, first, same = np.unique(
        [(w.fold, w.cutoff) for w in found], axis=0, return_index=True, return_inverse=True
    )
    chosen = [found[k] for k in first]
    return cutoff_problems(pool, measured.without_fold, chosen), same.ravel()


class Weighting(NamedTuple):
    """One weighting of a pool: see `CutoffWeights` and `WeightedProblems`."""

    fold: int
    cutoff: float
    scale: float
    reference_weight: float
    total: float


def weighting(
    pool: Pool, problem: WeightProblem, trade_off: float, counts: np.ndarray, fold: int = -1
) -> Weighting:
    """Weigh the sources by one trade-off; ``counts`` are their rows."""
    cutoff, scale = cutoff_and_scale(problem, trade_off)
    slack = 1.0 if np.isinf(cutoff) else np.maximum(cutoff - problem.discrepancies, 0.0)
    weights = scale * problem.sizes * slack
    total = total_weight(weights, problem.sizes, counts, pool.choices.effective_total)
    return Weighting(fold, cutoff, scale, float(weights[pool.position]), total)


def cutoff_problems(
    pool: Pool, discrepancies: np.ndarray, weightings: Sequence[Weighting]
) -> WeightedProblems:
    """Weightings by discrepancies measured without their folds, (n_folds, n_untrusted).

    A fold of -1 means all rows; there is then one row of discrepancies.
    """
    fold, cutoffs, scales, of_reference, totals = (
        np.array(values) for values in zip(*weightings, strict=True)
    )
    return WeightedProblems(
        pool.sources,
        pool.reference,
        CutoffWeights(discrepancies, pool.untrusted_sizes, np.maximum(fold, 0), cutoffs, scales),
        of_reference,
        totals,
        pool.folds.held_out,
        fold,
    )


def without_folds(pool: Pool) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Effective sizes and numbers of rows of all sources, without each validation fold."""
    shares = pool.reference.shares
    for mask in pool.folds.held_out:
        sizes, counts = pool.sizes.copy(), pool.row_counts.copy()
        sizes[pool.position] = 1.0 / np.sum(kept_shares(shares, mask) ** 2)
        counts[pool.position] = np.sum(~mask)
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
    return np.asarray(np.einsum("vcn,vn->cn", losses, held_out) / len(pool.folds.folds))
