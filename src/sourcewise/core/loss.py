"""What a linear model loses on a row, and how that changes with the row's scores.

Whether labels are classes or numbers is known to a loss, and to no solver. A loss is a few
functions of scores: a new one is one class.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from sourcewise.core.data import FloatArray, IntArray
from sourcewise.core.logistic import n_outputs, positive_probabilities
from sourcewise.core.quasi_newton import inner

# Sums of exponentials between these have a reciprocal in single precision: no maximum has to be
# taken away from the scores first, which is seldom needed and costs as much as the exponentials.
LEAST_SUM, LARGEST_SUM = 1e-30, 1e30


class Loss(Protocol):
    """A convex loss of a row's scores."""

    @property
    def outputs(self) -> int:
        """Scores that a row has."""

    def labels(self, y: Any, dtype: Any) -> FloatArray:
        """Return labels as `residuals` takes them, (n_rows, n_outputs)."""

    def residuals(self, scores: FloatArray, labels: FloatArray) -> FloatArray:
        """Return the derivative in scores of shape (n_rows, n_outputs * n_columns)."""

    def curvature(self, scores: FloatArray) -> FloatArray:
        """Return the second derivative in each of scores of shape (..., n_outputs)."""

    def parts(self, scores: FloatArray) -> FloatArray:
        """Return what the Hessian in the scores (n_rows, n_outputs) is made of.

        Of several outputs their probabilities, of one its second derivative.
        """

    def floor(self, of_labels: FloatArray, W: FloatArray, gradient: FloatArray) -> FloatArray:
        """Return numbers that weighted sums of losses are known to exceed, (n_columns,).

        From sums of labels times residuals, at points W with this gradient of the sums.
        """


class Logistic:
    """The log-loss of classes. Two have labels +1 and -1, more an indicator for each class."""

    def __init__(self, n_classes: int):
        self.outputs = n_outputs(n_classes)

    def labels(self, y: IntArray, dtype: Any) -> FloatArray:
        """Return one column for two classes, else one a class."""
        if self.outputs == 1:
            return np.asarray(2.0 * y[:, None] - 1.0, dtype=dtype)
        return np.asarray(y[:, None] == np.arange(self.outputs), dtype=dtype)

    def residuals(self, scores: FloatArray, labels: FloatArray) -> FloatArray:
        """Probability minus indicator."""
        return residuals(scores, labels)

    def curvature(self, scores: FloatArray) -> FloatArray:
        """``p (1 - p)``: of several outputs the diagonal of the Hessian."""
        p = positive_probabilities(scores)
        return np.asarray(p * (1.0 - p))

    def parts(self, scores: FloatArray) -> FloatArray:
        """Return probabilities of several outputs, and ``p (1 - p)`` of one."""
        return self.curvature(scores) if self.outputs == 1 else positive_probabilities(scores)

    def floor(self, of_labels: FloatArray, W: FloatArray, gradient: FloatArray) -> FloatArray:
        """1 - p(label), which never exceeds -log p(label)."""
        return -of_labels


class Squared:
    """Half the squared error of real targets."""

    outputs = 1

    def labels(self, y: FloatArray, dtype: Any) -> FloatArray:
        """Return the targets."""
        return np.asarray(y, dtype=dtype)[:, None]

    def residuals(self, scores: FloatArray, labels: FloatArray) -> FloatArray:
        """Score minus target."""
        return np.asarray(scores - labels)

    def curvature(self, scores: FloatArray) -> FloatArray:
        """One everywhere."""
        return np.ones_like(scores)

    def parts(self, scores: FloatArray) -> FloatArray:
        """One everywhere."""
        return np.ones_like(scores)

    def floor(self, of_labels: FloatArray, W: FloatArray, gradient: FloatArray) -> FloatArray:
        """Return the loss itself."""
        return np.asarray(0.5 * (inner(W, gradient) - of_labels))


def loss_of(n_classes: int) -> Loss:
    """Return the loss of so many classes; 0 are numbers."""
    return Logistic(n_classes) if n_classes else Squared()


def label_sums(labels: FloatArray, P: FloatArray, n_sources: int = 1) -> FloatArray:
    """Sum each output's labels times its residuals over each source, (n_sources, P.shape[1]).

    Of several outputs, all labels of a row but one are zero: what is picked takes no product of
    every label with every residual, which would cost more than the features do.
    """
    outputs, by_source = labels.shape[1], P.reshape(n_sources, -1, P.shape[1])
    if outputs == 1:
        return np.asarray(np.matmul(labels.reshape(n_sources, 1, -1), by_source)[:, 0])
    picked = P.reshape(len(P), outputs, -1)[np.arange(len(P)), labels.argmax(axis=1)]
    indicator = labels.reshape(n_sources, -1, outputs).transpose(0, 2, 1)
    found = indicator @ picked.reshape(n_sources, -1, picked.shape[1])
    return np.asarray(found.reshape(n_sources, -1))


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
