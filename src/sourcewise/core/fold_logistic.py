r"""Logistic regressions of the same rows under weightings that differ little, such as folds.

Weightings under one regularisation have their mean for a *leader*. It is fitted first, which costs
a fraction of the batch; the others start from there, with its curvature: one matrix for each
output instead of one for each weighting and output. A handful of gradients is then left for the
batch, the first of which needs no exponentials, as all weightings stand at the same point. The
objective is that of :mod:`sourcewise.core.logistic`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sourcewise.core.data import FloatArray, IntArray
from sourcewise.core.logistic import centre_outputs, inverse_with_ridge
from sourcewise.core.loss import Logistic
from sourcewise.core.quasi_newton import Gradient, inner, minimise_columns

LEADER_TOL = 1e-6  # of leaders: nearer to their end than weightings are to each other
LEADER_REFRESH = 8  # gradients after which a leader gets a new curvature
# Gradients after which a weighting gets a curvature of its own: one matrix, or one for each output,
# which is as dear as many gradients and not even exact.
REFRESH = 12
REFRESH_CLASSES = 40
MAX_ITER = 500
BLOCK = 131072  # scores held at a time: they stay in cache between two products


def fit_logistic_folds(
    X: FloatArray,
    y: IntArray,
    row_weights: FloatArray,
    C: FloatArray,
    *,
    n_classes: int,
    penalty: FloatArray,
    tol: float,
    refresh: int | None = None,
    start: FloatArray | None = None,
) -> FloatArray:
    """Fit many weightings of the same rows.

    Parameters
    ----------
    X : array of shape (n_rows, n_features)
        Its dtype is the working precision.
    y : int array of shape (n_rows,)
        Class codes.
    row_weights : array of shape (n_rows, n_columns)
    C : array of shape (n_columns,)
    n_classes : int
    penalty : array of shape (n_features,)
        Relative penalty of each coefficient.
    tol : float
        A column stops when its predicted decrease is below ``tol`` times its objective.
    refresh : int, optional
        Gradients after which a weighting gets a curvature of its own.
    start : array of shape (n_columns, n_outputs, n_features), optional
        Where weightings start that have little in common; they have no leader then.

    Returns
    -------
    coef : array of shape (n_columns, n_outputs, n_features)
    """
    loss = Logistic(n_classes)
    labels = loss.labels(y, X.dtype)
    if start is not None:
        columns = LogisticColumns(X, labels, row_weights, penalty[:, None] / C)
        W, each = start.transpose(2, 0, 1).astype(X.dtype), np.arange(len(C))
        curvature = SharedCurvature(columns.inverse_curvatures(W), each)
        W = columns.minimise(W, each, curvature, tol=tol, refresh=LEADER_REFRESH)
        return np.asarray(W.transpose(1, 2, 0))
    settings, group = np.unique(C, return_inverse=True)
    group = group.ravel()
    means = np.stack([row_weights[:, group == g].mean(axis=1) for g in range(len(settings))], 1)
    W = np.zeros((X.shape[1], len(settings), loss.outputs), dtype=X.dtype)
    leaders = LogisticColumns(X, labels, means, penalty[:, None] / settings)
    apart = np.bincount(group).max() > 1
    alone = np.arange(len(settings))
    curvature = SharedCurvature(leaders.inverse_curvatures(W), alone)
    W = leaders.minimise(
        W, alone, curvature, tol=max(tol, LEADER_TOL) if apart else tol, refresh=LEADER_REFRESH
    )
    if apart:
        curvature = SharedCurvature(leaders.inverse_curvatures(W), group)
        # Without rows a model is zero: from anywhere else that takes for ever.
        empty = ~row_weights.any(axis=0)
        row_weights = np.where(empty, means[:, group], row_weights)
        columns = LogisticColumns(X, labels, row_weights, penalty[:, None] / C)
        refresh = refresh or (REFRESH if labels.shape[1] == 1 else REFRESH_CLASSES)
        W = columns.minimise(W, group, curvature, tol=tol, refresh=refresh)
        W[:, empty] = 0.0
    else:
        W = W[:, group]
    return np.asarray(W.transpose(1, 2, 0))


class LogisticColumns:
    """Gradients and curvatures of many weightings of the same rows.

    Parameters
    ----------
    X : array of shape (n_rows, n_features)
    labels : array of shape (n_rows, n_outputs)
        +1 and -1 for one output, the indicator for more.
    row_weights : array of shape (n_rows, n_columns)
    ridge : array of shape (n_features, n_columns)
    """

    def __init__(
        self, X: FloatArray, labels: FloatArray, row_weights: FloatArray, ridge: FloatArray
    ):
        self.X, self.labels, self.label = X, labels, labels.argmax(axis=1)
        self.loss = Logistic(labels.shape[1])
        self.R = np.ascontiguousarray(row_weights, dtype=X.dtype)
        self.ridge = ridge.astype(X.dtype)

    def gradient(
        self, points: FloatArray, columns: IntArray, at: IntArray | None = None
    ) -> Gradient:
        """Gradients of some columns.

        Parameters
        ----------
        points : array of shape (n_features, n_points, n_outputs)
        columns : int array of shape (n_columns,)
        at : int array of shape (n_columns,), optional
            Point at which each column stands; by default each has its own.
        """
        d, _, outputs = points.shape
        flat = np.ascontiguousarray(points.swapaxes(1, 2)).reshape(d, -1)
        value = np.zeros((d, outputs * len(columns)), dtype=points.dtype)
        missed = np.zeros(len(columns))
        R = self.R[:, columns]
        step = max(1, BLOCK // value.shape[1])
        for low in range(0, len(self.X), step):
            rows = slice(low, low + step)
            X = self.X[rows]
            P = self.loss.residuals(X @ flat, self.labels[rows]).reshape(len(X), outputs, -1)
            if at is not None:
                P = P[:, :, at]
            P *= R[rows, None]
            value += X.T @ P.reshape(len(X), -1)
            # 1 - p(label) never exceeds -log p(label).
            missed += np.abs(P[np.arange(len(X)), self.label[rows]]).sum(axis=0, dtype=np.float64)
        W = points if at is None else points[:, at]
        shrink = self.ridge[:, columns, None] * W
        total = value.reshape(d, outputs, -1).swapaxes(1, 2) + shrink
        return Gradient(total, missed + 0.5 * inner(shrink, W))

    def _curvatures(self, point: FloatArray, column: int) -> list[FloatArray]:
        """Curvature of one column's data at ``point``, a matrix for each output that differs."""
        # At zero all classes are equally probable: one curvature is that of all outputs.
        different = point.shape[1] if point.any() else 1
        V = self.R[:, column, None] * self.loss.curvature(self.X @ point)[:, :different]
        return [self.X.T @ (self.X * v[:, None]) for v in V.T]

    def _inverse(self, curvatures: list[FloatArray], column: int) -> FloatArray:
        inverses = [inverse_with_ridge(H, self.ridge[:, column]) for H in curvatures]
        shape = self.labels.shape[1], *inverses[0].shape
        return np.broadcast_to(np.stack(inverses), shape)

    def inverse_curvature(self, point: FloatArray, column: int) -> FloatArray:
        """Inverse of the curvature of one column at ``point``, (n_outputs, d, d)."""
        return self._inverse(self._curvatures(point, column), column)

    def inverse_curvatures(self, W: FloatArray) -> list[FloatArray]:
        """Return the same of every column, each at its own point.

        Columns of the same weights at the same point differ in their ridge only.
        """
        found, last, known = [], None, []
        for k in range(W.shape[1]):
            here = self.R[:, k].tobytes(), W[:, k].tobytes()
            known = known if here == last else self._curvatures(W[:, k], k)
            found.append(self._inverse(known, k))
            last = here
        return found

    def minimise(
        self,
        points: FloatArray,
        at: IntArray,
        curvature: SharedCurvature,
        *,
        tol: float,
        refresh: int,
    ) -> FloatArray:
        """Minimise all columns; column ``k`` starts at point ``at[k]``.

        After each ``refresh`` gradients a column that still runs gets a curvature of its own.
        """
        known = [self.gradient(points, np.arange(len(at)), at)]

        def evaluate(W: FloatArray, columns: IntArray) -> Gradient:
            return known.pop() if known else self.gradient(W, columns)

        def renew(W: FloatArray, columns: IntArray) -> NDArray[np.bool_]:
            for k, column in enumerate(columns):
                curvature.own[int(column)] = self.inverse_curvature(W[:, k], int(column))
            return np.ones(len(columns), dtype=bool)

        solution, _ = minimise_columns(
            points[:, at],
            evaluate,
            curvature,
            tol=tol,
            max_iter=MAX_ITER,
            refresh=renew,
            refresh_every=refresh,
        )
        return solution


class SharedCurvature:
    """Preconditioner of columns of which many share one curvature.

    Parameters
    ----------
    inverses : list of arrays of shape (n_outputs, n_features, n_features)
    of_column : int array of shape (n_columns,)
        Which of them is a column's.
    """

    def __init__(self, inverses: list[FloatArray], of_column: IntArray):
        self.shared, self.of_column = inverses, of_column
        self.own: dict[int, FloatArray] = {}

    def __call__(self, vectors: FloatArray, columns: IntArray) -> FloatArray:
        """Apply the inverses to vectors of shape (n_features, n_columns, n_outputs)."""
        result = np.empty_like(vectors)
        has_own = np.isin(columns, list(self.own))
        for k in np.flatnonzero(has_own):
            result[:, k] = self._apply(self.own[int(columns[k])], vectors[:, [k]])[:, 0]
        of_column = np.where(has_own, -1, self.of_column[columns])
        for g in np.unique(of_column[~has_own]):
            mine = of_column == g
            result[:, mine] = self._apply(self.shared[g], vectors[:, mine])
        return centre_outputs(result)

    @staticmethod
    def _apply(inverse: FloatArray, vectors: FloatArray) -> FloatArray:
        return np.asarray(np.matmul(inverse, vectors.transpose(2, 0, 1)).transpose(1, 2, 0))
