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

from typing import Any

import numpy as np

from sourcewise.core.choices import Choices
from sourcewise.core.data import FloatArray, IntArray, SourceData
from sourcewise.core.discrepancy.findings import Findings
from sourcewise.core.discrepancy.reference_models import ReferenceModels
from sourcewise.core.engine import Arrays


def agreement_sent(reference: ReferenceModels, choices: Choices) -> dict[str, Any]:
    """Return what a source is told for its agreement, besides the reference's models.

    ``centre`` has the mean predictions of the reference's rows: only differences matter, and far
    from zero they would be lost in squares. Targets count as no farther than ``farthest`` from the
    median of their source.
    """
    rows = reference.rows
    unit = 1.0 if rows.n_classes else reference.loss.scale
    return {
        "centre": np.einsum("n,mnk->mk", rows.shares, as_outputs(reference.predicted))[:, None],
        "average": reference.average,
        "n_classes": rows.n_classes,
        "farthest": choices.agreement_farthest * unit,
    }


def outcomes(y: Any, counts: IntArray, n_classes: int, farthest: float) -> FloatArray:
    """Return the classes' indicators, or the targets, of sources of so many rows as columns.

    Targets are measured from the median of their source. One row far off must not decide.
    """
    if n_classes:
        return np.asarray(np.eye(n_classes)[y])
    ends = np.cumsum(counts)
    off = np.concatenate(
        [
            y[end - n : end] - np.median(y[end - n : end])
            for end, n in zip(ends, counts, strict=True)
        ]
    )
    return np.asarray(np.clip(off, -farthest, farthest)[:, None])


def agreement_known(
    reference: ReferenceModels, sent: dict[str, Any], choices: Choices
) -> dict[str, Any]:
    """Return what answers are compared with.

    The agreement of the reference's models with reference rows that they have not seen, around the
    means of the rows seen, its standard errors, the models held fixed, and the variances of the
    predictions; each of shape (n_sets,).
    """
    folds, rows = reference.folds, reference.rows
    predicted = as_outputs(reference.predicted) - sent["centre"]
    labels = outcomes(rows.y, np.array([len(rows.y)]), sent["n_classes"], sent["farthest"])
    seen = np.where(folds.left_out, 0.0, rows.shares)
    seen /= seen.sum(axis=1, keepdims=True)
    off_predicted = predicted - np.einsum("mn,mnk->mk", seen, predicted)[:, None]
    off_labels = labels - (seen @ labels)[:, None]
    by_row = np.nan_to_num(folds.cross_fitted(np.sum(off_predicted * off_labels, axis=2)))
    squares = np.nan_to_num(folds.cross_fitted(np.sum(off_predicted**2, axis=2)))
    shares = reference.set_shares
    values = np.sum(shares * by_row, axis=1)
    off = np.maximum(np.sum(shares * by_row**2, axis=1) - values**2, 0.0)
    errors = np.sqrt(off / np.maximum(reference.set_sizes - 1.0, 1e-9))
    variances = np.sum(shares * squares, axis=1)
    return {"values": values, "errors": errors, "variances": variances, "choices": choices}


def judge_agreement(
    answer: Arrays,
    values: FloatArray,
    errors: FloatArray,
    variances: FloatArray,
    choices: Choices,
) -> Findings:
    """Find what share of the reference's agreement is ``missing`` in every set.

    Measured by the agreement that the reference's correlation would give. Nothing is missing
    where nothing is known. Standard errors are those of set 0; limits do not make them smaller:
    that nothing is missing of a source is no more certain than that something is.
    """
    least = np.maximum(variances, np.finfo(float).tiny)[:, None]
    apart = np.sqrt(np.minimum(answer["prediction_variances"] / least, 1.0))
    # Agreement that shares are of, in every set.
    whole = np.maximum(values, choices.agreement_noise * errors)
    whole = np.maximum(whole, np.finfo(float).tiny)[:, None]
    lacking = (values[:, None] * apart - answer["agreements"]) / whole
    off = np.hypot(answer["agreement_errors"], errors[0]) / whole[0]

    def within_limits(shares: FloatArray) -> FloatArray:
        return np.asarray(np.nan_to_num(np.clip(shares, 0.0, choices.most_missing), nan=0.0))

    return {"missing": within_limits(lacking), "missing_errors": within_limits(off)}


def as_outputs(predicted: FloatArray) -> FloatArray:
    """Predictions in the shape (n_models, n_rows, n_outputs)."""
    return predicted if predicted.ndim == 3 else predicted[:, :, None]


def measure_agreement(
    sources: SourceData,
    predicted: FloatArray,
    centre: FloatArray,
    average: FloatArray,
    n_classes: int,
    farthest: float,
) -> Arrays:
    """Tell the agreement of some sources with the reference's fold models, in every set.

    ``agreements`` and ``prediction_variances`` are (n_sets, n_sources), NaN for a source of one
    row; standard errors are those of set 0, the models held fixed.
    """
    predicted, counts = as_outputs(predicted) - centre, sources.row_counts
    labels = outcomes(sources.y, counts, n_classes, farthest)
    shares, starts = sources.row_shares, sources.starts[:-1]

    def mean(of_rows: FloatArray) -> FloatArray:
        return np.asarray(np.add.reduceat(shares * of_rows, starts, axis=-1))

    def off_mean(of_rows: FloatArray) -> FloatArray:
        return np.asarray(of_rows - np.repeat(mean(of_rows.T).T, counts, axis=0))

    # One side off its mean is enough for a covariance; predictions of all models are large.
    off_labels = off_mean(labels)
    covariances = mean(np.einsum("mnk,nk->mn", predicted, off_labels))
    means = [np.einsum("n,mnk->mk", shares[rows], predicted[:, rows]) for rows in sources.slices()]
    squares = mean(np.einsum("mnk,mnk->mn", predicted, predicted))
    variances = np.maximum(squares - np.sum(np.square(means), axis=2).T, 0.0)
    by_row = np.sum(off_mean(np.einsum("m,mnk->nk", average[0], predicted)) * off_labels, axis=1)
    off = np.maximum(mean(by_row**2) - mean(by_row) ** 2, 0.0)
    sizes = 1.0 / np.add.reduceat(shares**2, starts)
    unbiased = np.where(sizes > 1.5, sizes, np.nan) / np.maximum(sizes - 1.0, 0.5)
    return {
        "agreements": average @ covariances * unbiased,
        "prediction_variances": average @ variances * unbiased,
        "agreement_errors": np.sqrt(off * unbiased / sizes),
    }
