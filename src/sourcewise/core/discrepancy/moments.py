"""Second moments of every source, and the ridge regressions they define."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from sourcewise.core.data import FloatArray, IntArray, SourceData
from sourcewise.core.sparse_rows import as_rows


@dataclass(frozen=True)
class Moments:
    r"""Everything a quadratic loss of a linear model needs to know of a source.

    With rows :math:`x_j`, targets :math:`t_j` and shares :math:`s_j` of source ``i``,
    :math:`\sum_j s_j (x_j^\top w - t_j)^2 = w^\top G_i w - 2 b_i^\top w + q_i`.
    """

    gram: FloatArray  # (n_sources, n_features, n_features); G_i = sum_j s_j x_j x_j'
    # (n_sources, n_features, n_targets); b_i = sum_j s_j x_j t_j, one column per target
    # (see `signed_targets`)
    cross: FloatArray
    square: FloatArray  # (n_sources, n_targets); q_i = sum_j s_j t_j^2


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
    """The rows of one source, or of the reference, that count: others have a share of zero."""

    X: FloatArray  # (n_rows, n_features); in double precision
    targets: FloatArray  # (n_rows, n_targets)
    shares: FloatArray  # (n_rows,)
    positions: IntArray  # (n_rows,); where the rows are among all rows of the source


def source_rows(data: SourceData, source: int) -> SourceRows:
    """Read the rows of one source."""
    rows = data.rows(source)
    return counted_rows(data.X[rows], data.y[rows], data.row_shares[rows], data.n_classes)


def counted_rows(
    X: FloatArray, y: NDArray[np.generic], shares: FloatArray, n_classes: int
) -> SourceRows:
    """Rows that have a share, in double precision."""
    positions = np.flatnonzero(shares)
    chosen = slice(None) if len(positions) == len(shares) else positions
    return SourceRows(
        as_rows(X[chosen]),
        signed_targets(y[chosen], n_classes),
        np.asarray(shares[chosen], dtype=np.float64),
        positions,
    )


def moments_of(rows: SourceRows) -> Moments:
    """Moments of one source, with a leading axis of length 1."""
    gram, cross = weighted_moments(rows.X, rows.targets, rows.shares)
    return Moments(gram[None], cross[None], (rows.shares @ rows.targets**2)[None])


def concat_moments(parts: Sequence[Moments]) -> Moments:
    """Moments one behind the other."""
    return Moments(
        *(np.concatenate([getattr(part, f.name) for part in parts]) for f in fields(Moments))
    )


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
