r"""Fewer coordinates for rows with more features than there are rows.

An L2-penalised linear model is a combination of its rows: what is orthogonal to all of them changes
no score and only costs penalty. In an orthonormal basis of the span of ``n`` rows a model has ``n``
coefficients however many features there are, the same norm and the same scores, so the
minimiser is the same model. The last column, the constant, may have a penalty of its own and is
kept as it is.

The basis comes from the Cholesky factor of the rows' inner products, which costs a fraction of an
orthogonal factorisation. That is left to the rows that nearly repeat others: a reference centred by
its own mean has one of them. A coordinate that the rows do not need is zero in all of them, and the
minimiser is zero there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import qr
from scipy.linalg.lapack import dpstrf, dtrtri

from sourcewise.core.data import FloatArray
from sourcewise.core.sparse_rows import SparseRows
from sourcewise.core.sparse_span import SparseSpan

MIN_FEATURES = 64  # below, a change of basis saves less than it costs
GRAM_FEATURES = 2048  # features whose inner products are summed up at a time
# What is left of a row beside others, as a share of the longest row and squared, for it not to be
# a repetition of them. A basis is orthonormal to about machine precision divided by that.
LEAST_PIVOT = {np.dtype(np.float64): 1e-6, np.dtype(np.float32): 1e-3}


@dataclass(frozen=True)
class Basis:
    """Orthonormal vectors as combinations of rows, which are at hand anyway."""

    spanning: FloatArray  # (..., n_vectors, n_features)
    # (..., n_vectors, n_vectors); the vectors are the columns of ``spanning.T @ mixing``.
    mixing: FloatArray

    def into(self, vectors: FloatArray) -> FloatArray:
        """Coordinates of vectors (..., n_features) in the span."""
        return np.asarray(vectors @ np.swapaxes(self.spanning, -1, -2) @ self.mixing)

    def back(self, coordinates: FloatArray) -> FloatArray:
        """Vectors with coordinates (..., n_vectors)."""
        return np.asarray(coordinates @ np.swapaxes(self.mixing, -1, -2) @ self.spanning)


@dataclass(frozen=True)
class RowSpace:
    """Rows in coordinates of their own span."""

    X: FloatArray  # (..., n_rows, n_coordinates); the constant is still the last column
    basis: Basis | SparseSpan | None  # None where the rows are as they were

    @classmethod
    def of(cls, X: FloatArray | SparseRows) -> RowSpace:
        """Change the basis of rows (..., n_rows, n_features), if that saves coordinates.

        Sparse rows always get one: their coordinates are an array.
        """
        if isinstance(X, SparseRows):
            return cls(*SparseSpan.of(X))
        *stack, n, d = X.shape
        if not saves_coordinates(n, d):
            return cls(X, None)
        rotated = np.empty((*stack, n, n + 1), dtype=X.dtype)
        basis = Basis(X[..., :-1].copy(), np.zeros((*stack, n, n), dtype=X.dtype))
        for member in np.ndindex(*stack):
            rotated[(*member, slice(None), slice(-1))] = orthonormalise(
                basis.spanning[member], basis.mixing[member]
            )
        rotated[..., -1] = X[..., -1]
        return cls(rotated, basis)

    def into(self, models: FloatArray) -> FloatArray:
        """Coordinates of models (..., n_models, n_features) that are combinations of the rows."""
        return models if self.basis is None else _beside_constant(models, self.basis.into)

    def back(self, models: FloatArray) -> FloatArray:
        """Coefficients (..., n_models, n_features) of models given in coordinates."""
        return models if self.basis is None else _beside_constant(models, self.basis.back)


def _beside_constant(
    models: FloatArray, transform: Callable[[FloatArray], FloatArray]
) -> FloatArray:
    """Transform all coefficients but the last."""
    return np.concatenate(
        [transform(models[..., :-1]), models[..., -1:]], axis=-1, dtype=models.dtype
    )


def saves_coordinates(n_rows: int, n_features: int) -> bool:
    """Whether a change of basis is worth its cost."""
    return n_features >= MIN_FEATURES and n_features - 1 > n_rows


def orthonormalise(rows: FloatArray, mixing: FloatArray) -> FloatArray:
    """Find an orthonormal basis of the span of some rows.

    Parameters
    ----------
    rows : array of shape (n_rows, n_features)
        Not more rows than features. Those that repeat others are replaced by what the basis has in
        their place: what is left of them beside the others, or zeros.
    mixing : array of zeros of shape (n_rows, n_rows)
        Filled in, see `Basis`.

    Returns
    -------
    coordinates : array of shape (n_rows, n_rows)
        Of the rows as they were given.
    """
    gram = _inner_products(rows)
    longest = max(float(gram.diagonal().max()), np.finfo(float).tiny)
    triangle, order, rank, _ = dpstrf(
        gram, tol=LEAST_PIVOT[rows.dtype] * longest, lower=1, overwrite_a=1
    )
    order -= 1  # Fortran counts from 1
    apart, repeating = order[:rank], order[rank:]
    coordinates = np.zeros(mixing.shape, dtype=rows.dtype)
    if rank:
        triangle = np.tril(triangle[:rank, :rank])
        coordinates[apart, :rank] = triangle
        mixing[apart, :rank] = dtrtri(triangle, lower=1)[0].T
    if len(repeating):
        known, others = Basis(rows[apart], mixing[apart, :rank]), rows[repeating]
        beyond = _beyond(others, known)
        coordinates[repeating, :rank] = known.into(others)
        coordinates[repeating, rank:] = others @ beyond.T
        rows[repeating] = beyond
        mixing[repeating, np.arange(rank, len(rows))] = 1.0
    return coordinates


def _beyond(vectors: FloatArray, basis: Basis) -> FloatArray:
    """Orthonormal rows that span, with the basis, what the vectors span; zeros for the rest.

    What is left of a vector inside the span of the basis is rounding, and must not become a
    direction: where few features vary, there is none beyond the basis. A small rest has a part
    inside the span again, hence more than one round.
    """
    longest = np.linalg.norm(vectors, axis=1).max()
    for _ in range(3):
        vectors = vectors - basis.back(basis.into(vectors))
    directions, rest, _ = qr(vectors.T, mode="economic", pivoting=True)
    rounding = np.finfo(vectors.dtype).eps * len(vectors.T) * longest
    return np.where(np.abs(rest.diagonal())[:, None] > rounding, directions.T, 0.0)


def _inner_products(rows: FloatArray) -> FloatArray:
    """Inner products of all rows in double precision, without a copy of them in it."""
    if rows.dtype == np.float64:
        return np.asarray(rows @ rows.T)
    total = np.zeros((len(rows), len(rows)))
    for low in range(0, rows.shape[1], GRAM_FEATURES):
        some = rows[:, low : low + GRAM_FEATURES].astype(np.float64)
        total += some @ some.T
    return total
