"""What predicted probabilities miss of the labels: the derivative of logistic losses."""

from __future__ import annotations

import numpy as np

from sourcewise.core.data import FloatArray, IntArray

# Sums of exponentials between these have a reciprocal in single precision: no maximum has to be
# taken away from the scores first, which is seldom needed and costs as much as the exponentials.
LEAST_SUM, LARGEST_SUM = 1e-30, 1e30


def residuals(scores: FloatArray, labels: FloatArray) -> FloatArray:
    """Probability minus indicator, from scores of shape (n_rows, n_outputs * n_columns).

    Exponentials are taken in single precision, where they are several times faster. Residuals are
    right to about 1e-6 *relative* to themselves, also where they vanish because the label is all
    but certain: they are computed from the probability that the label did not get, never as a
    difference from 1. Sums, products and solutions keep the precision of ``scores``.

    Parameters
    ----------
    scores : array
    labels : array of shape (n_rows, n_outputs)
        +1 or -1 for one output, the indicator for more.
    """
    outputs = labels.shape[1]
    if outputs == 1:
        sign = labels.astype(np.float32)
        narrow = scores.astype(np.float32)
        narrow *= sign
        with np.errstate(over="ignore"):  # exp(89) is infinite in single precision, 1 / it is 0
            np.exp(narrow, out=narrow)
        narrow += 1.0
        np.divide(-sign, narrow, out=narrow)
        return np.asarray(narrow, dtype=scores.dtype)
    label = np.arange(len(scores)), labels.argmax(axis=1)
    narrow, total, missed = _exponentials(scores, label, outputs)
    if total.size and not (total.min() > LEAST_SUM and total.max() < LARGEST_SUM):
        narrow, total, missed = _exponentials(scores, label, outputs, from_largest=True)
    np.reciprocal(total, out=total)
    narrow *= total[:, None, :]
    narrow[label] = -missed * total
    return np.asarray(narrow.reshape(scores.shape), dtype=scores.dtype)


def _exponentials(
    scores: FloatArray, label: tuple[IntArray, IntArray], outputs: int, from_largest: bool = False
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Exponentials of the scores, those of the labels set to zero, in single precision.

    Returns them in the shape (n_rows, n_outputs, n_columns), their sums with the labels' own, and
    without, (n_rows, n_columns). All are divided by a row's largest one if that is wanted.
    """
    narrow = scores.astype(np.float32).reshape(len(scores), outputs, scores.shape[1] // outputs)
    if from_largest:
        narrow -= narrow.max(axis=1, keepdims=True)
    with np.errstate(over="ignore"):
        np.exp(narrow, out=narrow)
        total = narrow[label]
        narrow[label] = 0.0
        missed = np.einsum("nkp->np", narrow)  # several times faster than a sum over a middle axis
        total += missed
    return narrow, total, missed
