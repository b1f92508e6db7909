r"""Regularised logistic regression for many weightings of the same rows.

Column :math:`p` of a batch minimises

.. math:: F_p(w) = \sum_j r_{jp}\, \ell(x_j^\top w, y_j) + \frac{1}{2 C_p} \sum_f q_f w_f^2

with :math:`\ell` the logistic (two classes) or multinomial (more) log-loss, :math:`r` row weights
and :math:`q` a penalty per feature: scikit-learn's objective divided by :math:`C`.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg.lapack import dposv, dpotrf, dpotri

from sourcewise.core.data import FloatArray, IntArray
from sourcewise.core.sparse_rows import SparseRows

MANY_FEATURES = 200  # beyond, matrices of that size are what a fit costs
WORTH_A_CALL = 4000  # products in the time of a handful of calls


def n_outputs(n_classes: int) -> int:
    """Scores a model returns per row: one for two classes, one per class for more."""
    return 1 if n_classes <= 2 else n_classes


def probabilities(scores: FloatArray) -> FloatArray:
    """Class probabilities from scores of shape (..., n_outputs)."""
    if scores.shape[-1] == 1:
        positive = _sigmoid(scores)
        return np.concatenate([1.0 - positive, positive], axis=-1)
    # Outputs first: sums over a short last axis are slow.
    p = np.array(np.moveaxis(scores, -1, 0), order="C")
    p -= p.max(axis=0)
    np.exp(p, out=p)
    p /= p.sum(axis=0)
    return np.asarray(np.moveaxis(p, 0, -1))


def scores_each(models: FloatArray, which: IntArray, X: FloatArray | SparseRows) -> FloatArray:
    """Scores (n_rows, n_outputs) of row ``j`` under model ``which[j]`` of (n_models, ..., d)."""
    n_models, outputs, d = models.shape
    if not isinstance(X, SparseRows) and len(X) * outputs * d < WORTH_A_CALL * n_models:
        return np.asarray(np.einsum("jod,jd->jo", models[which], X))
    scores = np.empty((len(X), outputs), dtype=np.result_type(models, X.dtype))
    order = np.argsort(which, kind="stable")
    ends = np.cumsum(np.bincount(which, minlength=n_models))
    for model, rows in zip(models, np.split(order, ends[:-1]), strict=True):
        scores[rows] = X[rows] @ model.T
    return scores


def positive_probabilities(scores: FloatArray) -> FloatArray:
    """Probability of each output: of class 1 for one output, of every class for more."""
    return _sigmoid(scores) if scores.shape[-1] == 1 else probabilities(scores)


def inverse_with_ridge(curvature: FloatArray, ridge: FloatArray) -> FloatArray:
    """Inverse of ``curvature + diag(ridge)``, by Cholesky: half the work of a general inverse."""
    d = len(ridge)
    H = np.array(curvature, dtype=np.float64)
    # A feature without penalty or data still needs a pivot.
    H[np.arange(d), np.arange(d)] += ridge + 1e-10 * (1.0 + np.trace(H) / d)
    factor, failed = dpotrf(H, lower=1, overwrite_a=1)
    if failed:  # rounding of a single-precision curvature can cost it its definiteness
        H = np.array(curvature, dtype=np.float64)
        H[np.arange(d), np.arange(d)] += ridge + 1e-4 * np.trace(H) / d
        return np.linalg.pinv(H, hermitian=True).astype(ridge.dtype)
    inverse, _ = dpotri(factor, lower=1, overwrite_c=1)
    # Only the lower half is filled in.
    lower = np.tril(inverse)
    lower += lower.T
    lower[np.arange(d), np.arange(d)] *= 0.5
    return np.asarray(lower, dtype=ridge.dtype)


def solve_with_ridge(curvature: FloatArray, ridge: FloatArray, right: FloatArray) -> FloatArray:
    """Solve ``(curvature + diag(ridge)) x = right`` by Cholesky."""
    d = len(ridge)
    H = np.array(curvature, dtype=np.float64)
    H[np.arange(d), np.arange(d)] += ridge
    _, x, failed = dposv(H, right, overwrite_a=1)
    if failed:  # no penalty to speak of and features that repeat each other
        H = np.array(curvature, dtype=np.float64)
        H[np.arange(d), np.arange(d)] += ridge
        return np.asarray(np.linalg.lstsq(H, right)[0])
    return np.asarray(x)


def centre_outputs(steps: FloatArray) -> FloatArray:
    """Keep the outputs of several classes summing to zero, as they do at the solution.

    Adding the same to all of them changes no probability, so only the penalty could pull them
    back, and for an intercept that is next to nothing.
    """
    if steps.shape[2] > 1:
        steps -= steps.mean(axis=2, keepdims=True)
    return steps


def product(A: FloatArray, B: FloatArray) -> FloatArray:
    """Matrix product with all columns and outputs of ``B`` side by side."""
    return np.asarray(A @ B.reshape(len(B), -1)).reshape(len(A), *B.shape[1:])


def _sigmoid(z: FloatArray) -> FloatArray:
    e = np.exp(-np.abs(z))
    return np.asarray(np.where(z >= 0, 1.0, e) / (1.0 + e))
