"""Sums over sites, a round for each: for a choice of the trade-off that is exact."""

from __future__ import annotations

from typing import Any

import numpy as np

from sourcewise.core.data import FloatArray, IntArray
from sourcewise.core.quadratic_sources import QuadraticSources, QuadraticSums
from sourcewise.core.source_weights import SourceWeights

NO_MOMENTS = "Moments are asked for all at once."


class FlowerSums:
    """Weighted sums of gradients and curvature; the weights never leave the server."""

    def __init__(self, engine: Any, weights: SourceWeights):
        self.engine, self.weights = engine, weights

    def gradients(
        self, points: FloatArray, columns: IntArray, at: IntArray | None = None
    ) -> FloatArray:
        """Ask for sums of (x, label) times residual."""
        each = self.engine.gradients(_as_models(points))
        if at is not None:
            each = each[:, at]
        weights = self.weights.of(slice(None), columns)
        return np.asarray(np.einsum("iqek,iq->ekq", each, weights), dtype=points.dtype)

    def curvature(
        self,
        points: FloatArray,
        columns: IntArray,
        at: IntArray,
        basis: FloatArray | None = None,
        every: int = 1,
    ) -> tuple[FloatArray, FloatArray]:
        """Ask for the curvature at the points of the columns."""
        models = _as_models(points)
        engine = self.engine
        around = QuadraticSources(
            models,
            engine.derivatives(models),
            engine.sizes,
            engine.row_counts,
            engine.n_classes,
            at,
        )
        sums = QuadraticSums(around, self.weights.in_columns(columns))
        return sums.curvature(points, np.arange(len(columns)), at, basis)

    def moments(self, columns: IntArray) -> tuple[FloatArray, FloatArray]:
        """Refuse: a regression's learner has them."""
        raise AssertionError(NO_MOMENTS)


def _as_models(points: FloatArray) -> FloatArray:
    """Models (n_points, n_outputs, n_features) in double precision."""
    return np.ascontiguousarray(points.transpose(1, 2, 0), dtype=np.float64)
