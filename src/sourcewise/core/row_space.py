r"""Fewer coordinates for rows with more features than there are rows.

An L2-penalised linear model is a combination of its rows: what is orthogonal to all of them changes
no score and only costs penalty. In an orthonormal basis of the span of ``n`` rows a model has ``n``
coefficients however many features there are, the same norm and the same scores, so the
minimiser is the same model. The last column, the constant, may have a penalty of its own and is
kept as it is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sourcewise.core.data import FloatArray

MIN_FEATURES = 64  # below, a change of basis saves less than it costs


@dataclass(frozen=True)
class RowSpace:
    """Rows in coordinates of their own span.

    Attributes
    ----------
    X : array of shape (..., n_rows, n_coordinates)
        The constant is still the last column.
    basis : array of shape (..., n_features - 1, n_coordinates - 1), or None
        Orthonormal columns; None where the rows are as they were.
    """

    X: FloatArray
    basis: FloatArray | None

    @classmethod
    def of(cls, X: FloatArray) -> RowSpace:
        """Change the basis of rows (..., n_rows, n_features), if that saves coordinates."""
        *stack, n, d = X.shape
        if not saves_coordinates(n, d):
            return cls(X, None)
        basis, triangle = np.linalg.qr(np.swapaxes(X[..., :-1], -1, -2))
        rotated = np.empty((*stack, n, n + 1), dtype=X.dtype)
        rotated[..., :-1] = np.swapaxes(triangle, -1, -2)
        rotated[..., -1] = X[..., -1]
        return cls(rotated, basis)

    def into(self, models: FloatArray) -> FloatArray:
        """Coordinates of models (..., n_models, n_features) that are combinations of the rows."""
        if self.basis is None:
            return models
        return self._transform(models, self.basis)

    def back(self, models: FloatArray) -> FloatArray:
        """Coefficients (..., n_models, n_features) of models given in coordinates."""
        if self.basis is None:
            return models
        return self._transform(models, np.swapaxes(self.basis, -1, -2))

    def _transform(self, models: FloatArray, basis: FloatArray) -> FloatArray:
        result = np.empty((*models.shape[:-1], basis.shape[-1] + 1), dtype=models.dtype)
        result[..., :-1] = models[..., :-1] @ basis
        result[..., -1] = models[..., -1]
        return result


def saves_coordinates(n_rows: int, n_features: int) -> bool:
    """Whether a change of basis is worth its cost."""
    return n_features >= MIN_FEATURES and n_features - 1 > n_rows
