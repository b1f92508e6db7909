r"""Local models of many sources at once, a few folds each.

Sources of about the same number of rows are stacked into one array (rows of weight zero fill up
the shorter ones), so that an iteration is a handful of array operations for all of them. The folds
of one source differ in a fifth of their rows: they share one Hessian, that of their mean.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf, dpotrs, spotrf, spotrs

from sourcewise.core.data import FloatArray, IntArray
from sourcewise.core.fold_logistic import fit_logistic_folds
from sourcewise.core.logistic import inverse_with_ridge
from sourcewise.core.loss import residuals

# Iterations that make do with the last Hessian. The folds' own ones differ from their mean, so that
# even a new one leaves several gradients to take.
LAZY = (2, 3, 5, 6, 7, 8)
MAX_ITER = 30  # then the few sources left, nearly separable ones, are fitted one by one
HARD = 1e-3  # of their tolerance: of these, what a step promises says little of what is left
OVERSHOOT = 0.5
NARROW_LARGEST = 100.0  # feature that a Hessian in single precision is good for


def fit_logistic_batch(
    X: FloatArray,
    y: IntArray,
    row_weights: FloatArray,
    *,
    C: float,
    penalty: FloatArray,
    tol: FloatArray,
    start: FloatArray | None = None,
) -> FloatArray:
    """Binary logistic regressions of the form in :mod:`sourcewise.core.logistic`.

    Parameters
    ----------
    X : array of shape (n_sources, n_rows, n_features)
    y : int array of shape (n_sources, n_rows)
        0 or 1.
    row_weights : array of shape (n_sources, n_rows, n_folds)
    C : float
    penalty : array of shape (n_features,)
    tol : array of shape (n_sources,)
        A source stops when the predicted decrease of all its folds is below its ``tol`` times
        their objectives: what it comes to does not depend on the company it is in.
    start : array of shape (n_sources, n_folds, n_features), optional
        Where to start; zero by default.

    Returns
    -------
    coef : array of shape (n_sources, n_folds, n_features)
    """
    n_sources, _, d = X.shape
    ridge = (penalty / C).astype(X.dtype)
    W = np.zeros((n_sources, d, row_weights.shape[2]), dtype=X.dtype)
    if start is not None:
        W[:] = start.transpose(0, 2, 1)
    running = np.arange(n_sources)
    at = X, y[:, :, None].astype(X.dtype), row_weights.astype(X.dtype)
    # Hessians need not be exact, but features must be of one order of magnitude.
    narrow = X.astype(np.float32, copy=False)
    far = np.abs(X).max(axis=(1, 2)) > NARROW_LARGEST
    curvature: dict[int, Curvature] = {}  # of each source
    points = W.copy()
    V, G, floor = _gradient(*at, points, ridge)
    for iteration in range(MAX_ITER):
        if iteration not in LAZY:
            V = np.einsum("snk,snk->sn", at[2], V) / V.shape[2]
            for k, s in enumerate(running.tolist()):
                curvature[s] = Curvature.of(X[s] if far[s] else narrow[s], V[k], ridge)
        direction = -np.stack([curvature[s].solve(G[k]) for k, s in enumerate(running.tolist())])
        slope = np.einsum("sdk,sdk->sk", G, direction)
        done = (-0.5 * slope <= tol[running, None] * floor).all(axis=1)
        if done.any():
            # The last step is known already and costs nothing more.
            W[running[done]] = points[done] + direction[done]
            keep = ~done
            if not keep.any():
                return W.transpose(0, 2, 1)
            running = running[keep]
            at = at[0][keep], at[1][keep], at[2][keep]
            points, direction, slope = points[keep], direction[keep], slope[keep]
        points, V, G, floor = _move(at, points, direction, slope, ridge)
    coef = W.transpose(0, 2, 1)
    for k, s in enumerate(running.tolist()):
        coef[s] = fit_logistic_folds(
            X[s],
            y[s],
            row_weights[s],
            np.full(row_weights.shape[2], C),
            n_classes=2,
            penalty=penalty,
            start=points[k].T[:, None, :],
            tol=HARD * float(tol[s]),
        )[:, 0]
    return coef


def _gradient(
    X: FloatArray, y: FloatArray, R: FloatArray, W: FloatArray, ridge: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Curvature of each row, gradients, and a number that each objective is known to exceed."""
    Z = np.matmul(X, W)
    sign = (2.0 * y - 1.0).reshape(-1, 1)
    residual = residuals(Z.reshape(-1, Z.shape[2]), sign).reshape(Z.shape)
    V = np.abs(residual)
    V *= 1.0 - V
    residual *= R
    shrink = ridge[:, None] * W
    floor = np.abs(residual).sum(axis=1) + 0.5 * np.einsum("sdk,sdk->sk", shrink, W)
    return V, np.matmul(X.transpose(0, 2, 1), residual) + shrink, floor


@dataclass(frozen=True)
class Curvature:
    """A Hessian ready to be solved with."""

    factor: FloatArray  # (n_features, n_features); Cholesky's, or the inverse
    inverted: bool  # which of the two

    @classmethod
    def of(cls, X: FloatArray, row_curvature: FloatArray, ridge: FloatArray) -> Curvature:
        """Factorise ``X' diag(row_curvature) X + diag(ridge)`` in the precision of ``X``."""
        rooted = X * np.sqrt(row_curvature, dtype=X.dtype)[:, None]
        H = rooted.T @ rooted
        diagonal = np.arange(len(ridge))
        H[diagonal, diagonal] += ridge.astype(X.dtype)
        factor, failed = (spotrf if X.dtype == np.float32 else dpotrf)(H, lower=1)
        if not failed:
            return cls(factor, inverted=False)
        # Too ill-conditioned.
        wide = rooted.astype(np.float64)
        return cls(inverse_with_ridge(wide.T @ wide, ridge.astype(np.float64)), inverted=True)

    def solve(self, vectors: FloatArray) -> FloatArray:
        """Apply the inverse to the columns of an array."""
        if self.inverted:
            return np.asarray(self.factor @ vectors, dtype=vectors.dtype)
        solve = spotrs if self.factor.dtype == np.float32 else dpotrs
        return np.asarray(solve(self.factor, vectors, lower=1)[0], dtype=vectors.dtype)


def _move(
    at: tuple[FloatArray, FloatArray, FloatArray],
    W: FloatArray,
    direction: FloatArray,
    slope: FloatArray,
    ridge: FloatArray,
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Take full steps; shorten those at whose end the slope shows that they overshot."""
    length = np.ones_like(slope)
    moved = W + direction
    V, G, floor = _gradient(*at, moved, ridge)
    for _ in range(20):
        end = np.einsum("sdk,sdk->sk", G, direction)
        far: NDArray[np.bool_] = end > OVERSHOOT * -slope
        if not far.any():
            break
        where_flat = np.divide(slope, slope - end, out=np.ones_like(slope), where=far)
        length = np.where(far, length * np.clip(where_flat, 0.1, 0.9), length)
        moved = W + length[:, None, :].astype(W.dtype) * direction
        V, G, floor = _gradient(*at, moved, ridge)
    return moved, V, G, floor
