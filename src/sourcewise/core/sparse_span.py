r"""Coordinates for sparse rows in their own span, from inner products alone.

With :math:`K` the inner products of some rows and :math:`K = L L^\top` its Cholesky factor, the
rows are those of :math:`L` in an orthonormal basis of their span. The basis itself,
:math:`X^\top L^{-\top}`, is dense and never made: what is wanted of it are products with a few
models. Pivots put rows that repeat others last, where they need no
coordinate of their own, and the rank is found on the way.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dpstrf

from sourcewise.core.data import FloatArray, IntArray
from sourcewise.core.sparse_rows import SparseRows

# Inner products grow with the square of the rows, and a fit in their span with its cube. Beyond,
# fits work on the sparse rows themselves (:mod:`sourcewise.core.sparse_fits`).
MOST_ROWS = 1500


def pivoted_cholesky(gram: FloatArray) -> tuple[FloatArray, IntArray, int]:
    """Return the factor ``L`` (n, rank) of a semi-definite matrix, its pivots and its rank.

    ``gram[pivots][:, pivots]`` is ``L L'``, and the first rows of ``L`` are lower triangular.
    """
    whole = gram.max(initial=0.0) > 0.0
    factor, pivots, rank, _ = dpstrf(gram, lower=1)
    rank = int(rank) if whole else 0
    return np.tril(factor)[:, :rank], pivots - 1, rank


@dataclass(frozen=True)
class SparseSpan:
    """Orthonormal basis of the span of some sparse rows, last column left out."""

    rows: SparseRows  # as many as the span has dimensions
    # (n_dimensions, n_dimensions); lower Cholesky factor of their inner products.
    factor: FloatArray

    @classmethod
    def of(cls, X: SparseRows) -> tuple[FloatArray, SparseSpan]:
        """Coordinates of rows (n_rows, n_dimensions + 1), the last column last, and the basis."""
        gram = X.astype(np.float64, copy=False).products(X.astype(np.float64, copy=False))
        lower, order, rank = pivoted_cholesky(gram)
        coordinates = np.empty((len(X), rank + 1), dtype=X.dtype)
        coordinates[order, :-1] = lower
        coordinates[:, -1] = X.last
        return coordinates, cls(X[order[:rank]], np.ascontiguousarray(lower[:rank]))

    def into(self, models: FloatArray) -> FloatArray:
        """Coordinates (..., n_dimensions) of models (..., n_features - 1) that lie in the span."""
        flat = models.reshape(math.prod(models.shape[:-1]), -1)
        found = solve_triangular(self.factor, self.rows.times(flat.T), lower=True)
        return np.asarray(found.T).reshape(*models.shape[:-1], len(self.factor))

    def back(self, coordinates: FloatArray) -> FloatArray:
        """Models (..., n_features - 1) from coordinates (..., n_dimensions)."""
        flat = coordinates.reshape(math.prod(coordinates.shape[:-1]), len(self.factor))
        combined = solve_triangular(self.factor, flat.T, lower=True, trans="T")
        models = self.rows.transposed_times(np.asarray(combined, dtype=self.rows.dtype))
        return models.T.reshape(*coordinates.shape[:-1], len(models))
