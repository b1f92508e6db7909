r"""A second look at every source, with a model that has learnt from the others.

The reference's own model has seen few rows. Where it is weak, so is its testimony: it loses hardly
less on clean labels than on random ones. Once the ``local`` discrepancies have given a first idea
of whom to trust, a model of the reference *and* of other sources, weighted by them, knows more:

.. math:: a'_i = \hat\epsilon_i(h') - \hat\epsilon_T(h').

:math:`h'` has seen neither source :math:`i` (sources are dealt into groups, and a group is judged
by models of the others) nor the reference rows that it is judged on, so the difference has mean
zero under "same distribution as the reference", as that of the reference's own model has.

Bad sources may have misled :math:`h'`. It is therefore heard only where it beats the reference's
own model on reference rows that it has not seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sourcewise.core.data import FloatArray, IntArray, SourceData
from sourcewise.core.discrepancy.evidence import ReferenceFolds, RowLoss, row_blocks
from sourcewise.core.discrepancy.local import TwoSided
from sourcewise.core.discrepancy.result import Discrepancies, Witness
from sourcewise.core.linear import Family, WeightedProblems, kept_shares
from sourcewise.core.weights import solve_weights, theory_trade_off

N_GROUPS = 3
# A cautious trade-off and theory's own; the better one on the reference is used.
TRADE_OFFS = theory_trade_off() * np.array([0.25, 1.0])
# A source's own model is a noisy witness: it is believed beyond so many standard errors.
BEYOND_DOUBT = 3.0
# Only the reference is at distance zero: lambda = 0 must leave every other source out.
NEAREST = 1e-6


@dataclass(frozen=True)
class SecondLook:
    """Differences under the best model there is, on the whole reference and without each fold.

    Attributes
    ----------
    a : array of shape (n_sets, n_sources)
        Mean loss of the source minus that of the reference.
    reference_errors : array of shape (n_sets,)
        Standard error of the reference's mean loss, which all differences share.
    errors : array of shape (n_sources,)
        Standard errors of the differences in set 0, the models held fixed.
    pooled : bool array of shape (n_sets,)
        Whether the model has learnt from other sources; else it is the reference's own.
    """

    a: FloatArray
    reference_errors: FloatArray
    errors: FloatArray
    pooled: NDArray[np.bool_]


@dataclass(frozen=True)
class _Plan:
    """Which fits are needed, and which set averages them how.

    Attributes
    ----------
    held_out : bool array of shape (n_fits, n_reference_rows)
        Rows that a fit leaves out.
    judged : bool array of shape (n_fits, n_reference_rows)
        Those of them that it is judged on.
    values_of : int array of shape (n_fits,)
        Validation fold without which the weights were computed.
    average : array of shape (n_sets, n_fits)
    """

    held_out: NDArray[np.bool_]
    judged: NDArray[np.bool_]
    values_of: IntArray
    average: FloatArray

    @classmethod
    def of(cls, folds: ReferenceFolds, shares: FloatArray) -> _Plan:
        n_repeats, k = len(folds.folds), folds.n_folds
        held_out: list[NDArray[np.bool_]] = []
        judged: list[NDArray[np.bool_]] = []
        values_of: list[int] = []
        entries: list[tuple[int, int, float]] = []
        for r in range(n_repeats):
            mass = np.bincount(folds.folds[r], shares, minlength=k)
            for v in range(-1, k):
                for f in range(k):
                    if f == v:
                        continue
                    inside = folds.folds[r] == f
                    chosen_set = 0 if v < 0 else 1 + r * k + v
                    weight = mass[f] / (n_repeats if v < 0 else 1.0 - mass[v])
                    entries.append((chosen_set, len(judged), weight))
                    judged.append(inside)
                    held_out.append(inside | (folds.folds[r] == v))
                    # Whatever a model is judged on must have had no say in its weights.
                    values_of.append(r * k + (f if v < 0 else v))
        average = np.zeros((1 + n_repeats * k, len(judged)))
        for chosen_set, fit, weight in entries:
            average[chosen_set, fit] = weight
        return cls(np.stack(held_out), np.stack(judged), np.array(values_of), average)


def second_look(
    data: SourceData,
    asked: Sequence[int],
    groups: IntArray,
    sides: Sequence[TwoSided],
    without_fold: FloatArray,
    folds: ReferenceFolds,
    family: Family,
    row_loss: RowLoss,
    setting: float,
) -> SecondLook:
    """Judge the sources at positions ``asked`` by models of the reference and other groups.

    Parameters
    ----------
    data : SourceData
    asked : sequence of int
    groups : int array of shape (len(asked),)
        Group of each source, from 0 on.
    sides : sequence of TwoSided, one for each set
        What the first look found.
    without_fold : array of shape (n_validation_folds, len(asked))
        Discrepancies by the first look.
    folds, family, row_loss, setting
        As for the first look.
    """
    trusted = data.rows(data.reference)
    shares = data.row_shares[trusted]
    plan = _Plan.of(folds, shares)
    n_groups = int(groups.max()) + 1
    weights = _weights(data, asked, groups, without_fold, plan)
    models, which = _fit(data, weights, plan, family, setting)
    n_sets, n_options = len(plan.average), len(TRADE_OFFS)
    own = np.empty((n_sets, n_options, n_groups, len(shares)))
    means = np.empty((n_sets, n_options, len(asked)))
    variances = np.empty((n_options, len(asked)))
    for g in range(n_groups):
        for o in range(n_options):
            mine = models[which[:, o, g]]
            losses = row_loss(family.predict(mine, data.X[trusted]), data.y[trusted])
            own[:, o, g] = _own_losses(plan, losses, folds)
            members = np.flatnonzero(groups == g)
            means[:, o, members], variances[o, members] = _source_losses(
                data, [asked[int(i)] for i in members], mine, plan.average, family, row_loss
            )
    kept = ~np.isnan(own[:, 0, 0])
    set_shares = np.where(kept, shares, 0.0)
    set_shares /= set_shares.sum(axis=1, keepdims=True)
    sizes = 1.0 / np.sum(set_shares**2, axis=1)
    found = np.nan_to_num(own) @ set_shares[:, None, :, None]
    reference_means = found[..., 0]  # (n_sets, n_options, n_groups)
    best = np.argmin(reference_means.mean(axis=2), axis=1)
    result = SecondLook(
        np.empty((n_sets, len(asked))),
        np.empty(n_sets),
        np.empty(len(asked)),
        np.empty(n_sets, dtype=bool),
    )
    for s in range(n_sets):
        o = best[s]
        result.pooled[s] = reference_means[s, o].mean() < sides[s].reference_loss
        if not result.pooled[s]:
            result.a[s] = sides[s].a
            result.reference_errors[s] = sides[s].reference_error
            if s == 0:
                result.errors[:] = sides[s].error_a
            continue
        result.a[s] = means[s, o] - reference_means[s, o][groups]
        spread = own[s, o].mean(axis=0) - reference_means[s, o].mean()
        variance = np.nansum(set_shares[s] * spread**2) * sizes[s] / max(sizes[s] - 1.0, 1.0)
        result.reference_errors[s] = np.sqrt(variance / sizes[s])
        if s == 0:
            # One row has no variance of its own; the reference's stands in.
            theirs = np.where(np.isnan(variances[o]), variance, variances[o])
            source_sizes = data.sizes[np.asarray(asked, dtype=np.intp)]
            result.errors[:] = np.sqrt(theirs / source_sizes + variance / sizes[s])
    return result


def _weights(
    data: SourceData,
    asked: Sequence[int],
    groups: IntArray,
    without_fold: FloatArray,
    plan: _Plan,
) -> FloatArray:
    """Source weights of every fit, (n_fits, n_options, n_groups, n_sources)."""
    n_groups = int(groups.max()) + 1
    weights = np.zeros((len(plan.judged), len(TRADE_OFFS), n_groups, data.n_sources))
    positions = np.asarray(asked, dtype=np.intp)
    shares = data.row_shares[data.rows(data.reference)]
    sizes = data.sizes
    for fit, held_out in enumerate(plan.held_out):
        sizes[data.reference] = 1.0 / np.sum(kept_shares(shares, held_out) ** 2)
        for g in range(n_groups):
            others = groups != g
            used = np.append(positions[others], data.reference)
            values = np.append(without_fold[plan.values_of[fit], others], 0.0)
            for o, trade_off in enumerate(TRADE_OFFS):
                weights[fit, o, g, used] = solve_weights(values, sizes[used], float(trade_off))
    return weights


def _fit(
    data: SourceData, weights: FloatArray, plan: _Plan, family: Family, setting: float
) -> tuple[FloatArray, IntArray]:
    """Fit every distinct weighting once; also returns which model each fit uses."""
    fold = np.broadcast_to(np.arange(len(weights))[:, None, None], weights.shape[:3]).ravel()
    flat = weights.reshape(len(fold), -1)
    _, first, same = np.unique(
        np.column_stack([fold, flat]), axis=0, return_index=True, return_inverse=True
    )
    shares = data.row_shares[data.rows(data.reference)]
    squares = np.tile(1.0 / data.sizes, (len(plan.held_out), 1))
    squares[:, data.reference] = [np.sum(kept_shares(shares, out) ** 2) for out in plan.held_out]
    totals = 1.0 / np.sum(flat[first] ** 2 * squares[fold[first]], axis=1)
    problems = WeightedProblems(data, flat[first], totals, plan.held_out, fold[first])
    models = family.fit_grid(problems, np.array([setting]))
    return models, same.reshape(weights.shape[:3])


def _own_losses(plan: _Plan, losses: FloatArray, folds: ReferenceFolds) -> FloatArray:
    """Cross-fitted loss of each reference row in each set, NaN where the set leaves it out."""
    judged = np.where(plan.judged, losses, 0.0)
    used = plan.average > 0
    times = used.astype(float) @ plan.judged
    with np.errstate(invalid="ignore"):
        return np.asarray((used.astype(float) @ judged) / np.where(times > 0, times, np.nan))


def _source_losses(
    data: SourceData,
    sources: Sequence[int],
    models: FloatArray,
    average: FloatArray,
    family: Family,
    row_loss: RowLoss,
) -> tuple[FloatArray, FloatArray]:
    """Mean loss of each source in each set, and the variance of a row's loss in set 0."""
    means = np.empty((len(average), len(sources)))
    variances = np.empty(len(sources))
    counts = data.row_counts[np.asarray(sources, dtype=np.intp)]
    for block in row_blocks(counts):
        chosen = sources[block]
        rows = np.concatenate([np.arange(data.starts[i], data.starts[i + 1]) for i in chosen])
        starts = np.concatenate([[0], np.cumsum(counts[block])[:-1]])
        shares = data.row_shares[rows]
        losses = row_loss(family.predict(models, data.X[rows]), data.y[rows])
        means[:, block] = average @ np.add.reduceat(losses * shares, starts, axis=1)
        squares = np.add.reduceat((average[0] @ losses) ** 2 * shares, starts)
        sizes = 1.0 / np.add.reduceat(shares**2, starts)
        spread = np.maximum(squares - means[0, block] ** 2, 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            variances[block] = np.where(sizes > 1.5, spread * sizes / (sizes - 1.0), np.nan)
    return means, variances


def judge(sides: TwoSided, look: SecondLook, chosen_set: int = 0) -> FloatArray:
    r"""Discrepancies from both looks.

    .. math:: d_i = \max(a'_i + s_T,\; b_i - 3 s(b_i))

    and never quite zero.

    :math:`s_T` is the standard error of the reference's mean loss, common to all sources: the
    difference may well be larger by that much. The source's own model speaks through :math:`b_i`,
    where it is beyond doubt.
    """
    by_model = look.a[chosen_set] + look.reference_errors[chosen_set]
    own = np.nan_to_num(sides.b - BEYOND_DOUBT * sides.error_b, nan=-1.0)
    return np.asarray(np.maximum(np.maximum(by_model, own), NEAREST))


def judged_discrepancies(sides: TwoSided, look: SecondLook, p_values: FloatArray) -> Discrepancies:
    """Values, standard errors and witnesses on the whole reference."""
    values = judge(sides, look)
    own = np.nan_to_num(sides.b - BEYOND_DOUBT * sides.error_b, nan=-1.0)
    by_own_model = own > look.a[0] + look.reference_errors[0]
    errors = np.where(by_own_model, sides.error_b, look.errors)
    name = "pooled model" if look.pooled[0] else "reference model"
    witnesses = tuple(
        Witness("source model", "reference")
        if use_own
        else Witness(name, "source" if a >= 0 else "reference")
        for use_own, a in zip(by_own_model, look.a[0], strict=True)
    )
    return Discrepancies(values, errors, p_values, witnesses)
