r"""Regularised logistic regression for many weightings of the same rows.

Column :math:`p` of a batch minimises

.. math:: F_p(w) = \sum_j r_{jp}\, \ell(x_j^\top w, y_j) + \frac{1}{2 C_p} \sum_f q_f w_f^2

with :math:`\ell` the logistic (two classes) or multinomial (more) log-loss, :math:`r` row weights
and :math:`q` a penalty per feature: scikit-learn's objective divided by :math:`C`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dposv, dpotrf, dpotri

from sourcewise.core.data import FloatArray, IntArray
from sourcewise.core.quasi_newton import Gradient, inner, minimise_columns
from sourcewise.core.sparse_rows import SparseRows

MANY_FEATURES = 200  # beyond, matrices of that size are what a fit costs
WORTH_A_CALL = 4000  # products in the time of a handful of calls
# Gradients after which a column that is still running gets a curvature of its own. Several classes
# wait longer: their curvature is only block-diagonal, and the update learns what it leaves out.
REFRESH = 8
REFRESH_MULTINOMIAL = 16


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


def targets(y: IntArray, n_classes: int, dtype: np.dtype[np.floating]) -> FloatArray:
    """Return each output's indicator, (n_rows, 1) for two classes or (n_rows, n_classes)."""
    if n_classes <= 2:
        return np.asarray(y.astype(dtype)[:, None])
    return np.asarray((y[:, None] == np.arange(n_classes)).astype(dtype))


def fit_logistic(
    X: FloatArray,
    y: IntArray,
    row_weights: FloatArray,
    C: FloatArray,
    *,
    n_classes: int,
    penalty: FloatArray | None = None,
    start: FloatArray | None = None,
    tol: float = 1e-9,
    max_iter: int = 500,
) -> FloatArray:
    """Solve all columns of a batch of arbitrary row weights.

    Parameters
    ----------
    X : array of shape (n_rows, n_features)
        Shared design; its dtype is the working precision.
    y : int array of shape (n_rows,)
        Class codes.
    row_weights : array of shape (n_rows, n_columns)
        Nonnegative weights ``r``.
    C : array of shape (n_columns,)
        Inverse regularisation strength, as in scikit-learn.
    n_classes : int
    penalty : array of shape (n_features,), optional
        Relative penalty ``q`` of each coefficient; ones by default.
    start : array of shape (n_columns, n_outputs, n_features), optional
        Where to start; zero by default.
    tol : float
        A column stops when its predicted decrease is below ``tol`` times its objective.
    max_iter : int

    Returns
    -------
    coef : array of shape (n_columns, n_outputs, n_features)
    """
    n_columns, outputs = row_weights.shape[1], n_outputs(n_classes)
    ridge = (np.ones(X.shape[1]) if penalty is None else penalty)[:, None] / np.asarray(C)
    ridge = ridge.astype(X.dtype)
    R = np.ascontiguousarray(row_weights, dtype=X.dtype)
    indicator = targets(y, n_classes, X.dtype)
    W = np.zeros((X.shape[1], n_columns, outputs), dtype=X.dtype)
    if start is not None:
        W[:] = start.transpose(2, 0, 1)
    inverse = np.empty((n_columns, outputs, X.shape[1], X.shape[1]), dtype=X.dtype)

    def evaluate(W: FloatArray, columns: IntArray) -> Gradient:
        p = positive_probabilities(product(X, W))
        residual = p - indicator[:, None, :]
        weights = R[:, columns]
        # 1 - p(label) never exceeds -log p(label).
        floor = np.einsum("jp,jp->p", weights, np.abs(residual).max(axis=2), dtype=np.float64)
        shrink = ridge[:, columns, None] * W
        gradient = product(X.T, weights[:, :, None] * residual) + shrink
        return Gradient(gradient, floor + 0.5 * inner(shrink, W))

    def refresh(W: FloatArray, columns: IntArray) -> NDArray[np.bool_]:
        # At zero all classes are equally probable: one curvature is that of all outputs.
        different = outputs if W.any() else 1
        V = R[:, columns, None] * row_curvature(product(X, W))[:, :, :different]
        for k, column in enumerate(columns):
            for output in range(different):
                H = X.T @ (X * V[:, k, output, None])
                inverse[column, output:] = inverse_with_ridge(H, ridge[:, column])
        return np.ones(len(columns), dtype=bool)

    def precondition(vectors: FloatArray, columns: IntArray) -> FloatArray:
        mine = inverse if len(columns) == n_columns else inverse[columns]
        applied = np.matmul(mine, vectors.transpose(1, 2, 0)[..., None])
        return centre_outputs(np.ascontiguousarray(applied[..., 0].transpose(2, 0, 1)))

    refresh(W, np.arange(n_columns))
    solution, _ = minimise_columns(
        W,
        evaluate,
        precondition,
        tol=tol,
        max_iter=max_iter,
        refresh=refresh,
        refresh_every=REFRESH if outputs == 1 else REFRESH_MULTINOMIAL,
    )
    return solution.transpose(1, 2, 0)


def row_curvature(scores: FloatArray) -> FloatArray:
    """Second derivative of the row loss in each output, ``p (1 - p)``; same shape as scores.

    Exact for one output, the diagonal of the Hessian for more.
    """
    p = positive_probabilities(scores)
    return np.asarray(p * (1.0 - p))


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
