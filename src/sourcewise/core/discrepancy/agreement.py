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
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from sourcewise.core.choices import Choices
from sourcewise.core.data import FloatArray, IntArray, SourceData
from sourcewise.core.discrepancy.reference_models import ReferenceModels
from sourcewise.core.family import Family


@dataclass(frozen=True)
class AgreementAnswer:
    """Agreement of the reference's fold models with some sources.

    Set 0 is the whole reference, the others leave out a validation fold each.

    Attributes
    ----------
    values : array of shape (n_sets, n_sources)
        NaN for a source of one row.
    variances : array of shape (n_sets, n_sources)
        Of the predictions.
    errors : array of shape (n_sources,)
        Standard errors of the values in set 0, the models held fixed.
    """

    values: FloatArray
    variances: FloatArray
    errors: FloatArray


@dataclass(frozen=True)
class OwnAgreement:
    """Agreement of the reference's models with reference rows that they have not seen.

    Attributes
    ----------
    values : array of shape (n_sets,)
    errors : array of shape (n_sets,)
        Standard errors, the models held fixed.
    variances : array of shape (n_sets,)
        Of the predictions.
    """

    values: FloatArray
    errors: FloatArray
    variances: FloatArray

    @classmethod
    def of(cls, reference: ReferenceModels, message: AgreementMessage) -> OwnAgreement:
        """Measure unseen reference rows in every set, around the means of the rows seen."""
        folds, rows = reference.folds, reference.rows
        predicted = as_outputs(reference.predicted) - message.centre
        outcomes = message.outcomes(rows.y, np.array([len(rows.y)]))
        seen = np.where(folds.left_out, 0.0, rows.shares)
        seen /= seen.sum(axis=1, keepdims=True)
        off_predicted = predicted - np.einsum("mn,mnk->mk", seen, predicted)[:, None]
        off_outcomes = outcomes - (seen @ outcomes)[:, None]
        by_row = np.nan_to_num(folds.cross_fitted(np.sum(off_predicted * off_outcomes, axis=2)))
        squares = np.nan_to_num(folds.cross_fitted(np.sum(off_predicted**2, axis=2)))
        shares = reference.set_shares
        values = np.sum(shares * by_row, axis=1)
        off = np.maximum(np.sum(shares * by_row**2, axis=1) - values**2, 0.0)
        errors = np.sqrt(off / np.maximum(reference.set_sizes - 1.0, 1e-9))
        return cls(values, errors, np.sum(shares * squares, axis=1))


@dataclass(frozen=True)
class Agreement:
    """How much of the reference's agreement with its own models some sources have.

    Attributes
    ----------
    missing : array of shape (n_sets, n_sources)
        Share of the reference's agreement that is missing. Nothing is missing where nothing is
        known.
    missing_errors : array of shape (n_sources,)
        Standard errors of the shares in set 0. Limits do not make them smaller: that nothing is
        missing of a source is no more certain than that something is.
    """

    missing: FloatArray
    missing_errors: FloatArray


@dataclass(frozen=True)
class AgreementMessage:
    """What a source is told for its agreement.

    Attributes
    ----------
    family : Family
    models : batch of models
        The reference's.
    centre : array of shape (n_models, 1, n_outputs)
        Mean predictions of the reference's rows. Only differences matter, and far from zero they
        would be lost in squares.
    average : array of shape (n_sets, n_models)
    n_classes : int
    farthest : float
        Targets count as no farther than this from the median of their source.
    """

    rows_beside: ClassVar[int] = 0

    family: Family
    models: Any
    centre: FloatArray
    average: FloatArray
    n_classes: int
    farthest: float

    def answer(
        self, sources: SourceData, names: Sequence[Any], predicted: FloatArray | None = None
    ) -> AgreementAnswer:
        """Measure some sources; ``predicted`` are predictions of their rows, if known."""
        if predicted is None:
            predicted = self.family.predict(self.models, sources.X)
        return _agreements(
            as_outputs(predicted) - self.centre,
            self.outcomes(sources.y, sources.row_counts),
            sources.row_shares,
            sources.row_counts,
            self.average,
        )

    def outcomes(self, y: Any, counts: IntArray) -> FloatArray:
        """Return the classes' indicators, or the targets, of sources of so many rows as columns.

        Targets are measured from the median of their source. One row far off must not decide.
        """
        if self.n_classes:
            return np.asarray(np.eye(self.n_classes)[y])
        ends = np.cumsum(counts)
        off = np.concatenate(
            [
                y[end - n : end] - np.median(y[end - n : end])
                for end, n in zip(ends, counts, strict=True)
            ]
        )
        return np.asarray(np.clip(off, -self.farthest, self.farthest)[:, None])


@dataclass(frozen=True)
class AgreementQuestion:
    """The agreement: what is sent, and what the server makes of the answers."""

    reference: ReferenceModels
    choices: Choices

    @cached_property
    def message(self) -> AgreementMessage:
        """What has to be sent to the sources."""
        reference, rows = self.reference, self.reference.rows
        centre = np.einsum("n,mnk->mk", rows.shares, as_outputs(reference.predicted))[:, None]
        unit = 1.0 if rows.n_classes else reference.loss.scale
        return AgreementMessage(
            reference.family,
            reference.models,
            centre,
            reference.average,
            rows.n_classes,
            self.choices.agreement_farthest * unit,
        )

    @cached_property
    def own(self) -> OwnAgreement:
        """Agreement of the reference with its own models."""
        return OwnAgreement.of(self.reference, self.message)

    def judge(self, answer: AgreementAnswer) -> Agreement:
        """Find what is missing of the agreement that the reference's correlation would give."""
        own = self.own
        least = np.maximum(own.variances, np.finfo(float).tiny)[:, None]
        apart = np.sqrt(np.minimum(answer.variances / least, 1.0))
        # Agreement that shares are of, in every set.
        whole = np.maximum(own.values, self.choices.agreement_noise * own.errors)
        whole = np.maximum(whole, np.finfo(float).tiny)[:, None]
        lacking = (own.values[:, None] * apart - answer.values) / whole
        errors = np.hypot(answer.errors, own.errors[0]) / whole[0]
        return Agreement(self._within_limits(lacking), self._within_limits(errors))

    def _within_limits(self, shares: FloatArray) -> FloatArray:
        return np.asarray(np.nan_to_num(np.clip(shares, 0.0, self.choices.most_missing), nan=0.0))


def as_outputs(predicted: FloatArray) -> FloatArray:
    """Predictions in the shape (n_models, n_rows, n_outputs)."""
    return predicted if predicted.ndim == 3 else predicted[:, :, None]


def _agreements(
    predicted: FloatArray,
    outcomes: FloatArray,
    shares: FloatArray,
    counts: IntArray,
    average: FloatArray,
) -> AgreementAnswer:
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
    off = np.maximum(mean(by_row**2) - mean(by_row) ** 2, 0.0)
    sizes = 1.0 / np.add.reduceat(shares**2, starts)
    unbiased = np.where(sizes > 1.5, sizes, np.nan) / np.maximum(sizes - 1.0, 0.5)
    return AgreementAnswer(
        average @ covariances * unbiased,
        average @ variances * unbiased,
        np.sqrt(off * unbiased / sizes),
    )
