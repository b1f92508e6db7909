r"""Sources known by their second moments: for the squared loss, that is all there is to know.

Of the matrix of second moments of (features, target) any square root gives rows with the same
moments, which have nothing else in common with a source's own. On these, everything that works
with rows works as it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from sourcewise.core.data import FloatArray, IntArray, SourceData
from sourcewise.core.discrepancy.moments import Moments
from sourcewise.core.discrepancy.pull import join
from sourcewise.core.engine import Arrays, Engine, Question, WeightedSums
from sourcewise.core.family import SharedRows
from sourcewise.core.row_space import RowSpace
from sourcewise.core.source_curvature import spread_rows, weighted_curvature, weighted_moments
from sourcewise.core.source_gradients import SourceGradients
from sourcewise.core.source_weights import SourceWeights


def rows_of_moments(moments: FloatArray) -> FloatArray:
    """Rows whose mean outer product is a positive semi-definite matrix, as many as it has."""
    values, vectors = np.linalg.eigh(moments)
    roots = np.sqrt(np.maximum(values, 0.0) * len(values))
    return np.asarray(roots[:, None] * vectors.T)


@dataclass(frozen=True)
class MomentSources:
    """An engine of sources whose moments are known.

    Attributes
    ----------
    moments : Moments
        Of regression targets.
    sizes : array of shape (n_sources,)
    row_counts : int array of shape (n_sources,)
    """

    moments: Moments
    sizes: FloatArray
    row_counts: IntArray
    n_classes: int = 0

    @cached_property
    def data(self) -> SourceData:
        """Rows with the same moments."""
        rows = [
            rows_of_moments(np.block([[gram, cross], [cross.T, np.diag(square)]]))
            for gram, cross, square in zip(
                self.moments.gram, self.moments.cross, self.moments.square, strict=True
            )
        ]
        each = len(rows[0])
        stacked = np.concatenate(rows)
        starts = each * np.arange(len(rows) + 1)
        shares = np.full(len(stacked), 1.0 / each)
        return SourceData(stacked[:, :-1], stacked[:, -1], starts, -1, shares, 0)

    def near(self, around: IntArray | int) -> MomentSources:
        """Stay as they are: nothing depends on where the loss is looked at."""
        return self

    def joint_models(
        self,
        *,
        family: Any,
        setting: float,
        X: FloatArray,
        y: Any,
        weights: FloatArray,
        models: Any,
        size: float,
    ) -> Arrays:
        """Join each source with the reference's rows, as the source itself would."""
        shared = SharedRows(X, y, weights, models)
        return join(self.data, np.minimum(self.sizes, size), family, shared, setting)

    def ask(
        self, question: Question, sources: Sequence[int] | None = None
    ) -> Iterator[tuple[IntArray, Any]]:
        """Refuse: there are no rows to answer from."""
        raise AssertionError("Sources that are known by moments only cannot be asked questions.")

    def weighted(self, weights: SourceWeights) -> WeightedSums:
        """Get ready for sums under these weights."""
        return MomentSums(self.data, weights)

    def spread(self, directions: FloatArray) -> FloatArray:
        """Second moments times directions."""
        return spread_rows(self.data, directions)

    def in_row_space(self, reference: FloatArray) -> tuple[Engine, RowSpace] | None:
        """Stay as they are."""
        return None


class MomentSums:
    """Sums over rows that have the sources' moments."""

    def __init__(self, data: SourceData, weights: SourceWeights):
        self._data, self._weights = data, weights

    @cached_property
    def gradients(self) -> SourceGradients:
        """Sums of (x, label) times residual."""
        return SourceGradients(self._data, self._weights)

    def curvature(
        self,
        points: FloatArray,
        columns: IntArray,
        at: IntArray,
        basis: FloatArray | None = None,
        every: int = 1,
    ) -> tuple[FloatArray, FloatArray]:
        """Curvature of all rows: none of them stands for others."""
        return weighted_curvature(self._data, self._weights, points, columns, at, basis)

    def moments(self, columns: IntArray) -> tuple[FloatArray, FloatArray]:
        """Second moments, and those with the target."""
        return weighted_moments(self._data, self._weights, columns)
