r"""A second look at every source, with a model that has learnt from the others.

The reference's own model has seen few rows. Where it is weak, so is its testimony: it loses hardly
less on clean labels than on random ones. Once the sources' pulls have given a first idea of whom to
trust, a model of the reference *and* of other sources, weighted by them, knows more:

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
from sourcewise.core.discrepancy.evidence import RowLoss, row_blocks
from sourcewise.core.discrepancy.local import TwoSided
from sourcewise.core.discrepancy.reference_folds import ReferenceFolds
from sourcewise.core.family import Family, WeightedProblems, kept_shares
from sourcewise.core.weights import solve_weights, theory_trade_off

N_GROUPS = 3
TRADE_OFF = theory_trade_off() / 2.0


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
        What the reference's and the sources' own models found.
    without_fold : array of shape (n_validation_folds, len(asked))
        A first idea of the discrepancies.
    folds, family, row_loss, setting
        As for the first look.
    """
    plan = _Plan.of(folds, data.row_shares[data.rows(data.reference)])
    weights = _weights(data, asked, groups, without_fold, plan)
    models, which = _fit(data, weights, plan, family, setting)
    found = _judge(data, asked, groups, plan, [models[fits] for fits in which.T], family, row_loss)
    pooled = found.reference_losses < [side.reference_loss for side in sides]
    return SecondLook(
        a=np.where(pooled[:, None], found.a, [side.a for side in sides]),
        reference_errors=np.where(
            pooled, found.reference_errors, [side.reference_error for side in sides]
        ),
        errors=found.errors if pooled[0] else sides[0].error_a,
        pooled=pooled,
    )


@dataclass(frozen=True)
class _Judged:
    """What the models of the groups found; names as in `SecondLook`.

    Attributes
    ----------
    reference_losses : array of shape (n_sets,)
        Mean loss on unseen reference rows, averaged over the groups' models.
    """

    reference_losses: FloatArray
    a: FloatArray
    reference_errors: FloatArray
    errors: FloatArray


def _judge(
    data: SourceData,
    asked: Sequence[int],
    groups: IntArray,
    plan: _Plan,
    models: Sequence[FloatArray],
    family: Family,
    row_loss: RowLoss,
) -> _Judged:
    """Judge every source by the models of its group, ``models[g]`` in the plan's order."""
    trusted = data.rows(data.reference)
    means = np.empty((len(plan.average), len(asked)))
    variances = np.empty(len(asked))
    own = []
    for g, mine in enumerate(models):
        losses = row_loss(family.predict(mine, data.X[trusted]), data.y[trusted])
        own.append(_own_losses(plan, losses))
        members = np.flatnonzero(groups == g)
        means[:, members], variances[members] = _source_losses(
            data, [asked[int(i)] for i in members], mine, plan.average, family, row_loss
        )
    by_row = np.stack(own)  # (n_groups, n_sets, n_reference_rows)
    shares = np.where(np.isnan(by_row[0]), 0.0, data.row_shares[trusted])
    shares /= shares.sum(axis=1, keepdims=True)
    reference = np.einsum("gsn,sn->gs", np.nan_to_num(by_row), shares)
    sizes = 1.0 / np.sum(shares**2, axis=1)
    average = np.nan_to_num(by_row).mean(axis=0) - reference.mean(axis=0)[:, None]
    variance = np.sum(shares * average**2, axis=1) * sizes / np.maximum(sizes - 1.0, 1.0)
    # One row has no variance of its own; the reference's stands in.
    theirs = np.where(np.isnan(variances), variance[0], variances)
    source_sizes = data.sizes[np.asarray(asked, dtype=np.intp)]
    return _Judged(
        reference.mean(axis=0),
        means - reference[groups].T,
        np.sqrt(variance / sizes),
        np.sqrt(theirs / source_sizes + variance[0] / sizes[0]),
    )


def _weights(
    data: SourceData,
    asked: Sequence[int],
    groups: IntArray,
    without_fold: FloatArray,
    plan: _Plan,
) -> FloatArray:
    """Source weights of every fit, (n_fits, n_groups, n_sources)."""
    n_groups = int(groups.max()) + 1
    weights = np.zeros((len(plan.judged), n_groups, data.n_sources))
    positions = np.asarray(asked, dtype=np.intp)
    shares = data.row_shares[data.rows(data.reference)]
    sizes = data.sizes
    for fit, held_out in enumerate(plan.held_out):
        sizes[data.reference] = 1.0 / np.sum(kept_shares(shares, held_out) ** 2)
        for g in range(n_groups):
            others = groups != g
            used = np.append(positions[others], data.reference)
            values = np.append(without_fold[plan.values_of[fit], others], 0.0)
            weights[fit, g, used] = solve_weights(values, sizes[used], TRADE_OFF)
    return weights


def _fit(
    data: SourceData, weights: FloatArray, plan: _Plan, family: Family, setting: float
) -> tuple[FloatArray, IntArray]:
    """Fit every distinct weighting once; also returns which model each fit uses."""
    fold = np.broadcast_to(np.arange(len(weights))[:, None], weights.shape[:2]).ravel()
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
    return models, same.reshape(weights.shape[:2])


def _own_losses(plan: _Plan, losses: FloatArray) -> FloatArray:
    """Cross-fitted loss of each reference row in each set, NaN where the set leaves it out."""
    used = (plan.average > 0).astype(float)
    times = used @ plan.judged
    return np.asarray((used @ np.where(plan.judged, losses, 0.0)) / np.where(times, times, np.nan))


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
