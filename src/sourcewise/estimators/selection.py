"""Averaging over the trade-off and the regularisation, on reference rows only."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from sourcewise.core.discrepancy.methods import Measured
from sourcewise.core.family import LinearFamily, Visit, WeightedProblems
from sourcewise.core.mixture import mixture_shares
from sourcewise.core.weights import WeightProblem
from sourcewise.estimators.cross_validation import (
    HeldOutGrid,
    average_held_out,
    candidates,
    cutoff_problems,
    likelihood_size,
    log_likelihood,
    setting_prior,
    weighting,
    without_small,
)
from sourcewise.estimators.pool import Pool
from sourcewise.progress import counter


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
    mixture : array of shape (n_trade_offs, n_settings)
        What each pair's model counts in the final one, or each trade-off in the weights of an
        estimator of the user's own. They sum to 1; where one pair was chosen it has all.
    """

    trade_offs: np.ndarray
    settings: np.ndarray
    losses: np.ndarray
    mixture: np.ndarray

    @property
    def shares(self) -> np.ndarray:
        """What each trade-off counts in the average that is used; they sum to 1."""
        return np.asarray(self.mixture.sum(axis=1))

    @property
    def trade_off(self) -> float:
        """The lambda with the largest share."""
        return float(self.trade_offs[np.argmax(self.shares)])

    @property
    def setting(self) -> float:
        """The regularisation with the largest share."""
        return float(self.settings[np.argmax(self.mixture.sum(axis=0))])

    @property
    def used(self) -> tuple[tuple[float, float], ...]:
        """Every lambda that has a share in the weights, and that share."""
        pairs = zip(self.trade_offs.tolist(), self.shares.tolist(), strict=True)
        return tuple((trade_off, share) for trade_off, share in pairs if share > 0)

    def weigh(self, discrepancies: np.ndarray, sizes: np.ndarray) -> tuple[np.ndarray, float]:
        """Average the weights over the trade-offs; also returns the main one's cut-off."""
        problem = WeightProblem.from_sources(discrepancies, sizes)
        used = np.flatnonzero(self.shares)
        weights = [problem.weights(trade_off) for trade_off in self.trade_offs[used]]
        averaged = np.average(weights, axis=0, weights=self.shares[used])
        return np.asarray(averaged), float(problem.cutoffs(self.trade_off))


def choose_local_setting(pool: Pool) -> float:
    """Regularisation of the local models: the most probable on the reference alone."""
    settings = pool.family.settings
    if len(settings) == 1:
        return float(settings[0])
    return float(settings[np.argmax(setting_evidence(pool))])


def setting_evidence(pool: Pool) -> np.ndarray:
    """Log-likelihood of held-out reference rows under each regularisation, and its prior."""
    settings = pool.family.settings
    held_out = pool.folds.held_out
    X, y, shares = pool.reference.X, pool.reference.y, pool.reference.shares
    weights = pool.reference.size * np.where(held_out, 0.0, shares).T
    models = pool.family.fit(
        X, y, np.repeat(weights, len(settings), axis=1), np.tile(settings, len(held_out))
    )
    losses = pool.selection_loss(pool.family.predict(models, X), y)
    per_row = average_held_out(losses.reshape(len(held_out), len(settings), -1), pool)
    means = per_row @ shares
    evidence = log_likelihood(pool, means, likelihood_size(pool, per_row[np.argmin(means)]))
    return np.asarray(evidence + setting_prior(pool))


def select(
    pool: Pool,
    measured: Measured,
    trade_offs: np.ndarray,
    alone: np.ndarray | None = None,
) -> tuple[Selection, np.ndarray | None]:
    """Cross-validate all pairs of trade-off and regularisation in one grid of fits.

    Where the trade-off is given, the best regularisation is chosen for it. Whoever knows the models
    of the reference ``alone`` already, (n_folds, n_settings, n_outputs, n_features), may bring
    them. Also returns models that the final ones will be near, as `fit_average` takes them, or None
    where there are none.
    """
    settings = pool.family.settings
    if len(trade_offs) == 1 and len(settings) == 1:
        return Selection(trade_offs, settings, np.full((1, 1), np.nan), np.ones((1, 1))), None
    if pool.family.linear:
        selection, grid = select_pairs(pool, measured, trade_offs, alone)
        return selection, grid.near_models()
    return _select_best(pool, measured, trade_offs), None


def select_pairs(
    pool: Pool, measured: Measured, trade_offs: np.ndarray, alone: np.ndarray | None = None
) -> tuple[Selection, HeldOutGrid]:
    """Choose, or average, pairs of trade-off and regularisation of a linear model.

    Also returns what all pairs say of held-out rows.
    """
    problems, same = candidates(pool, measured, trade_offs)
    which = same.reshape(len(pool.folds.held_out), -1)
    averaged = pool.choices.averaged and len(trade_offs) > 1
    if averaged:
        # Without a fold a trade-off may let in what it keeps out in the end. What is best for such
        # sources, to know nothing, say, because their targets are in other units, is not best then.
        # Known before the walk: the reference alone is not given up for what nobody will use.
        left_alone = leave_reference_alone(pool, measured, trade_offs)
        which[:, left_alone] = which[:, np.argmin(trade_offs)][:, None]
    grid = HeldOutGrid(pool, problems, which, trade_offs, give_up=averaged)
    _walk(grid, alone)
    losses = grid.mean_losses()
    best = _lowest(losses)
    if averaged:
        mixture = mix_models(grid, likelihood_size(pool, grid.row_losses(*best)))
    else:
        mixture = np.zeros(losses.shape)
        mixture[best] = 1.0
    return Selection(trade_offs, pool.family.settings, losses, mixture), grid


def _walk(grid: HeldOutGrid, alone: np.ndarray | None) -> None:
    """Fit the grid; models of the reference alone may be known."""
    problems, settings = grid.problems, grid.settings
    on_fit = counter("selection", len(problems) * len(settings))
    walk = grid.family.walk_grid if grid.give_up else partial(_fit_all, grid.family)
    if alone is None:
        walk(problems, settings, grid.visit, on_fit)
        return
    others = problems.weights.of(slice(None)).any(axis=0)
    known, new = np.flatnonzero(~others), np.flatnonzero(others)
    left = settings.tolist()

    def visit(setting: float, chosen: np.ndarray, models: np.ndarray) -> np.ndarray:
        mine = alone[problems.fold[known], np.flatnonzero(settings == setting)[0]]
        left.remove(setting)
        wanted = grid.visit(
            setting, np.concatenate([known, new[chosen]]), np.concatenate([mine, models])
        )
        return np.asarray(wanted[new])

    if len(new):
        walk(problems.only(others), settings, visit, on_fit)
    nobody = np.array([], dtype=np.intp)
    for setting in tuple(left):  # nobody else has got so far
        visit(setting, nobody, np.empty((0, *alone.shape[2:])))


def _fit_all(
    family: LinearFamily,
    problems: WeightedProblems,
    settings: np.ndarray,
    visit: Visit,
    on_fit: Callable[[int], None],
) -> None:
    """Show models to a visitor who gives nothing up: side by side they are fitted faster."""
    models = family.fit_grid(problems, settings, on_fit)
    models = models.reshape(len(problems), len(settings), *models.shape[1:])
    for k in np.argsort(settings):
        visit(float(settings[k]), np.arange(len(problems)), models[:, k])


def _select_best(pool: Pool, measured: Measured, trade_offs: np.ndarray) -> Selection:
    """Choose the trade-off of an estimator of the user's own that loses least."""
    settings, held_out = pool.family.settings, pool.folds.held_out
    problems, same = candidates(pool, measured, trade_offs)
    on_fit = counter("selection", len(problems))
    predicted = pool.family.predict(
        pool.family.fit_grid(problems, settings, on_fit), pool.reference.X
    )
    losses = np.asarray(pool.selection_loss(predicted, pool.reference.y))
    losses = average_held_out(losses[same].reshape(len(held_out), len(trade_offs), -1), pool)
    losses = (losses @ pool.reference.shares)[:, None]
    shares = np.zeros(losses.shape)
    shares[_lowest(losses)] = 1.0
    return Selection(trade_offs, settings, losses, shares)


def _lowest(losses: np.ndarray) -> tuple[Any, ...]:
    """Where losses are lowest. Counts of errors are compared exactly: equal counts must tie."""
    return np.unravel_index(np.nanargmin(np.round(losses, 12)), losses.shape)


def mix_models(grid: HeldOutGrid, size: float) -> np.ndarray:
    """Return each pair's share in the final model, (n_trade_offs, n_settings)."""
    choices = grid.pool.choices
    known = ~np.isnan(grid.mean_losses())
    pairs = [(int(i), int(k)) for i, k in np.argwhere(known)]
    rows = grid.held_out_rows(pairs, size)
    mixture = np.zeros(known.shape)
    mixture[known] = mixture_shares(rows, grid.log_prior[known], choices.joint)
    by_trade_off = mixture.sum(axis=1)
    kept = without_small(by_trade_off, choices.least_share)
    factors = np.divide(kept, by_trade_off, out=np.zeros_like(kept), where=kept > 0.0)
    return without_small(mixture * factors[:, None], choices.least_pair)


def leave_reference_alone(pool: Pool, measured: Measured, trade_offs: np.ndarray) -> np.ndarray:
    """Whether each trade-off gives all weight to the reference, as the smallest of them does."""
    values = np.insert(measured.result.values, pool.position, 0.0)
    problem = WeightProblem.from_sources(values, pool.sizes)
    alone = [problem.weights(trade_off)[pool.position] == 1.0 for trade_off in trade_offs]
    return np.array(alone)


def held_out_scores(grid: HeldOutGrid, mixture: np.ndarray) -> np.ndarray:
    """Scores of the average on the reference's rows, (n_rows, n_outputs).

    Each row is scored by models that have not seen it, of the first split into folds.
    """
    pairs = [(int(i), int(k)) for i, k in np.argwhere(mixture)]
    shares = np.array([mixture[pair] for pair in pairs])
    folds = range(grid.pool.folds.n_folds)
    scores = [
        np.stack([grid.scores[int(grid.which[v, i]), k] for i, k in pairs], axis=-1) @ shares
        for v in folds
    ]
    rows = np.concatenate([grid.rows[v] for v in folds])
    return np.asarray(np.concatenate(scores)[np.argsort(rows)], dtype=np.float64)


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
