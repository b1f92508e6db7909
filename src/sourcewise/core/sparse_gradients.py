"""Gradients of weighted losses over sources whose rows are sparse.

What :mod:`sourcewise.core.source_gradients` does with arrays, source by source, is done here with
blocks of all rows that count: a sparse product costs its stored values times the columns, so that
nothing is gained from small blocks, and each block's sums are as large as the models.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from sourcewise.core.data import FloatArray, IntArray, SourceData
from sourcewise.core.loss import label_sums, loss_of
from sourcewise.core.source_gradients import outputs_first
from sourcewise.core.source_weights import SourceWeights

SCORES = 4_000_000  # held at a time


class SparseGradients:
    """Sums over the untrusted sources of a pool of sparse rows, under given weights.

    Parameters
    ----------
    data : SourceData
        Its features are `SparseRows`; the reference may be among the sources, and is passed over.
    weights : SourceWeights
        Of the untrusted sources.
    """

    def __init__(self, data: SourceData, weights: SourceWeights):
        self.data, self.weights = data, weights
        self.loss = loss_of(data.n_classes)
        self.outputs = self.loss.outputs
        self.labels = self.loss.labels(data.y, data.X.dtype)

    def __call__(
        self, points: FloatArray, columns: IntArray, at: IntArray | None = None
    ) -> FloatArray:
        """Sum (x, label) times residual, as `SourceGradients` does."""
        flat = outputs_first(points)
        d, k = len(points), self.outputs
        total = np.zeros((d + 1, k, len(columns)), dtype=points.dtype)
        for rows, weight in self._blocks(columns, k * max(len(columns), points.shape[1])):
            X, labels = self.data.X[rows], self.labels[rows]
            residual = self.loss.residuals(X @ flat, labels).reshape(len(X), k, -1)
            residual = residual if at is None else residual[:, :, at]
            P = (residual * weight[:, None, :].astype(residual.dtype)).reshape(len(X), -1)
            total[:d] += (X.T @ P).reshape(d, k, -1)
            total[d] += label_sums(labels, P).reshape(k, -1)
        return total

    def _blocks(
        self, columns: IntArray, per_row: int
    ) -> Iterator[tuple[IntArray | slice, FloatArray]]:
        """Yield rows that count in some column, and their weights (n_rows, n_columns).

        ``per_row`` numbers are held for each of them.
        """
        data = self.data
        by_source = np.zeros((data.n_sources, len(columns)))
        by_source[data.untrusted] = self.weights.of(slice(None), columns)
        owner = data.source_of_row
        counts = np.any(by_source > 0.0, axis=1)
        used = np.flatnonzero(counts[owner] & (data.row_shares > 0.0))
        step = max(1, SCORES // max(per_row, 1))
        for low in range(0, len(used), step):
            rows = used[low : low + step]
            weight = by_source[owner[rows]] * data.row_shares[rows, None]
            # Neighbours need not be copied.
            together = rows[-1] - rows[0] + 1 == len(rows)
            yield slice(int(rows[0]), int(rows[-1]) + 1) if together else rows, weight
