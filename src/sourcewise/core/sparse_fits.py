r"""Linear models of many sparse rows, without a matrix of the size of the features or of the rows.

Few rows are fitted in coordinates of their span (:mod:`sourcewise.core.sparse_span`). Where they
are many, the models of all weightings go down together by limited-memory quasi-Newton steps. These
start from the curvature in a few directions in which the rows vary most, found by a random
projection :math:`V = \operatorname{orth}(X^\top X \Omega)`, and a number for all others:

.. math:: H \approx V A V^\top + r (I - V V^\top) .
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sourcewise.core.data import FloatArray, IntArray
from sourcewise.core.logistic import centre_outputs, inverse_with_ridge
from sourcewise.core.loss import Loss, label_sums
from sourcewise.core.quasi_newton import Gradient, inner, minimise_columns
from sourcewise.core.source_gradients import outputs_first
from sourcewise.core.sparse_rows import SparseRows

DIRECTIONS = 64  # in which the curvature is known
REFRESH = 12  # gradients after which it is made anew where the columns are
COEFFICIENTS = 2_000_000  # of all models that are fitted side by side
MAX_ITER = 500


def fit_sparse_rows(
    X: SparseRows,
    y: Any,
    row_weights: FloatArray,
    C: FloatArray,
    *,
    loss: Loss,
    penalty: FloatArray,
    tol: float,
    start: FloatArray | None = None,
) -> FloatArray:
    """Fit models to weightings (n_rows, n_columns): (n_columns, n_outputs, n_features).

    Column ``p`` minimises ``sum_j r_jp loss_j + sum_f penalty_f w_f^2 / (2 C_p)``; ``start`` and
    ``tol`` are as for :func:`sourcewise.core.fold_logistic.fit_logistic_folds`.
    """
    n_columns, d = row_weights.shape[1], X.shape[1]
    coef = np.empty((n_columns, loss.outputs, d), dtype=X.dtype)
    basis = leading_directions(X)
    width = max(1, COEFFICIENTS // (d * loss.outputs))
    for low in range(0, n_columns, width):
        some = slice(low, low + width)
        near = np.zeros_like(coef[some]) if start is None else start[some].astype(X.dtype)
        problem = _Columns(X, y, loss, row_weights[:, some], C[some], penalty, basis)
        coef[some] = problem.minimise(near.transpose(2, 0, 1), tol).transpose(1, 2, 0)
    return coef


def leading_directions(X: SparseRows, n_directions: int = DIRECTIONS) -> FloatArray:
    """Orthonormal columns about where rows vary most, (n_features - 1, n_directions).

    Drawn by the number of rows alone, so that nothing else about them matters.
    """
    d = X.shape[1] - 1
    k = min(n_directions, d, len(X))
    drawn = np.random.default_rng(len(X)).normal(size=(d, k)).astype(X.dtype)
    return np.linalg.qr(X.transposed_times(X.times(drawn)))[0]


class _Columns:
    """Weightings that are fitted side by side."""

    def __init__(
        self,
        X: SparseRows,
        y: Any,
        loss: Loss,
        row_weights: FloatArray,
        C: FloatArray,
        penalty: FloatArray,
        basis: FloatArray,
    ):
        self.X, self.loss, self.basis = X, loss, basis
        self.labels = loss.labels(y, X.dtype)
        self.weights = row_weights.astype(X.dtype)
        self.ridge = (penalty[:, None] / C).astype(X.dtype)
        inside = X.times(basis)
        self.Z = np.column_stack([inside, X.last])
        norms = np.sum(np.square(inside), axis=1, dtype=np.float64)
        self.outside = np.maximum(X.squared_norms - norms, 0.0)
        k = basis.shape[1]
        n_columns = row_weights.shape[1]
        self.inverses: FloatArray = np.empty((n_columns, k + 1, k + 1), dtype=X.dtype)
        self.others: FloatArray = np.empty(n_columns, dtype=X.dtype)

    def minimise(self, start: FloatArray, tol: float) -> FloatArray:
        """Go down from points (n_features, n_columns, n_outputs)."""
        self.refresh(start, np.arange(start.shape[1]))
        solution, _ = minimise_columns(
            start,
            self.evaluate,
            self.precondition,
            tol=tol,
            max_iter=MAX_ITER,
            refresh=self.refresh,
            refresh_every=REFRESH,
        )
        return solution

    def evaluate(self, W: FloatArray, columns: IntArray) -> Gradient:
        """Gradients of some columns, and what their objectives exceed."""
        k = self.loss.outputs
        P = self.loss.residuals(self.X @ outputs_first(W), self.labels)
        P.reshape(len(P), k, -1)[:] *= self.weights[:, None, columns]
        shrink = self.ridge[:, columns, None] * W
        data_term = (self.X.T @ P).reshape(len(W), k, -1).swapaxes(1, 2)
        of_labels = label_sums(self.labels, P).reshape(k, -1).sum(axis=0, dtype=np.float64)
        below = self.loss.floor(of_labels, W, data_term)
        return Gradient(data_term + shrink, below + 0.5 * inner(shrink, W))

    def refresh(self, W: FloatArray, columns: IntArray) -> NDArray[np.bool_]:
        """Make the curvature of some columns anew at their points."""
        d, k = len(W), self.basis.shape[1]
        scores = (self.X @ outputs_first(W)).reshape(len(self.X), self.loss.outputs, -1)
        V = self.loss.curvature(scores.swapaxes(1, 2)).mean(axis=2) * self.weights[:, columns]
        few = np.append(np.arange(k), d - 1)  # all features but the last have one ridge
        for q, v in zip(columns, V.T, strict=True):
            H = self.Z.T @ (self.Z * v[:, None])
            self.inverses[q] = inverse_with_ridge(H, self.ridge[few, q])
            self.others[q] = v @ self.outside / max(d - 1 - k, 1) + self.ridge[0, q]
        return np.ones(len(columns), dtype=bool)

    def precondition(self, vectors: FloatArray, columns: IntArray) -> FloatArray:
        """Apply the inverses to vectors of shape (n_features, n_columns, n_outputs)."""
        k, shape = self.basis.shape[1], vectors.shape
        inside = np.empty((k + 1, *shape[1:]), dtype=vectors.dtype)
        inside[:k] = (self.basis.T @ vectors[:-1].reshape(shape[0] - 1, -1)).reshape(k, *shape[1:])
        inside[k] = vectors[-1]
        others = self.others[columns][:, None]
        solved = np.matmul(self.inverses[columns], inside.transpose(1, 0, 2)).transpose(1, 0, 2)
        back = solved[:k] - inside[:k] / others
        result = np.empty_like(vectors)
        result[:-1] = vectors[:-1] / others
        result[:-1] += (self.basis @ back.reshape(k, -1)).reshape(-1, *shape[1:])
        result[-1] = solved[k]
        return centre_outputs(result)
