"""Fits of all pairs of trade-off and regularisation, judged on rows that they left out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from sourcewise.core.discrepancy.methods import Measured
from sourcewise.core.family import LinearFamily, WeightedProblems, kept_shares
from sourcewise.core.losses import NO_LOSS
from sourcewise.core.mixture import HeldOutRows
from sourcewise.core.source_weights import CutoffWeights, cutoff_and_scale
from sourcewise.core.sparse_rows import squared_norms
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


# -- what models of a grid say of such rows, and what that is worth --------------------------------


class HeldOutGrid:
    """Scores and losses of held-out rows under all pairs of trade-off and regularisation.

    They are gathered while the regularisation is weakened (`visit`). Trade-offs that have fallen
    hopelessly behind are given up on the way, if that is wanted; their pairs then have no loss.
    """

    def __init__(
        self,
        pool: Pool,  # of a linear family
        problems: WeightedProblems,  # distinct weightings, each without one validation fold
        which: np.ndarray,  # the problem that each trade-off uses, (n_folds, n_trade_offs)
        trade_offs: np.ndarray,
        give_up: bool,
    ):
        self.pool, self.problems, self.which, self.give_up = pool, problems, which, give_up
        self.family: LinearFamily = pool.family  # type: ignore[assignment]
        self.settings = pool.family.settings
        self.rows = [np.flatnonzero(mask) for mask in pool.folds.held_out]
        self.log_prior = trade_off_prior(pool, trade_offs)[:, None] + setting_prior(pool)
        self.alive = np.ones(len(trade_offs), dtype=bool)
        self.evidence = np.full(self.log_prior.shape, -np.inf)
        # By problem and setting: scores (n_rows, n_outputs) and losses (n_rows,) of its own fold.
        self.scores: dict[tuple[int, int], np.ndarray] = {}
        self.losses: dict[tuple[int, int], np.ndarray] = {}
        # Models of the first fold, which the final ones will be near.
        self.near: dict[tuple[int, int], np.ndarray] = {}

    def visit(self, setting: float, chosen: np.ndarray, models: np.ndarray) -> np.ndarray:
        """Judge models of some problems; returns which problems to go on with."""
        k = int(np.flatnonzero(self.settings == setting)[0])
        X, y, loss = self.pool.reference.X, self.pool.reference.y, self.pool.selection_loss
        fold = self.problems.fold[chosen]
        for v in np.unique(fold):
            mine, rows = np.flatnonzero(fold == v), self.rows[v]
            scores = self.family.scores(models[mine], X[rows])
            losses = loss(self.family.from_scores(scores), y[rows])
            for p, of_model, lost in zip(chosen[mine], scores, losses, strict=True):
                self.scores[int(p), k], self.losses[int(p), k] = of_model, lost
        for p, model in zip(chosen[fold == 0], models[fold == 0], strict=True):
            self.near[int(p), k] = model
        self._weigh_up(k)
        return np.isin(np.arange(len(self.problems)), self.which[:, self.alive])

    def _weigh_up(self, k: int) -> None:
        """Give up trade-offs that are far behind the best pair so far, and not catching up."""
        means = self.mean_losses()[:, k]
        best = np.unravel_index(np.nanargmin(self.mean_losses()), self.evidence.shape)
        size = likelihood_size(self.pool, self.row_losses(*best))
        found = log_likelihood(self.pool, np.nan_to_num(means, nan=1.0), size)
        self.evidence[:, k] = np.where(np.isnan(means), -np.inf, found + self.log_prior[:, k])
        if not self.give_up or k == 0 or k == len(self.settings) - 1:
            return
        # What the rows say may go on as it went last; what is said before they are asked is known.
        now, before = (self.evidence[:, j] - self.log_prior[:, j] for j in (k, k - 1))
        gain = np.where(self.alive, now - np.where(np.isfinite(before), before, 0.0), 0.0)
        ahead = self.log_prior[:, k + 1 :].max(axis=1)
        choices = self.pool.choices
        expected = now + choices.hope * np.maximum(gain, 0.0) + ahead
        self.alive &= expected > self.evidence.max() - choices.hopeless

    def mean_losses(self) -> np.ndarray:
        """Mean loss of every pair, (n_trade_offs, n_settings); NaN where it was given up."""
        shares = self.pool.reference.shares
        of_problem = np.full((len(self.problems), len(self.settings)), np.nan)
        for (p, k), losses in self.losses.items():
            of_problem[p, k] = shares[self.rows[self.problems.fold[p]]] @ losses
        return np.asarray(of_problem[self.which].sum(axis=0) / len(self.pool.folds.folds))

    def row_losses(self, trade_off: Any, k: Any) -> np.ndarray:
        """Loss of each reference row where it was held out, averaged over repeats."""
        found = np.zeros(len(self.pool.reference.y))
        for rows, p in zip(self.rows, self.which[:, trade_off], strict=True):
            found[rows] += self.losses[int(p), int(k)]
        return found / len(self.pool.folds.folds)

    def near_models(self) -> np.ndarray:
        """Models of the first fold, (n_trade_offs, n_settings, n_outputs, n_features).

        Zero for pairs that were given up.
        """
        shape = next(iter(self.near.values())).shape
        found = np.zeros((*self.log_prior.shape, *shape))
        for i, p in enumerate(self.which[0]):
            for k in range(len(self.settings)):
                found[i, k] = self.near.get((int(p), k), 0.0)
        return found

    def held_out_rows(self, pairs: list[tuple[int, int]], size: float) -> HeldOutRows:
        """Scores of some pairs of trade-off and setting on every fold."""
        reference = self.pool.reference
        parts = [
            np.stack([self.scores[int(which[i]), k] for i, k in pairs], axis=-1)
            for which in self.which
        ]
        rows = np.concatenate(self.rows)
        scores = np.concatenate(parts).astype(np.float64)
        shares = reference.shares[rows] / len(self.pool.folds.folds)
        return self.pool.held_out_rows(scores, reference.y[rows], shares, size)


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
