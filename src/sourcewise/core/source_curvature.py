r"""Curvature and second moments of the sources, summed under given weights.

Of a source's mean loss at a point, :math:`H_i = X_i^\top \operatorname{diag}(s\, v) X_i` with row
shares :math:`s` and :math:`v` the second derivative of a row's loss. What a solver needs is
:math:`\sum_i a_{iq} H_i` for some columns :math:`q`: no matrix of a single source is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from sourcewise.core.data import FloatArray, IntArray, SourceData
from sourcewise.core.logistic import row_curvature
from sourcewise.core.source_weights import SourceWeights

BUFFER = 2_000_000  # entries of single sources' matrices held until they are weighed
BLOCK_ROWS = 8192  # rows taken at a time where sources need not be told apart
FEW_COLUMNS = 2  # at one point: then weighted rows cost less than a matrix for every source


def weighted_curvature(
    data: SourceData,
    weights: SourceWeights,
    points: FloatArray,
    columns: IntArray,
    at: IntArray,
) -> tuple[FloatArray, FloatArray]:
    """Curvature for preconditioners: of single precision, and as a mean over the outputs.

    Parameters
    ----------
    data : SourceData
        The reference is left out.
    weights : SourceWeights
        Of the untrusted sources.
    points : array of shape (n_features, n_points, n_outputs)
    columns : int array of shape (n_columns,)
    at : int array of shape (n_columns,)
        Point at which each column stands.

    Returns
    -------
    mean : float32 array of shape (n_columns, n_features, n_features)
        Mean over the outputs.
    by_output : array of shape (n_columns, n_outputs)
        Sum of the second derivatives in each output: a rare class has little curvature.
    """
    d, n_points, k = points.shape
    by_output = np.zeros((len(columns), k))
    mean = np.zeros((len(columns), d * d), dtype=np.float32)
    narrow = points.astype(np.float32)
    crowded = np.bincount(at, minlength=n_points) > FEW_COLUMNS
    for p in np.flatnonzero(~crowded):
        for q in np.flatnonzero(at == p):
            for X, weight in _weighted_rows(data, weights, columns[q]):
                X = X.astype(np.float32, copy=False)
                V = row_curvature(X @ narrow[:, p]) * weight[:, None].astype(np.float32)
                by_output[q] += V.sum(axis=0)
                rooted = X * np.sqrt(V.mean(axis=1))[:, None]
                mean[q] += (rooted.T @ rooted).ravel()
    for p in np.flatnonzero(crowded):
        theirs = np.flatnonzero(at == p)

        def of_source(X: FloatArray, y: object, shares: FloatArray, p: Any = p) -> FloatArray:
            X = X.astype(np.float32, copy=False)
            V = row_curvature(X @ narrow[:, p]) * shares[:, None].astype(np.float32)
            return np.append(X.T @ (X * V.mean(axis=1)[:, None]), V.sum(axis=0))

        found = _sum_over_sources(data, weights, columns[theirs], of_source, d * d + k, np.float32)
        mean[theirs] = found[:, : d * d]
        by_output[theirs] = found[:, d * d :]
    return mean.reshape(-1, d, d), by_output


def exact_hessians(
    data: SourceData, weights: SourceWeights, points: FloatArray, columns: IntArray
) -> FloatArray:
    """Curvature of every column at a point of its own, output by output.

    Points have the shape (n_features, n_columns, n_outputs), the result
    (n_columns, n_outputs, n_features, n_features).
    """
    d, _, k = points.shape
    found = np.zeros((len(columns), k, d, d), dtype=data.X.dtype)
    for q, column in enumerate(columns):
        for X, weight in _weighted_rows(data, weights, column):
            found[q] += row_hessians(X, weight, points[:, q])
    return found


def row_hessians(X: FloatArray, weight: FloatArray, point: FloatArray) -> FloatArray:
    """Curvature of weighted rows at a point (n_features, n_outputs), output by output."""
    V = (row_curvature(X @ point) * weight[:, None]).astype(X.dtype)
    return np.stack([X.T @ (X * v[:, None]) for v in V.T])


def weighted_moments(
    data: SourceData, weights: SourceWeights, columns: IntArray
) -> tuple[FloatArray, FloatArray]:
    r"""Return :math:`\sum_i a_{iq} X_i' S_i X_i` and :math:`\sum_i a_{iq} X_i' S_i y_i`.

    Of the shapes (n_columns, n_features, n_features) and (n_columns, n_features).
    """
    d = data.X.shape[1]
    if len(columns) <= FEW_COLUMNS:
        grams, crosses = np.zeros((len(columns), d, d)), np.zeros((len(columns), d))
        for q, column in enumerate(columns):
            for X, y, weight in _weighted_rows_and_targets(data, weights, column):
                gram, cross = row_moments(X, y, weight)
                grams[q] += gram
                crosses[q] += cross
        return grams, crosses

    def of_source(X: FloatArray, y: FloatArray, shares: FloatArray) -> FloatArray:
        return np.append(*row_moments(X, y, shares))

    found = _sum_over_sources(data, weights, columns, of_source, d * d + d, np.float64)
    return found[:, : d * d].reshape(-1, d, d), found[:, d * d :]


def row_moments(X: FloatArray, y: FloatArray, weight: FloatArray) -> tuple[FloatArray, FloatArray]:
    """``X' diag(weight) X`` and ``X' diag(weight) y``."""
    weighted = X * weight[:, None]
    return X.T @ weighted, y @ weighted


def _sum_over_sources(
    data: SourceData,
    weights: SourceWeights,
    columns: IntArray,
    of_source: Callable[[FloatArray, FloatArray, FloatArray], FloatArray],
    length: int,
    dtype: type[np.floating],
) -> FloatArray:
    """Weigh vectors of all sources that count: (n_columns, length)."""
    total: FloatArray = np.zeros((len(columns), length), dtype=dtype)
    untrusted = data.untrusted
    many = min(max(4, BUFFER // length), max(len(untrusted), 1))
    buffer: FloatArray = np.empty((many, length), dtype=dtype)
    for low in range(0, len(untrusted), len(buffer)):
        some = np.arange(low, min(low + len(buffer), len(untrusted)))
        mine = weights.of(some, columns)
        counts = np.flatnonzero(mine.any(axis=1))
        for slot, k in enumerate(counts):
            rows = data.rows(untrusted[some[k]])
            buffer[slot] = of_source(data.X[rows], data.y[rows], data.row_shares[rows])
        total += mine[counts].T.astype(dtype) @ buffer[: len(counts)]
    return total


def _weighted_rows(
    data: SourceData, weights: SourceWeights, column: int
) -> Iterator[tuple[FloatArray, FloatArray]]:
    return ((X, w) for X, _, w in _weighted_rows_and_targets(data, weights, column))


def _weighted_rows_and_targets(
    data: SourceData, weights: SourceWeights, column: int
) -> Iterator[tuple[FloatArray, Any, FloatArray]]:
    """Yield blocks of the rows that count in one column, and the weight of each row."""
    untrusted = data.untrusted
    per_source = np.zeros(data.n_sources)
    per_source[untrusted] = weights.of(slice(None), np.array([column]))[:, 0]
    ends = np.searchsorted(data.starts, data.starts[:-1] + BLOCK_ROWS, side="right") - 1
    first = 0
    while first < data.n_sources:
        last = max(int(ends[first]), first + 1)
        if per_source[first:last].any():
            rows = slice(int(data.starts[first]), int(data.starts[last]))
            weight = np.repeat(per_source[first:last], data.row_counts[first:last])
            weight *= data.row_shares[rows]
            used = weight > 0
            some = slice(None) if used.all() else used
            yield data.X[rows][some], data.y[rows][some], weight[some]
        first = last
