"""Curvature of every source at a few points, and points where solutions are expected."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sourcewise.core.data import FloatArray, IntArray, SourceData
from sourcewise.core.logistic import row_curvature
from sourcewise.core.source_gradients import GridProblem


@dataclass(frozen=True)
class SourceCurvature:
    """Curvature of each source's mean loss at some pilot solutions.

    Attributes
    ----------
    value : float32 array of shape (n_pilots, n_sources, n_features ** 2)
        Mean over the outputs. Single precision is plenty for a preconditioner and halves the
        largest array there is.
    by_output : array of shape (n_pilots, n_sources, n_outputs)
        Mean second derivative of the loss in each output: a rare class has little curvature.
    C : array of shape (n_pilots,)
        Regularisation of each pilot.
    """

    value: FloatArray
    by_output: FloatArray
    C: FloatArray

    @classmethod
    def at(cls, data: SourceData, W: FloatArray, C: FloatArray) -> SourceCurvature:
        """Curvature at points of shape (n_features, n_pilots, n_outputs)."""
        d, n_pilots, k = W.shape
        value = np.empty((n_pilots, data.n_sources, d * d), dtype=np.float32)
        by_output = np.empty((n_pilots, data.n_sources, k))
        flat = W.reshape(d, -1).astype(np.float32)
        for i, rows in enumerate(data.slices()):
            X = data.X[rows].astype(np.float32, copy=False)
            V = row_curvature((X @ flat).reshape(-1, n_pilots, k))
            V *= data.row_shares[rows, None, None].astype(np.float32)
            by_output[:, i] = V.sum(axis=0)
            V = V.mean(axis=2)
            for p in range(n_pilots):
                value[p, i] = (X.T @ (X * V[:, [p]])).ravel()
        return cls(value, by_output, C)

    def nearest(self, C: FloatArray) -> IntArray:
        """Pilot whose regularisation is nearest to each of some."""
        if len(self.C) == 1:
            return np.zeros(len(C), dtype=np.intp)
        return np.asarray(np.abs(np.log(self.C[None, :] / C[:, None])).argmin(axis=1))

    def of_columns(self, weights: FloatArray, pilot: int) -> FloatArray:
        """Weighted sums over sources, (n_columns, n_outputs, n_features, n_features).

        From weights of shape (n_sources, n_columns).
        """
        d = int(np.sqrt(self.value.shape[2]))
        used = np.flatnonzero(weights.any(axis=1))
        some = slice(None) if len(used) == len(weights) else used
        shared = weights[some].T.astype(np.float32) @ self.value[pilot][some]
        by_output = weights[some].T @ self.by_output[pilot][some]
        mean = np.maximum(by_output.mean(axis=1, keepdims=True), np.finfo(np.float64).tiny)
        factors = (by_output / mean).astype(np.float32)
        return np.asarray(factors[:, :, None, None] * shared.reshape(-1, 1, d, d))


@dataclass(frozen=True)
class Pilots:
    """Points near which solutions are expected, and what every source says of them.

    Attributes
    ----------
    points : array of shape (n_features, n_pilots, n_outputs)
    sums : array of shape (n_sources, n_features + n_outputs, n_pilots, n_outputs)
        As of :func:`sourcewise.core.source_gradients.source_sums`.
    losses : array of shape (n_sources, n_pilots)
        Mean loss of each source.
    curvature : SourceCurvature
        At some of the points.
    curved : int array of shape (n_pilots,)
        Which curvature goes with each point.
    """

    points: FloatArray
    sums: FloatArray
    losses: FloatArray
    curvature: SourceCurvature
    curved: IntArray

    def nearest(self, problem: GridProblem, columns: IntArray) -> IntArray:
        """Pilot at which each column's objective is lowest, left-out rows counted in."""
        squares = problem.penalty @ np.square(self.points).sum(axis=2)
        objective = problem.weights[:, columns].T @ self.losses
        objective += 0.5 * squares[None, :] / problem.C[columns, None]
        return np.asarray(objective.argmin(axis=1))
