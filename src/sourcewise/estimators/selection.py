"""Averaging over the trade-off and choosing the regularisation, on reference rows only."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import softmax

from sourcewise.core.family import WeightedProblems, kept_shares
from sourcewise.core.weights import WeightProblem
from sourcewise.estimators.measure import Measured
from sourcewise.estimators.pool import Pool, know_nothing_loss
from sourcewise.progress import counter

NO_LOSS = 1e-12
# The reference alone is taken instead of the average where that is so much less likely, in units of
# log-likelihood, and by so large a part of what the reference knows.
CLEARLY_LIKELIER, LOST_PART = 1.0, 0.25

Fit = Callable[[WeightedProblems, Any], Any]


@dataclass(frozen=True)
class Selection:
    """Cross-validated losses on the reference, and the choice made by them.

    Attributes
    ----------
    trade_offs : array of shape (n_trade_offs,)
    settings : array of shape (n_settings,)
        Values of ``C`` (NaN for an estimator of the user's own).
    losses : array of shape (n_trade_offs, n_settings)
        Mean loss on held-out reference rows.
    chosen : pair of int
        Positions in ``trade_offs`` and ``settings``: the trade-off with the largest share, and the
        regularisation.
    shares : array of shape (n_trade_offs,)
        What each trade-off's weights count in the average that is used; they sum to 1.
    """

    trade_offs: np.ndarray
    settings: np.ndarray
    losses: np.ndarray
    chosen: tuple[int, int]
    shares: np.ndarray

    @property
    def trade_off(self) -> float:
        """The lambda with the largest share."""
        return float(self.trade_offs[self.chosen[0]])

    @property
    def setting(self) -> float:
        """The chosen regularisation."""
        return float(self.settings[self.chosen[1]])

    @property
    def used(self) -> tuple[tuple[float, float], ...]:
        """Every lambda that has a share in the weights, and that share."""
        pairs = zip(self.trade_offs.tolist(), self.shares.tolist(), strict=True)
        return tuple((trade_off, share) for trade_off, share in pairs if share > 0)

    def weigh(self, discrepancies: np.ndarray, sizes: np.ndarray) -> tuple[np.ndarray, float]:
        """Average the weights over the trade-offs; also returns the main one's cut-off."""
        problem = WeightProblem.from_sources(discrepancies, sizes)
        trade_offs, shares = zip(*self.used, strict=True)
        weights = [problem.weights(trade_off) for trade_off in trade_offs]
        return np.average(weights, axis=0, weights=shares), float(problem.cutoffs(self.trade_off))


def choose_local_setting(pool: Pool) -> float:
    """Regularisation of the local models: the best on the reference alone."""
    settings = pool.family.settings
    if len(settings) == 1:
        return float(settings[0])
    held_out = pool.folds.held_out
    X, y = pool.trusted
    shares = pool.data.row_shares[pool.data.rows(pool.data.reference)]
    size = 1.0 / np.sum(shares**2)
    weights = size * np.where(held_out, 0.0, shares).T
    models = pool.family.fit(
        X, y, np.repeat(weights, len(settings), axis=1), np.tile(settings, len(held_out))
    )
    losses = pool.selection_loss(pool.family.predict(models, X), y)
    per_row = _average_held_out(losses.reshape(len(held_out), len(settings), -1), pool)
    return float(settings[np.argmin(per_row @ shares)])


def select(
    pool: Pool,
    measured: Measured,
    trade_offs: np.ndarray,
    fit: Fit | None = None,
) -> tuple[Selection, Any]:
    """Cross-validate all pairs of trade-off and regularisation in one grid of fits.

    Where weights are averaged over the trade-offs, the average is then cross-validated itself: to
    choose its regularisation, and to see that it is no worse than the reference alone. Whoever
    knows some of the fits already may bring a ``fit`` of their own: from weightings, and models of
    one nearby if there are, to models under all settings. Also returns a model of the first fold,
    which the final one will be near, or None where nothing had to be chosen.
    """
    settings, held_out = pool.family.settings, pool.folds.held_out
    if len(trade_offs) == 1 and len(settings) == 1:
        nothing = np.full((1, 1), np.nan)
        return Selection(trade_offs, settings, nothing, (0, 0), np.ones(1)), None
    problems, same = candidates(pool, measured, trade_offs)
    on_fit = None
    if fit is None:
        n_problems = len(problems.weights) + pool.protocol.averaged * len(held_out)
        on_fit = counter("selection", n_problems * len(settings))

        def fit(problems: WeightedProblems, near: Any = None) -> Any:
            return pool.family.fit_grid(problems, settings, start=near, on_fit=on_fit)

    grid = _fit_and_judge(pool, problems, fit)
    losses = grid.losses[same].reshape(len(held_out), len(trade_offs) * len(settings), -1)
    per_row = _average_held_out(losses, pool).reshape(len(trade_offs), len(settings), -1)
    shares = pool.data.row_shares[pool.data.rows(pool.data.reference)]
    mean_losses = per_row @ shares
    size = 1.0 / np.sum(shares**2)
    if not pool.data.n_classes:
        best = np.unravel_index(np.argmin(mean_losses), mean_losses.shape)
        size *= normality(per_row[best], shares)
    selection = _pick(pool, mean_losses, size, trade_offs)
    near = grid.models_of(same[selection.chosen[0]])
    if pool.protocol.averaged:
        average = _averaged(pool, measured, selection)
        known = problems.find(average)
        if on_fit is not None:
            on_fit(int(np.sum(known >= 0)) * len(settings))
        losses, near = _judge_more(pool, grid, average, known, fit, near)
        of_average = _average_held_out(losses, pool) @ shares
        alone = reference_alone(pool, selection, of_average, size)
        if alone is not None:
            selection, near = alone, grid.models_of(same[alone.chosen[0]])
        else:
            chosen = (selection.chosen[0], int(np.argmin(of_average)))
            selection = replace(selection, chosen=chosen)
    chosen_setting = selection.chosen[1]
    return selection, near[chosen_setting : chosen_setting + 1]


@dataclass(frozen=True)
class _Judged:
    """Models under all settings, problem by problem, and what they lose on the reference.

    ``losses`` has the shape (n_problems, n_settings, n_rows).
    """

    models: Any
    losses: np.ndarray

    def models_of(self, problem: int) -> Any:
        n_settings = self.losses.shape[1]
        return self.models[problem * n_settings : (problem + 1) * n_settings]


def _fit_and_judge(pool: Pool, problems: WeightedProblems, fit: Fit, near: Any = None) -> _Judged:
    X, y = pool.trusted
    models = fit(problems, near)
    losses = np.asarray(pool.selection_loss(pool.family.predict(models, X), y))
    shape = len(problems.weights), len(pool.family.settings), -1
    return _Judged(models, losses.reshape(shape))


def _judge_more(
    pool: Pool,
    grid: _Judged,
    problems: WeightedProblems,
    known: np.ndarray,
    fit: Fit,
    near: Any,
) -> tuple[np.ndarray, Any]:
    """Losses of further problems, and models of the first one.

    ``known`` says where in the grid a problem has been fitted already, or -1.
    """
    losses, new = grid.losses[known], known < 0
    models = grid.models_of(known[0])
    if new.any():
        fitted = _fit_and_judge(pool, problems.only(new), fit, near)
        losses[new] = fitted.losses
        models = fitted.models_of(0) if new[0] else models
    return losses, models


def candidates(
    pool: Pool, measured: Measured, trade_offs: np.ndarray
) -> tuple[WeightedProblems, np.ndarray]:
    """Weightings that cross-validation has to fit, and which one each (fold, trade-off) uses.

    Many trade-offs give the same weights (all of them the reference's, say): those are fitted
    once.
    """
    data, held_out = pool.data, pool.folds.held_out
    weights = np.empty((len(held_out), len(trade_offs), data.n_sources))
    totals = np.empty((len(held_out), len(trade_offs)))
    for v, (sizes, counts) in enumerate(_without_folds(pool)):
        values = np.insert(measured.without_fold[v], data.reference, 0.0)
        problem = WeightProblem.from_sources(values, sizes)
        for k, trade_off in enumerate(trade_offs):
            weights[v, k] = problem.weights(trade_off)
            totals[v, k] = total_weight(weights[v, k], sizes, counts, pool.protocol.effective_total)
    fold = np.repeat(np.arange(len(held_out)), len(trade_offs))
    flat = weights.reshape(len(fold), -1)
    keys = np.column_stack([fold, flat, totals.ravel()])
    _, first, same = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    problems = WeightedProblems(data, flat[first], totals.ravel()[first], held_out, fold[first])
    return problems, same.ravel()


def _averaged(pool: Pool, measured: Measured, selection: Selection) -> WeightedProblems:
    """Weightings of all folds by the weights that will be used.

    With a fold left out a trade-off may let sources in that it keeps out in the end, and what is
    best for those is not best for the final weights.
    """
    data, held_out = pool.data, pool.folds.held_out
    values = np.insert(measured.result.values, data.reference, 0.0)
    weights, _ = selection.weigh(values, data.sizes)
    effective = pool.protocol.effective_total
    totals = [total_weight(weights, *without, effective) for without in _without_folds(pool)]
    repeated = np.tile(weights, (len(held_out), 1))
    return WeightedProblems(data, repeated, np.array(totals), held_out, np.arange(len(held_out)))


def _without_folds(pool: Pool) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Effective sizes and numbers of rows of all sources, without each validation fold."""
    data = pool.data
    shares = data.row_shares[data.rows(data.reference)]
    for mask in pool.folds.held_out:
        sizes, counts = data.sizes.copy(), data.row_counts.copy()
        sizes[data.reference] = 1.0 / np.sum(kept_shares(shares, mask) ** 2)
        counts[data.reference] = np.sum(~mask)
        yield sizes, counts


def total_weight(
    weights: np.ndarray, sizes: np.ndarray, counts: np.ndarray, effective: bool
) -> float:
    """Return what row weights sum to, so that ``C`` means the same in every fit."""
    if effective:
        return float(1.0 / np.sum(weights**2 / sizes))
    return float(counts[weights > 0].sum())


def _average_held_out(losses: np.ndarray, pool: Pool) -> np.ndarray:
    """Each reference row's loss where it was held out, averaged over repeats.

    From (n_validation_folds, n_choices, n_rows) to (n_choices, n_rows).
    """
    held_out = pool.folds.held_out
    return np.einsum("vcn,vn->cn", losses, held_out) / len(pool.folds.folds)


def _pick(pool: Pool, losses: np.ndarray, size: float, trade_offs: np.ndarray) -> Selection:
    """Choose by mean losses on ``size`` rows, (n_trade_offs, n_settings)."""
    # Counts of errors are compared exactly: equal counts must tie.
    ranked = np.round(losses, 12)
    best = np.unravel_index(np.argmin(ranked), ranked.shape)
    chosen = (int(best[0]), int(best[1]))
    used = np.zeros(len(trade_offs))
    used[chosen[0]] = 1.0
    if pool.protocol.averaged and len(trade_offs) > 1:
        used = _shares(pool, losses.min(axis=1), size, trade_offs)
        chosen = (int(np.argmax(used)), chosen[1])
    return Selection(trade_offs, pool.family.settings, losses, chosen, used)


def reference_alone(
    pool: Pool, selection: Selection, of_average: np.ndarray, size: float
) -> Selection | None:
    """Return the choice of the reference alone, where it is clearly likelier than the average.

    A small share of the weight is no small thing where a source's features or targets are in other
    units: such sources rule the average. The reference alone is the one candidate that is the same
    with and without a validation fold.
    """
    alone = np.flatnonzero(selection.trade_offs == 0.0)
    if not len(alone):
        return None
    losses = selection.losses[alone[0]]
    least = [know_nothing_loss(pool, pool.selection_loss), of_average.min(), losses.min()]
    nothing, average, reference = _evidence(pool, np.array(least), size)
    if reference - average <= max(CLEARLY_LIKELIER, LOST_PART * (reference - nothing)):
        return None
    return replace(
        selection,
        chosen=(int(alone[0]), int(np.argmin(losses))),
        shares=(selection.trade_offs == 0.0).astype(float),
    )


def _shares(pool: Pool, losses: np.ndarray, size: float, trade_offs: np.ndarray) -> np.ndarray:
    """Shares of the trade-offs by their losses on ``size`` held-out rows."""
    protocol = pool.protocol
    deviations = doublings_from(trade_offs, protocol.preferred) / protocol.doublings
    evidence = _evidence(pool, losses, size)
    return posterior_shares(evidence, deviations, protocol.least_share)


def _evidence(pool: Pool, losses: np.ndarray, size: float) -> np.ndarray:
    """Log-likelihoods of ``size`` held-out rows by mean losses on them."""
    if pool.names_only:
        return size * error_likelihood(losses, pool.data.n_classes)
    if pool.data.n_classes:
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


def error_likelihood(error_rates: np.ndarray, n_classes: int) -> np.ndarray:
    """Log-likelihood of a row where a model names a class, and is wrong at its error rate.

    A wrong row may have any of the other classes. Nobody is worse than a guess: beyond that, the
    likelihood stays what it is there.
    """
    wrong = np.clip(error_rates, NO_LOSS, 1.0 - 1.0 / n_classes)
    return np.asarray((1.0 - wrong) * np.log1p(-wrong) + wrong * np.log(wrong / (n_classes - 1)))


def posterior_shares(
    evidence: np.ndarray, deviations: np.ndarray, least_share: float
) -> np.ndarray:
    """Share of each candidate by its log-likelihood on unseen rows and a normal prior.

    Parameters
    ----------
    evidence : array of shape (n,)
        Log-likelihoods, up to a constant.
    deviations : array of shape (n,)
        Distance from the prior's centre, in its standard deviations.
    least_share : float
        Candidates with less are left out.
    """
    shares = softmax(evidence - 0.5 * deviations**2)
    shares = np.where(shares >= min(least_share, shares.max()), shares, 0.0)
    return np.asarray(shares / shares.sum())


def doublings_from(trade_offs: np.ndarray, preferred: float) -> np.ndarray:
    """Distance on a scale of powers of two; 0 and infinity lie two doublings beyond the others."""
    inner = (trade_offs > 0) & np.isfinite(trade_offs)
    found = np.log2(np.where(inner, trade_offs, preferred) / preferred)
    found[trade_offs == 0] = found[inner].min(initial=0.0) - 2.0
    found[np.isinf(trade_offs)] = found[inner].max(initial=0.0) + 2.0
    return np.asarray(found)
