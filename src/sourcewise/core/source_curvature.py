r"""Curvature and second moments of the sources, summed under given weights.

Of a source's mean loss at a point, :math:`H_i = X_i^\top \operatorname{diag}(s\, v) X_i` with row
shares :math:`s` and :math:`v` the second derivative of a row's loss. What a solver needs is
:math:`\sum_i a_{iq} H_i` for some columns :math:`q`: no matrix of a single source is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from sourcewise.core.data import FloatArray, IntArray, SourceData
from sourcewise.core.loss import loss_of
from sourcewise.core.source_weights import SourceWeights
from sourcewise.core.sparse_rows import SparseRows

BUFFER = 2_000_000  # entries of single sources' matrices held until they are weighed
BLOCK_ROWS = 8192  # rows taken at a time where sources need not be told apart
ROW_ENTRIES = 1_000_000  # of rows times outputs times coordinates, held at a time
FEW_COLUMNS = 2  # at one point: then weighted rows cost less than a matrix for every source


@dataclass(frozen=True)
class Coordinates:
    """Rows in coordinates of a basis and the constant."""

    Z: FloatArray  # (n_rows, n_coordinates)
    # (n_rows,); squared length outside the basis, for each of the directions there.
    outside: FloatArray

    @classmethod
    def of(cls, X: FloatArray | SparseRows, basis: FloatArray | None) -> Coordinates:
        """Change the basis of rows whose last feature is the constant; None leaves them alone."""
        if isinstance(X, SparseRows):
            return cls._of_sparse(X, basis)
        if basis is None:
            return cls(X, np.zeros(len(X), dtype=X.dtype))
        features = X[:, :-1]
        inside = features @ basis.astype(X.dtype, copy=False)
        squares = np.einsum("nd,nd->n", features, features)
        squares -= np.einsum("nk,nk->n", inside, inside)
        n_outside = max(features.shape[1] - basis.shape[1], 1)
        return cls(
            np.column_stack([inside, X[:, -1]]), np.maximum(squares, 0.0) / X.dtype.type(n_outside)
        )

    @classmethod
    def _of_sparse(cls, X: SparseRows, basis: FloatArray | None) -> Coordinates:
        """Do the same with sparse rows; where features are few, they are their own basis."""
        d = X.shape[1] - 1
        directions = np.eye(d, dtype=X.dtype) if basis is None else basis.astype(X.dtype)
        inside = X.times(directions)
        squares = X.squared_norms - np.einsum("nk,nk->n", inside, inside, dtype=np.float64)
        outside = np.maximum(squares, 0.0) / max(d - directions.shape[1], 1)
        if basis is None:
            outside[:] = 0.0
        return cls(np.column_stack([inside, X.last]), outside.astype(X.dtype))

    def curvature(self, p: FloatArray, weight: FloatArray) -> tuple[FloatArray, FloatArray]:
        r"""Sum over rows of :math:`r\,(\operatorname{diag}(p) - p p^\top) \otimes z z^\top`.

        Parameters
        ----------
        p : array of shape (n_rows, n_outputs)
            Probabilities. Of a single output, its second derivative instead.
        weight : array of shape (n_rows,)

        Returns
        -------
        matrix : array of shape (n_outputs * n_coordinates, the same)
        outside : array of shape (n_outputs,)
            What a direction outside the basis has of each output's own, in the mean.
        """
        dtype = self.Z.dtype
        p, weight = p.astype(dtype, copy=False), weight.astype(dtype, copy=False)
        n, k = p.shape
        size = self.Z.shape[1]
        weighted = p * weight[:, None]
        if k == 1:
            rooted = self.Z * np.sqrt(weighted)
            return rooted.T @ rooted, self.outside @ weighted
        tall = (p[:, :, None] * (self.Z * np.sqrt(weight)[:, None])[:, None, :]).reshape(n, -1)
        matrix = -(tall.T @ tall)
        blocks = matrix.reshape(k, size, k, size)
        for o in range(k):
            rooted = self.Z * np.sqrt(weighted[:, o, None])
            blocks[o, :, o] += rooted.T @ rooted
        return matrix, self.outside @ (weighted * (1.0 - p))


def weighted_curvature(
    data: SourceData,
    weights: SourceWeights,
    points: FloatArray,
    columns: IntArray,
    at: IntArray,
    basis: FloatArray | None = None,
    every: int = 1,
) -> tuple[FloatArray, FloatArray]:
    """Curvature for preconditioners.

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
    basis : array of shape (n_features - 1, n_directions), optional
        Orthonormal directions in whose coordinates the curvature is wanted, followed by the
        constant; by default that of all features.
    every : int
        Of every source, one row in so many stands for all.

    Returns
    -------
    matrices : array of shape (n_columns, n_outputs * n_coordinates, the same)
    outside : array of shape (n_columns, n_outputs)
        Curvature of a direction outside the basis, in the mean over them.
    """
    loss, (d, n_points, k) = loss_of(data.n_classes), points.shape
    size = k * (d if basis is None else basis.shape[1] + 1)
    dtype = data.X.dtype
    found = np.zeros((len(columns), size * size + k), dtype=dtype)

    def of_rows(X: FloatArray, weight: FloatArray, counts: IntArray, p: int) -> FloatArray:
        probability = loss.parts(X @ points[:, p])
        rows, factors = thin(weight * importance(probability), counts, every)
        total = np.zeros(found.shape[1], dtype=dtype)
        step = max(64, ROW_ENTRIES // size)
        for low in range(0, len(rows), step):
            some = rows[low : low + step]
            matrix, outside = Coordinates.of(X[some], basis).curvature(
                probability[some], weight[some] * factors[low : low + step]
            )
            total[: size * size] += matrix.ravel()
            total[size * size :] += outside
        return total

    for p in range(n_points):
        theirs = np.flatnonzero(at == p)
        if len(theirs) <= FEW_COLUMNS:
            for q in theirs:
                for X, _, weight, counts in _weighted_rows(data, weights, columns[q]):
                    found[q] += of_rows(X, weight, counts, p)
            continue

        def of_source(X: FloatArray, y: object, shares: FloatArray, p: Any = p) -> FloatArray:
            return of_rows(X, shares, np.array([len(shares)]), p)

        found[theirs] = _sum_over_sources(
            data, weights, columns[theirs], of_source, found.shape[1], dtype
        )
    return found[:, : size * size].reshape(-1, size, size), found[:, size * size :]


def thin(importance: FloatArray, counts: IntArray, every: int) -> tuple[IntArray, FloatArray]:
    """Let one row in so many of every source stand for all of them.

    Rows are drawn at even steps of the running sum of their importance. Where a few rows make up
    most of it, as where classes can be told apart, those few are all drawn. Nothing depends on
    other sources.

    Parameters
    ----------
    importance : array of shape (n_rows,)
    counts : int array of shape (n_sources,)
        Rows of each source, one source after the other.
    every : int

    Returns
    -------
    rows : int array
    factors : array
        What each of these rows counts.
    """
    if every == 1:
        return np.arange(len(importance)), np.ones(len(importance))
    starts = np.cumsum(counts) - counts
    running = np.cumsum(importance, dtype=np.float64)
    before = running[starts] - importance[starts]
    totals = running[starts + counts - 1] - before
    n_drawn = -(-counts // every)
    source = np.repeat(np.arange(len(counts)), n_drawn)
    position = np.arange(len(source)) - np.repeat(np.cumsum(n_drawn) - n_drawn, n_drawn)
    step = totals / n_drawn
    drawn = np.searchsorted(running, before[source] + (position + 0.5) * step[source])
    drawn = np.clip(drawn, starts[source], starts[source] + counts[source] - 1)
    rows, first, times = np.unique(drawn, return_index=True, return_counts=True)
    known = importance[rows] > 0.0
    rows, first, times = rows[known], first[known], times[known]
    return rows, times * step[source[first]] / importance[rows]


def importance(probability: FloatArray) -> FloatArray:
    """How much curvature a row has, from what `Loss.parts` returns."""
    if probability.shape[1] == 1:
        return np.asarray(probability[:, 0], dtype=np.float64)
    return np.asarray(np.sum(probability * (1.0 - probability), axis=1, dtype=np.float64))


def spread_rows(data: SourceData, directions: FloatArray) -> FloatArray:
    """Sum over all untrusted rows of ``x (x' q)``, the constant left out."""
    total = np.zeros_like(directions)
    for run in data.untrusted_runs:
        for low in range(run.start, run.stop, BLOCK_ROWS):
            total += spread_of(data.X[low : min(low + BLOCK_ROWS, run.stop)], directions)
    return total


def spread_of(X: FloatArray | SparseRows, directions: FloatArray) -> FloatArray:
    """Sum over rows of ``x (x' q)``, the constant left out."""
    if isinstance(X, SparseRows):
        return X.transposed_times(X.times(directions))
    features = X[:, :-1]
    return np.asarray(features.T @ (features @ directions))


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
            for X, y, weight, _ in _weighted_rows(data, weights, column):
                gram, cross = row_moments(X, y, weight)
                grams[q] += gram
                crosses[q] += cross
        return grams, crosses

    def of_source(X: FloatArray, y: FloatArray, shares: FloatArray) -> FloatArray:
        return np.append(*row_moments(X, y, shares))

    found = _sum_over_sources(data, weights, columns, of_source, d * d + d, np.float64)
    return found[:, : d * d].reshape(-1, d, d), found[:, d * d :]


def row_moments(
    X: FloatArray | SparseRows, y: FloatArray, weight: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """``X' diag(weight) X`` and ``X' diag(weight) y``."""
    if isinstance(X, SparseRows):
        return X.weighted_gram(weight), X.T @ (weight * y)
    weighted = X * weight[:, None]
    return X.T @ weighted, y @ weighted


def _sum_over_sources(
    data: SourceData,
    weights: SourceWeights,
    columns: IntArray,
    of_source: Callable[[FloatArray, FloatArray, FloatArray], FloatArray],
    length: int,
    dtype: Any,
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
) -> Iterator[tuple[FloatArray, Any, FloatArray, IntArray]]:
    """Yield blocks of sources that count in one column: features, targets, row weights, counts."""
    untrusted = data.untrusted
    per_source = np.zeros(data.n_sources)
    per_source[untrusted] = weights.of(slice(None), np.array([column]))[:, 0]
    ends = np.searchsorted(data.starts, data.starts[:-1] + BLOCK_ROWS, side="right") - 1
    first = 0
    while first < data.n_sources:
        last = max(int(ends[first]), first + 1)
        used = per_source[first:last] > 0
        if used.any():
            rows = slice(int(data.starts[first]), int(data.starts[last]))
            counts = data.row_counts[first:last]
            weight = np.repeat(per_source[first:last], counts)
            weight *= data.row_shares[rows]
            some = slice(None) if used.all() else np.repeat(used, counts)
            yield data.X[rows][some], data.y[rows][some], weight[some], counts[used]
        first = last
