"""Members of the average behind an estimator of the user's own, and their shares in it.

The default learner; the estimator on the reference alone, on weighted sources, and on all rows
with their sources told: each says what it makes of reference rows that it has not seen, and
Q-aggregation (`core/mixture.py`) finds what each counts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sourcewise.core.data import SourceData
from sourcewise.core.discrepancy.methods import Measured
from sourcewise.core.family import WeightedProblems
from sourcewise.core.mixture import (
    ALONE,
    DEFAULT_LEARNER,
    TOLD,
    WEIGHTED,
    HeldOutRows,
    mixture_shares,
)
from sourcewise.core.threads import one_blas_thread
from sourcewise.core.weights import WeightProblem
from sourcewise.estimators.averaged import Member, log_odds, with_doubt
from sourcewise.estimators.cross_validation import (
    candidates,
    normality,
    total_weight,
    without_small,
)
from sourcewise.estimators.fitting import aims_as_default, told_columns
from sourcewise.estimators.pool import Pool
from sourcewise.estimators.selection import Selection, held_out_scores, select_pairs
from sourcewise.estimators.wrapped import EstimatorFamily, Job
from sourcewise.progress import counter


@dataclass(frozen=True)
class MemberChoice:
    """Who takes part in the average."""

    shares: dict[str, float]  # what each member counts; one that counts nothing is not there
    # Error rates of members that only name classes, on held-out rows; empty if all have
    # probabilities.
    wrong: dict[str, float]
    selection: Selection  # the same as shares of trade-offs
    linear: tuple[Selection, Any] | None  # the default learner's, and models near its final ones


def choose_members(pool: Pool, measured: Measured) -> MemberChoice:
    """Judge all members on held-out reference rows, and find their shares."""
    held_out, linear = HeldOut(pool), None
    if pool.linear is not None and aims_as_default(estimator_family(pool).estimator):
        linear = _ask_linear(pool.linear, measured.linear or measured, held_out)
    problems, same = candidates(pool, measured, np.array([0.0, pool.choices.preferred, np.inf]))
    which = dict(zip((ALONE, WEIGHTED, TOLD), same.reshape(-1, 3).T, strict=True))
    folds = range(len(pool.folds.held_out))
    on_fit = counter("selection", len(which) * len(folds))
    first = pool.choices.first_folds
    for some in (folds[:first], folds[first:]):
        hopeful = {name: which[name] for name in which if held_out.is_hopeful(name)}
        _ask_estimator(pool, problems, hopeful, some, held_out, on_fit)
    shares = held_out.shares()
    selection = _as_trade_offs(pool, held_out, shares, None if linear is None else linear[0])
    return MemberChoice(shares, held_out.wrong, selection, linear)


def most_fits(pool: Pool, n_trade_offs: int) -> int:
    """How often the estimator is fitted at most; 0 where that depends on the data.

    The fold models of the reference judge the sources, and stand for one of the members.
    """
    n_folds = len(pool.folds.held_out)
    if pool.options.discrepancy == "local" or (n_trade_offs > 1 and not pool.choices.averaged):
        return 0
    return n_folds + 1 if n_trade_offs == 1 else 3 * (n_folds + 1)


class HeldOut:
    """What members say of reference rows that they have not seen."""

    def __init__(self, pool: Pool):
        self.pool = pool
        # Probabilities or predictions by name; NaN where a member has not been asked.
        self.predicted: dict[str, np.ndarray] = {}

    def add(self, name: str, rows: np.ndarray, predicted: np.ndarray) -> None:
        """Take what a member says of some rows."""
        if name not in self.predicted:
            shape = len(self.pool.reference.y), *predicted.shape[1:]
            self.predicted[name] = np.full(shape, np.nan)
        self.predicted[name][rows] = predicted

    @property
    def wrong(self) -> dict[str, float]:
        """Error rates of members that only name classes."""
        if not self.pool.family.names_only:
            return {}
        return {name: self._error_rate(name) for name in self.predicted if name != DEFAULT_LEARNER}

    def _error_rate(self, name: str) -> float:
        reference, predicted = self.pool.reference, self.predicted[name]
        known = ~np.isnan(predicted[:, 0])
        missed = predicted[known].argmax(axis=1) != reference.y[known]
        rate = missed @ reference.shares[known] / reference.shares[known].sum()
        guess = 1.0 - 1.0 / self.pool.n_classes
        return float(np.clip(rate, self.pool.choices.least_chance, guess))

    def is_hopeful(self, name: str) -> bool:
        """Whether a member is not far behind the best, on the rows that all have been asked for."""
        if name not in self.predicted:
            return True
        rows = self._rows()
        costs = rows.costs(rows.scores)
        behind = costs[list(self.predicted).index(name)] - costs.min()
        return bool(behind <= self.pool.choices.hopeless)

    def shares(self) -> dict[str, float]:
        """Find the share of every member that has been asked for all rows."""
        self.predicted = {n: p for n, p in self.predicted.items() if not np.isnan(p).any()}
        choices, n = self.pool.choices, len(self.predicted)
        found = mixture_shares(self._rows(), np.zeros(n), choices.joint)
        kept = without_small(found, choices.least_share)
        return {k: float(share) for k, share in zip(self.predicted, kept, strict=True) if share > 0}

    def mean_loss(self, name: str) -> float:
        """Mean loss of a member that has been asked for all rows; NaN of others."""
        if name not in self.predicted:
            return float("nan")
        pool = self.pool
        losses = pool.selection_loss(self.predicted[name][None], pool.reference.y)
        return float(losses[0] @ pool.reference.shares)

    def _rows(self) -> HeldOutRows:
        """Scores of all members on rows that all have been asked for."""
        pool, reference = self.pool, self.pool.reference
        scores = np.stack([self._scores(name) for name in self.predicted], axis=-1)
        rows = np.flatnonzero(~np.isnan(scores).any(axis=(1, 2)))
        scores, y, shares = scores[rows], reference.y[rows], reference.shares[rows]
        size, shares = reference.size * float(shares.sum()), shares / shares.sum()
        if not pool.n_classes:
            losses = pool.bounded_loss(scores[:, 0].T, y)
            size *= normality(losses[np.argmin(losses @ shares)], shares)
        return pool.held_out_rows(scores, y, shares, size)

    def _scores(self, name: str) -> np.ndarray:
        """Log-odds (n_rows, n_outputs), or predictions (n_rows, 1)."""
        predicted = self.predicted[name]
        if not self.pool.n_classes:
            return predicted[:, None]
        if name in self.wrong:
            predicted = with_doubt(predicted, self.wrong[name])
        return log_odds(predicted, self.pool.choices.least_chance)


def _ask_linear(pool: Pool, measured: Measured, held_out: HeldOut) -> tuple[Selection, Any]:
    """Choose the default learner's pairs, and ask their average."""
    with one_blas_thread():
        selection, grid = select_pairs(pool, measured, pool.choices.trade_offs)
        scores = held_out_scores(grid, selection.mixture)
    predicted = grid.family.from_scores(scores[None])[0]
    held_out.add(DEFAULT_LEARNER, np.arange(len(predicted)), predicted)
    return selection, grid.near_models()


def _ask_estimator(
    pool: Pool,
    problems: WeightedProblems,
    which: dict[str, np.ndarray],
    folds: Sequence[int],
    held_out: HeldOut,
    on_fit: Callable[[int], None],
) -> None:
    """Fit members without some of the folds, and ask each for the fold it has not seen."""
    family, data = estimator_family(pool), pool.data
    asked = [(name, v) for v in folds for name in which]
    models = family.fit_all(
        [
            member_job(data, problems.row_weights(data, which[name][v]), name == TOLD)
            for name, v in asked
        ],
        on_fit,
    )
    for (name, v), model in zip(asked, models, strict=True):
        rows = np.flatnonzero(pool.folds.held_out[v])
        held_out.add(name, rows, family.predict([model], pool.reference.X[rows])[0])


def member_job(data: SourceData, weights: np.ndarray, told: bool) -> Job:
    """Return the fit to some row weights, with or without the sources told."""
    columns = None
    if told:
        columns = told_columns(data.source_of_row, data.n_sources, data.reference)
    return Job(data.X[:, 0], data.y, weights, columns)


def estimator_family(pool: Pool) -> EstimatorFamily:
    """Return the family of a pool of the user's own estimator."""
    assert isinstance(pool.family, EstimatorFamily)
    return pool.family


def _as_trade_offs(
    pool: Pool, held_out: HeldOut, shares: dict[str, float], linear: Selection | None
) -> Selection:
    """Express the members that weigh sources as shares of trade-offs.

    The one that is told the sources does not weigh them. If it counts alone, they have the weights
    of the estimator on weighted sources.
    """
    trade_offs = pool.choices.trade_offs
    mixture, losses = np.zeros(len(trade_offs)), np.full(len(trade_offs), np.nan)
    if linear is not None:
        mixture += shares.get(DEFAULT_LEARNER, 0.0) * linear.shares
    for name, trade_off in ((ALONE, 0.0), (WEIGHTED, pool.choices.preferred)):
        at = int(np.argmin(np.abs(trade_offs - trade_off)))
        mixture[at] += shares.get(name, 0.0)
        losses[at] = held_out.mean_loss(name)
        if name == WEIGHTED and not mixture.any():
            mixture[at] = 1.0
    mixture /= mixture.sum()
    return Selection(trade_offs, pool.family.settings, losses[:, None], mixture[:, None])


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
