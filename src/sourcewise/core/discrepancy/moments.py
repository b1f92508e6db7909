"""Second moments of every source, and the ridge regressions they define."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from sourcewise.core.data import FloatArray, IntArray, SourceData


@dataclass(frozen=True)
class Moments:
    r"""Everything a quadratic loss of a linear model needs to know of a source.

    With rows :math:`x_j`, targets :math:`t_j` and shares :math:`s_j` of source ``i``,
    :math:`\sum_j s_j (x_j^\top w - t_j)^2 = w^\top G_i w - 2 b_i^\top w + q_i`.

    Attributes
    ----------
    gram : array of shape (n_sources, n_features, n_features)
        :math:`G_i = \sum_j s_j x_j x_j^\top`.
    cross : array of shape (n_sources, n_features, n_targets)
        :math:`b_i = \sum_j s_j x_j t_j`, one column per target (see `signed_targets`).
    square : array of shape (n_sources, n_targets)
        :math:`q_i = \sum_j s_j t_j^2`.
    """

    gram: FloatArray
    cross: FloatArray
    square: FloatArray


def signed_targets(y: NDArray[np.generic], n_classes: int) -> FloatArray:
    """Targets of the square loss, one column per problem.

    Parameters
    ----------
    y : array of shape (n_rows,)
        Class codes, or real targets when ``n_classes`` is 0.
    n_classes : int

    Returns
    -------
    array of shape (n_rows, n_targets)
        Regression: the target itself. Up to two classes: one column, +1 for class 1 and -1 for
        class 0. More: one column a class, +1 for that class and -1 for the rest.
    """
    if n_classes == 0:
        return np.asarray(y, dtype=np.float64)[:, None]
    positive = np.array([1]) if n_classes <= 2 else np.arange(n_classes)
    return np.where(y[:, None] == positive, 1.0, -1.0)


@dataclass(frozen=True)
class SourceRows:
    """The rows of one source that count: held-out rows have a share of zero.

    Attributes
    ----------
    X : array of shape (n_rows, n_features)
        In double precision.
    targets : array of shape (n_rows, n_targets)
    shares : array of shape (n_rows,)
    positions : int array of shape (n_rows,)
        Where the rows are in the data.
    """

    X: FloatArray
    targets: FloatArray
    shares: FloatArray
    positions: IntArray


def source_rows(data: SourceData, source: int) -> SourceRows:
    """Read the rows of one source."""
    start = data.rows(source).start
    positions = start + np.flatnonzero(data.row_shares[data.rows(source)])
    return SourceRows(
        np.asarray(data.X[positions], dtype=np.float64),
        signed_targets(data.y[positions], data.n_classes),
        np.asarray(data.row_shares[positions], dtype=np.float64),
        positions,
    )


def source_moments(data: SourceData) -> Moments:
    """Moments of every source, in one pass over the rows."""
    n_features = data.X.shape[1]
    n_targets = data.n_classes if data.n_classes > 2 else 1
    gram = np.empty((data.n_sources, n_features, n_features))
    cross = np.empty((data.n_sources, n_features, n_targets))
    square = np.empty((data.n_sources, n_targets))
    for i in range(data.n_sources):
        rows = source_rows(data, i)
        gram[i], cross[i] = weighted_moments(rows.X, rows.targets, rows.shares)
        square[i] = rows.shares @ rows.targets**2
    return Moments(gram, cross, square)


def weighted_moments(
    X: FloatArray, targets: FloatArray, weights: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """``X' diag(weights) X`` and ``X' diag(weights) targets``."""
    weighted = X * weights[:, None]
    return weighted.T @ X, weighted.T @ targets


def ridge_solution(gram: FloatArray, cross: FloatArray, ridge: float | FloatArray) -> FloatArray:
    r"""Solve :math:`(G + \rho I) W = b` for a stack of positive semi-definite :math:`G`.

    This is the minimiser of :math:`w^\top G w - 2 b^\top w + \rho \|w\|^2`.

    Parameters
    ----------
    gram : array of shape (n, n_features, n_features)
    cross : array of shape (n, n_features, n_targets)
    ridge : float or array of shape (n,)

    Returns
    -------
    array of shape (n, n_features, n_targets)
    """
    n, n_features = gram.shape[:2]
    ridges = np.broadcast_to(ridge, n)
    solution = np.empty(cross.shape)
    for i in range(n):
        system = gram[i] + ridges[i] * np.eye(n_features)
        try:
            factor = cho_factor(system, lower=True, check_finite=False)
            solution[i] = cho_solve(factor, cross[i], check_finite=False)
        except LinAlgError:
            solution[i] = _pseudo_solution(system, cross[i])
    return solution


def _pseudo_solution(system: FloatArray, cross: FloatArray) -> FloatArray:
    """Solve where the ridge has drowned in rounding: features so large that it does not show."""
    values, vectors = np.linalg.eigh(system)
    floor = len(values) * np.finfo(np.float64).eps * np.abs(values).max()
    kept = values > floor
    basis = vectors[:, kept]
    return np.asarray(basis @ ((basis.T @ cross) / values[kept, None]))
