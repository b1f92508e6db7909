"""The method: measure the sources, choose a trade-off, weigh, train. A pool in, a fit out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from sourcewise.core.discrepancy.methods import LINEAR, Measured, measure
from sourcewise.core.mixture import DEFAULT_LEARNER
from sourcewise.core.threads import one_blas_thread
from sourcewise.core.weights import theory_trade_off
from sourcewise.estimators.members import choose_members, fit_members, fit_weighting, most_fits
from sourcewise.estimators.pool import Pool, Training
from sourcewise.estimators.selection import Selection, choose_local_setting, fit_average, select
from sourcewise.estimators.wrapped import EstimatorFamily
from sourcewise.progress import counter, report_progress


@dataclass(frozen=True)
class Fit:
    """What a fit has found."""

    pool: Pool
    measured: Measured  # discrepancies of the untrusted sources
    selection: Selection
    # Discrepancies and weights of all sources.
    values: np.ndarray
    weights: np.ndarray
    cutoff: float
    # (n_outputs, n_mapped) of the default learner; of a user's own a fitted estimator, or a list of
    # `Member`, among which the default learner is a `Fit`.
    model: Any
    findings: Any = None  # what the discrepancies follow from, and further ones would
    setting: float = np.nan  # regularisation of local models

    @property
    def training(self) -> Training:
        """What later fits can build on."""
        pool = self.pool
        features = (pool.linear or pool).features
        return Training(pool.rows or pool, self.findings, self.setting, features)


Known = tuple[Training, Measured]  # of an earlier fit


def fit(pool: Pool, known: Known | None = None, *, permute: bool) -> Fit:
    """Measure the sources that are not known yet, choose, weigh, train.

    Without ``permute``, p-values that need permutations, which cost as much as all else, are NaN.
    """
    with one_blas_thread(pool.options.estimator is None):
        return _fit(pool, known, permute)


def _fit(pool: Pool, known: Known | None, permute: bool) -> Fit:
    trade_offs, family = _trade_offs(pool), pool.family
    if known is not None and known[0].findings is None:
        known = None  # nothing but the reference: folds may not have been asked for
    if isinstance(family, EstimatorFamily):
        family.expect_fits(most_fits(pool, len(trade_offs)))
    with_folds = len(trade_offs) * len(family.settings) > 1
    found = measure_sources(pool, known, with_folds=with_folds, permute=permute)
    measured, later = found[0], found[1:]
    report_progress("selection")
    if not isinstance(family, EstimatorFamily):
        selection, near = select(pool, measured, trade_offs)
        report_progress("training")
        return _fit_linear(pool, measured, selection, near, *later)
    chosen = None
    if pool.choices.averaged and len(trade_offs) > 1:
        chosen = choose_members(pool, measured)
        selection = chosen.selection
    else:
        selection, _ = select(pool, measured, trade_offs)
    report_progress("training")
    values, weights, cutoff = _weigh(pool, measured, selection)
    if chosen is None:
        model = fit_weighting(pool, weights)
    else:
        linear = None
        if DEFAULT_LEARNER in chosen.shares and pool.linear is not None and chosen.linear:
            linear = _fit_linear(pool.linear, measured.linear or measured, *chosen.linear)
        model = fit_members(pool, values, chosen, linear)
    family.expect_no_more_fits()
    return Fit(pool, measured, selection, values, weights, cutoff, model, *later)


def _fit_linear(
    pool: Pool, measured: Measured, selection: Selection, near: Any, *later: Any
) -> Fit:
    values, weights, cutoff = _weigh(pool, measured, selection)
    with one_blas_thread():
        model = fit_average(pool, selection, values, near)
    return Fit(pool, measured, selection, values, weights, cutoff, model, *later)


def _weigh(
    pool: Pool, measured: Measured, selection: Selection
) -> tuple[np.ndarray, np.ndarray, float]:
    values = measured.result.with_reference(pool.position).values
    return values, *selection.weigh(values, pool.sizes)


def _trade_offs(pool: Pool) -> np.ndarray:
    wanted = pool.options.trade_off
    if wanted == "cv" and pool.n_sources > 1:
        return pool.choices.trade_offs
    return np.array([theory_trade_off() if wanted in ("cv", "theory") else float(wanted)])


def measure_sources(
    pool: Pool, known: Known | None = None, *, with_folds: bool = False, permute: bool = True
) -> tuple[Measured, Any, float]:
    """Measure sources; also return all findings and the local models' regularisation."""
    report_progress("discrepancies")
    n_untrusted, n_known, found = pool.n_sources - 1, 0, None
    if known is not None:
        earlier, measured = known
        n_known, found, setting = len(measured.result.values), earlier.findings, earlier.setting
        if n_known == n_untrusted:
            return measured, found, setting
    elif pool.options.discrepancy in LINEAR:  # which have none
        setting = np.nan
    else:
        setting = choose_local_setting(pool.linear or pool)
    survey = pool.survey(
        setting,
        with_folds=with_folds,
        permute=permute,
        on_answer=counter("discrepancies", n_untrusted - n_known),
    )
    asked = range(n_known, n_untrusted)
    return *measure(pool.options.discrepancy, survey, asked, known=found), setting
