r"""How well the reference's model knows a source's labels.

With :math:`h` the predicted probabilities and :math:`y` the indicators of the classes (or, for
regression, prediction and target), the *agreement* of a model with some rows is their covariance,

.. math:: A_i = \sum_k \operatorname{Cov}_i(h_k, y_k) .

It is by how much the loss would rise if the source's labels were shuffled among its rows. A mean
loss goes with how frequent each class is in a source, which is as often luck or nature as it is a
fault; an agreement hardly does, unless a class is rare. Labels that are shuffled, confused or all
the same, and features that do not belong to them, bring it to about zero, flipped labels below.

Rows that the model tells less apart than the reference's cannot agree with it as much. What may be
expected of a source is the agreement that the reference's correlation of predictions and labels
would give there: the reference's own, times the ratio of the predictions' standard deviations if
that is less than 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from sourcewise.core.data import FloatArray, IntArray, SourceData
from sourcewise.core.discrepancy.local_exchange import row_blocks
from sourcewise.core.discrepancy.reference_folds import ReferenceFolds
from sourcewise.core.family import Family
from sourcewise.core.losses import spread

# An agreement of the reference's own that is smaller is not told from none.
BEYOND_NOISE = 2.0
FARTHEST = 4.0  # standard deviations: a single target beyond must not decide
# Labels that have nothing to do with the features miss all of it, flipped ones twice as much.
MOST_MISSING = 2.0


class _Found(NamedTuple):
    """Agreements, their standard errors, and the variances of the predictions."""

    values: FloatArray
    errors: FloatArray
    variances: FloatArray


@dataclass(frozen=True)
class Agreement:
    """Agreement of the reference's fold models with some sources and with the reference.

    Set 0 is the whole reference, the others leave out a validation fold each.

    Attributes
    ----------
    values : array of shape (n_sets, n_sources)
        NaN for a source of one row.
    expected : array of shape (n_sets, n_sources)
        What they would be if predictions and labels were correlated as they are in the reference.
    errors : array of shape (n_sources,)
        Standard errors of the values in set 0, the models held fixed.
    own : array of shape (n_sets,)
        With reference rows that the models have not seen.
    own_errors : array of shape (n_sets,)
        Its standard errors, the models held fixed.
    """

    values: FloatArray
    expected: FloatArray
    errors: FloatArray
    own: FloatArray
    own_errors: FloatArray

    @property
    def missing(self) -> FloatArray:
        """Share of the reference's agreement that each source lacks, (n_sets, n_sources).

        Nothing is missing where nothing is known.
        """
        return _within_limits((self.expected - self.values) / self._whole[:, None])

    @property
    def missing_errors(self) -> FloatArray:
        """Standard errors of the shares in set 0, as far as the limits leave room for them."""
        lacking = (self.expected[0] - self.values[0]) / self._whole[0]
        errors = np.hypot(self.errors, self.own_errors[0]) / self._whole[0]
        return 0.5 * (_within_limits(lacking + errors) - _within_limits(lacking - errors))

    @property
    def _whole(self) -> FloatArray:
        """Agreement that shares are told of, in every set."""
        least = np.maximum(BEYOND_NOISE * self.own_errors, np.finfo(float).tiny)
        return np.asarray(np.maximum(self.own, least))


def _within_limits(shares: FloatArray) -> FloatArray:
    return np.asarray(np.nan_to_num(np.clip(shares, 0.0, MOST_MISSING), nan=0.0))


def find_agreement(
    data: SourceData, asked: Sequence[int], folds: ReferenceFolds, family: Family, models: Any
) -> Agreement:
    """Compare the sources at positions ``asked`` with predictions of the reference's ``models``.

    ``models`` are those that leave out ``folds.left_out``.
    """
    trusted = data.rows(data.reference)
    shares = data.row_shares[trusted]
    predicted = _predicted(family, models, data.X[trusted])
    # Only differences matter, and far from zero they would be lost in squares.
    centre = np.einsum("n,mnk->mk", shares, predicted)[:, None]
    outcomes = _outcomes(data, np.array([data.reference]))
    own = _own_agreement(predicted - centre, outcomes, shares, folds)
    average = folds.average(shares)
    parts = []
    positions = np.asarray(asked, dtype=np.intp)
    for block in row_blocks(data.row_counts[positions]):
        some = positions[block]
        rows = data.rows_of(some)
        parts.append(
            _agreements(
                _predicted(family, models, data.X[rows]) - centre,
                _outcomes(data, some),
                data.row_shares[rows],
                data.row_counts[some],
                average,
            )
        )
    theirs = _Found(*(np.concatenate(values, axis=-1) for values in zip(*parts, strict=True)))
    least = np.maximum(own.variances, np.finfo(float).tiny)
    told_apart = np.sqrt(np.minimum(theirs.variances / least[:, None], 1.0))
    return Agreement(
        theirs.values, own.values[:, None] * told_apart, theirs.errors, own.values, own.errors
    )


def _own_agreement(
    predicted: FloatArray, outcomes: FloatArray, shares: FloatArray, folds: ReferenceFolds
) -> _Found:
    """Measure unseen reference rows in every set, around the means of the rows that were seen."""
    seen = np.where(folds.left_out, 0.0, shares)
    seen /= seen.sum(axis=1, keepdims=True)
    off_predicted = predicted - np.einsum("mn,mnk->mk", seen, predicted)[:, None]
    off_outcomes = outcomes - (seen @ outcomes)[:, None]
    by_row = folds.cross_fitted(np.sum(off_predicted * off_outcomes, axis=2))
    squares = folds.cross_fitted(np.sum(off_predicted**2, axis=2))
    set_shares = folds.set_shares(shares)
    by_row = np.nan_to_num(by_row)
    values = np.sum(set_shares * by_row, axis=1)
    spread = np.maximum(np.sum(set_shares * by_row**2, axis=1) - values**2, 0.0)
    sizes = 1.0 / np.sum(set_shares**2, axis=1)
    errors = np.sqrt(spread / np.maximum(sizes - 1.0, 1e-9))
    return _Found(values, errors, np.sum(set_shares * np.nan_to_num(squares), axis=1))


def _agreements(
    predicted: FloatArray,
    outcomes: FloatArray,
    shares: FloatArray,
    counts: IntArray,
    average: FloatArray,
) -> _Found:
    """Measure sources of ``counts`` rows in every set; standard errors are those of set 0."""
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]])

    def mean(of_rows: FloatArray) -> FloatArray:
        return np.asarray(np.add.reduceat(shares * of_rows, starts, axis=-1))

    def off_mean(of_rows: FloatArray) -> FloatArray:
        return np.asarray(of_rows - np.repeat(mean(of_rows.T).T, counts, axis=0))

    # One side off its mean is enough for a covariance; predictions of all models are large.
    off_outcomes = off_mean(outcomes)
    covariances = mean(np.einsum("mnk,nk->mn", predicted, off_outcomes))
    ends = starts + counts
    means = [
        np.einsum("n,mnk->mk", shares[a:b], predicted[:, a:b])
        for a, b in zip(starts, ends, strict=True)
    ]
    squares = mean(np.einsum("mnk,mnk->mn", predicted, predicted))
    variances = np.maximum(squares - np.sum(np.square(means), axis=2).T, 0.0)
    by_row = np.sum(off_mean(np.einsum("m,mnk->nk", average[0], predicted)) * off_outcomes, axis=1)
    spread = np.maximum(mean(by_row**2) - mean(by_row) ** 2, 0.0)
    sizes = 1.0 / np.add.reduceat(shares**2, starts)
    unbiased = np.where(sizes > 1.5, sizes, np.nan) / np.maximum(sizes - 1.0, 0.5)
    return _Found(
        average @ covariances * unbiased,
        np.sqrt(spread * unbiased / sizes),
        average @ variances * unbiased,
    )


def _predicted(family: Family, models: Any, X: FloatArray) -> FloatArray:
    """Predict, in the shape (n_models, n_rows, n_outputs)."""
    predicted = family.predict(models, X)
    return predicted if predicted.ndim == 3 else predicted[:, :, None]


def _outcomes(data: SourceData, sources: IntArray) -> FloatArray:
    """Return the classes' indicators, or the targets, of some sources' rows as columns.

    Targets are told from the median of their source. One row far off must not decide, so none
    counts as farther than `FARTHEST` standard deviations of the reference's.
    """
    targets = [data.y[data.rows(i)] for i in sources]
    if data.n_classes:
        return np.asarray(np.eye(data.n_classes)[np.concatenate(targets)])
    farthest = FARTHEST * spread(data.y[data.rows(data.reference)])
    off = np.concatenate([y - np.median(y) for y in targets])
    return np.asarray(np.clip(off, -farthest, farthest)[:, None])
