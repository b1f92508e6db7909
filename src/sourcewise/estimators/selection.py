"""Averaging over the trade-off and the regularisation, on reference rows only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from sourcewise.core.discrepancy.methods import Measured
from sourcewise.core.family import WeightedProblems
from sourcewise.core.weights import WeightProblem
from sourcewise.estimators.cross_validation import (
    Fit,
    average_held_out,
    candidates,
    fit_and_judge,
)
from sourcewise.estimators.likelihood import likelihood_size, log_likelihood, setting_prior
from sourcewise.estimators.model_average import mix_models
from sourcewise.estimators.pool import Pool
from sourcewise.estimators.weight_average import average_weights, averaged_weights
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
        weights = averaged_weights(discrepancies, sizes, self.trade_offs, self.shares)
        problem = WeightProblem.from_sources(discrepancies, sizes)
        return weights, float(problem.cutoffs(self.trade_off))


def choose_local_setting(pool: Pool) -> float:
    """Regularisation of the local models: the most probable on the reference alone."""
    settings = pool.family.settings
    if len(settings) == 1:
        return float(settings[0])
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
    return float(settings[np.argmax(evidence + setting_prior(pool))])


def select(
    pool: Pool,
    measured: Measured,
    trade_offs: np.ndarray,
    fit: Fit | None = None,
) -> tuple[Selection, Any]:
    """Cross-validate all pairs of trade-off and regularisation in one grid of fits.

    Where the trade-off is given, the best regularisation is chosen for it. Whoever knows some of
    the fits already may bring a ``fit`` of their own, from weightings to models under all settings.
    Also returns models of the first fold under all settings, which the final ones will be near, or
    None where nothing had to be chosen.
    """
    settings, held_out = pool.family.settings, pool.folds.held_out
    if len(trade_offs) == 1 and len(settings) == 1:
        return Selection(trade_offs, settings, np.full((1, 1), np.nan), np.ones((1, 1))), None
    problems, same = candidates(pool, measured, trade_offs)
    averaged = pool.choices.averaged and len(trade_offs) > 1
    if fit is None:
        averages_weights = averaged and not pool.family.linear
        n_problems = len(problems) + averages_weights * len(held_out)
        on_fit = counter("selection", n_problems * len(settings))

        def fit(problems: WeightedProblems) -> Any:
            return pool.family.fit_grid(problems, settings, on_fit=on_fit)

    grid = fit_and_judge(pool, problems, fit)
    losses = grid.losses[same].reshape(len(held_out), len(trade_offs) * len(settings), -1)
    per_row = average_held_out(losses, pool).reshape(len(trade_offs), len(settings), -1)
    mean_losses = per_row @ pool.reference.shares
    # Counts of errors are compared exactly: equal counts must tie.
    best = np.unravel_index(np.argmin(np.round(mean_losses, 12)), mean_losses.shape)
    size = likelihood_size(pool, per_row[best])
    if not averaged:
        mixture = np.zeros(mean_losses.shape)
        mixture[best] = 1.0
    elif pool.family.linear:
        mixture = mix_models(pool, measured, np.asarray(grid.models), same, trade_offs, size)
    else:
        mixture = average_weights(
            pool, measured, grid, problems, fit, mean_losses[:, 0], size, trade_offs
        )[:, None]
    selection = Selection(trade_offs, settings, mean_losses, mixture)
    return selection, grid.models_of(same[np.argmax(selection.shares)])
