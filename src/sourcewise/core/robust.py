r"""Resistant logistic regression (Pregibon 1982) for many problems side by side.

Column :math:`q` minimises

.. math:: \sum_j r_{jq}\, \rho(\ell(x_j^\top w, y_j)) + \frac{1}{2 C_q} \sum_f p_f w_f^2,
   \qquad \rho(\ell) = \ell \text{ if } \ell \le c, \quad 2 \sqrt{c \ell} - c \text{ otherwise},

with :math:`\ell` the logistic (two classes) or multinomial (more) log-loss. As :math:`\rho` is
concave, a logistic regression whose rows count :math:`\rho'(\ell)` lies above the objective and
touches it where :math:`\ell` was taken: each such fit is a step down, without a search.
"""

from __future__ import annotations

import numpy as np

from sourcewise.core.data import FloatArray, IntArray
from sourcewise.core.fold_logistic import REFRESH, LogisticColumns, SharedCurvature
from sourcewise.core.loss import Logistic
from sourcewise.core.quasi_newton import inner

THRESHOLD = 1.345**2  # 95 % efficiency without outliers
MAX_FITS = 100
CURVATURE_ROWS = 20  # times the features: as many rows are plenty for a preconditioner
BLOCK = 65536  # scores held at a time


def pregibon_loss(losses: FloatArray, threshold: float = THRESHOLD) -> FloatArray:
    r""":math:`\rho(\ell)`: the loss itself up to the threshold, its root beyond."""
    return np.asarray(
        np.minimum(losses, threshold)
        + 2.0 * threshold * (1.0 / pregibon_slope(losses, threshold) - 1.0)
    )


def pregibon_slope(losses: FloatArray, threshold: float = THRESHOLD) -> FloatArray:
    r""":math:`\rho'(\ell) = \min(1, \sqrt{c / \ell})`: the weight of a row with this loss."""
    return np.asarray(np.sqrt(threshold / np.maximum(losses, threshold)))


def log_losses(X: FloatArray, y: IntArray, W: FloatArray) -> FloatArray:
    """Log-loss of every row under points (n_features, n_columns, n_outputs)."""
    d, n_columns, k = W.shape
    flat = np.ascontiguousarray(W).reshape(d, -1)
    losses = np.empty((len(X), n_columns), dtype=X.dtype)
    step = max(32, BLOCK // (n_columns * k))
    for low in range(0, len(X), step):
        rows = slice(low, low + step)
        scores = (X[rows] @ flat).reshape(-1, n_columns, k)
        if k == 1:
            against = scores[:, :, 0] * (1 - 2 * y[rows, None]).astype(X.dtype)
            # As `logaddexp(0, against)`, several times faster.
            losses[rows] = np.log(1.0 + np.exp(-np.abs(against))) + np.maximum(against, 0.0)
        else:
            scores -= scores.max(axis=2, keepdims=True)
            at_label = np.take_along_axis(scores, y[rows, None, None], axis=2)[:, :, 0]
            losses[rows] = np.log(np.exp(scores).sum(axis=2)) - at_label
    return losses


def minimise_robust(
    X: FloatArray,
    y: IntArray,
    row_weights: FloatArray,
    C: FloatArray,
    start: FloatArray,
    *,
    penalty: FloatArray,
    threshold: float = THRESHOLD,
    tol: float = 1e-9,
) -> tuple[FloatArray, FloatArray]:
    """Descend to a local minimum from each column's start.

    Parameters
    ----------
    X : array of shape (n_rows, n_features)
        Its dtype is the working precision.
    y : int array of shape (n_rows,)
        Class codes.
    row_weights : array of shape (n_rows, n_columns)
    C : array of shape (n_columns,)
    start : array of shape (n_columns, n_outputs, n_features)
    penalty : array of shape (n_features,)
        Relative penalty of each coefficient.
    threshold : float
        ``c``.
    tol : float
        A column stops when a fit makes its objective smaller by less than this share.

    Returns
    -------
    coef : array of shape (n_columns, n_outputs, n_features)
    objective : array of shape (n_columns,)
    """
    W = start.transpose(2, 0, 1).astype(X.dtype)
    R = row_weights.astype(X.dtype, copy=False)
    labels = Logistic(W.shape[2]).labels(y, X.dtype)
    ridge = (penalty[:, None] / C).astype(X.dtype)
    settings, firsts, group = np.unique(C, return_index=True, return_inverse=True)
    # Of the first column of each setting and some rows: good enough for all fits of all columns.
    some = np.argsort(y, kind="stable")[:: max(len(y) // (CURVATURE_ROWS * X.shape[1]), 1)]
    share = R[some].sum(axis=0) / np.maximum(R.sum(axis=0), np.finfo(R.dtype).tiny)
    sample = LogisticColumns(
        X[some], labels[some], R[some] / np.where(share > 0, share, 1.0), ridge
    )
    shared = [sample.inverse_curvature(W[:, k], int(k)) for k in firsts]

    def look(W: FloatArray, running: IntArray) -> tuple[FloatArray, FloatArray]:
        """Objectives, and what the rows count in the next fit."""
        losses = log_losses(X, y, W)
        weights = R[:, running]
        data = np.einsum("jp,jp->p", weights, pregibon_loss(losses, threshold), dtype=np.float64)
        shrink = ridge[:, running, None] * W
        return data + 0.5 * inner(shrink, W), weights * pregibon_slope(losses, threshold)

    running = np.arange(len(C))
    objective, weights = look(W, running)
    for _ in range(MAX_FITS):
        fits = LogisticColumns(X, labels, weights, ridge[:, running])
        curvature = SharedCurvature(shared, group[running])
        at = np.arange(len(running))
        moved = fits.minimise(W[:, running], at, curvature, tol=tol, refresh=REFRESH)
        value, weights = look(moved, running)
        gain = objective[running] - value
        better = gain > 0.0
        W[:, running[better]] = moved[:, better]
        objective[running[better]] = value[better]
        goes_on = gain > tol * np.abs(value)
        running, weights = running[goes_on], weights[:, goes_on]
        if not len(running):
            break
    return W.transpose(1, 2, 0), objective
