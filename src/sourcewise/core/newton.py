r"""Newton's method for single logistic regressions of few rows.

Batches pay where rows are many. With a few hundred rows a Hessian costs a fraction of a
millisecond, Newton's own steps need no more than a handful of them, and neighbours on a path of
regularisations start from each other. The objective is that of :mod:`sourcewise.core.logistic`.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs, spotrf, spotrs

from sourcewise.core.data import FloatArray, IntArray
from sourcewise.core.row_space import RowSpace

MAX_ITER = 200
OVERSHOOT = 0.5  # a step is shortened when the slope at its end exceeds this share of the first


def newton_logistic(
    X: FloatArray,
    y: IntArray,
    row_weights: FloatArray,
    C: FloatArray,
    *,
    penalty: FloatArray,
    tol: float,
) -> FloatArray:
    """Binary logistic regressions of every weighting under every regularisation.

    Parameters
    ----------
    X : array of shape (n_rows, n_features)
    y : int array of shape (n_rows,)
        0 or 1.
    row_weights : array of shape (n_weightings, n_rows)
    C : array of shape (n_settings,)
    penalty : array of shape (n_features,)
        Relative penalty of each coefficient.
    tol : float
        A problem is solved when its predicted decrease is below ``tol`` times its objective.

    Returns
    -------
    coef : array of shape (n_weightings, n_settings, n_features)
    """
    if np.ptp(penalty[:-1]) == 0.0:  # then any basis will do
        space = RowSpace.of(X)
        if space.X is not X:
            few = np.append(penalty[: space.X.shape[1] - 1], penalty[-1])
            return space.back(newton_logistic(space.X, y, row_weights, C, penalty=few, tol=tol))
    coef = np.empty((len(row_weights), len(C), X.shape[1]))
    narrow = X.astype(np.float32)  # for Hessians, which need not be exact
    sign = 1.0 - 2.0 * y
    order = np.argsort(C)
    for q, weights in enumerate(row_weights):
        used = weights > 0
        rows = slice(None) if used.all() else used
        part = X[rows].astype(np.float64, copy=False), narrow[rows], sign[rows], weights[rows]
        # The first weighting is near the others as a rule: folds of the same rows.
        w: FloatArray = np.zeros(X.shape[1])
        for k in order:
            near = coef[0, k] if q else w
            w = _solve(*part, penalty / C[k], near, tol)
            coef[q, k] = w
    return coef


def _solve(
    X: FloatArray,
    narrow: FloatArray,
    sign: FloatArray,
    weights: FloatArray,
    ridge: FloatArray,
    w: FloatArray,
    tol: float,
) -> FloatArray:
    """Minimise from ``w``; ``sign`` is -1 for rows of class 1."""
    against = sign * (X @ w)
    for _ in range(MAX_ITER):
        wrong = sigmoid(against)  # probability of the other class
        pull = weights * wrong
        shrink = ridge * w
        gradient = (sign * pull) @ X + shrink
        step = _newton_step(narrow, pull * (1.0 - wrong), ridge, gradient)
        slope = float(gradient @ step)
        if 0.5 * slope <= tol * (float(pull.sum()) + 0.5 * float(shrink @ w)):
            return np.asarray(w - step)
        # Along the step everything is known from one product: searching costs no more.
        change = sign * (X @ step)
        length = 1.0
        along, bend = float(shrink @ step), float((ridge * step) @ step)
        for _ in range(30):
            moved = against - length * change
            end = -(float((weights * sigmoid(moved)) @ change) + along - length * bend)
            if end <= OVERSHOOT * slope:
                break
            length *= min(max(slope / (slope + end), 0.1), 0.9)
        w = w - length * step
        against = against - length * change
    return w


def sigmoid(z: FloatArray) -> FloatArray:
    """Return ``1 / (1 + exp(-z))`` without overflow."""
    return np.asarray(1.0 / (1.0 + np.exp(np.minimum(-z, 80.0))))


def _newton_step(
    X: FloatArray, curvature: FloatArray, ridge: FloatArray, gradient: FloatArray
) -> FloatArray:
    rooted = X * np.sqrt(curvature).astype(np.float32)[:, None]
    H = rooted.T @ rooted
    diagonal = np.arange(len(ridge))
    H[diagonal, diagonal] += (ridge + 1e-10 * np.trace(H)).astype(np.float32)
    factor, failed = spotrf(H, lower=1)
    if not failed:
        return np.asarray(spotrs(factor, gradient.astype(np.float32), lower=1)[0], np.float64)
    # Too ill-conditioned for single precision.
    wide = rooted.astype(np.float64)
    H = wide.T @ wide
    H[diagonal, diagonal] += ridge + 1e-10 * (1.0 + np.trace(H))
    factor, _ = dpotrf(H, lower=1)
    return np.asarray(dpotrs(factor, gradient, lower=1)[0])
