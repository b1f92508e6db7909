r"""Rows that are sparse, as the core sees them: centred, with a last column, and never made dense.

The default learner's features are centred by the reference, and a centred sparse matrix is dense.
But centring takes the same from every row, so it is a matrix of rank one,

.. math:: X = [\, S - \mathbf 1 c^\top, \; l \,] ,

with :math:`S` sparse, :math:`c` what is taken from every row and :math:`l` the last column, as a
rule a constant. Products with :math:`X` are products with :math:`S` less a correction of the size
of the result: zero stays zero, and the same table gives the same model whether it is sparse or not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse

from sourcewise.core.data import FloatArray, IntArray

ENTRIES = 1_000_000  # stored values worked on at a time


@dataclass(frozen=True, eq=False)
class SparseRows:
    """Rows ``[features - shift, last]``, for what an array of them would be used for."""

    # Lets `array @ rows.T` find its way here instead of into numpy.
    __array_ufunc__ = None

    features: Any  # (n_rows, n_features - 1); in canonical format
    shift: FloatArray  # (n_features - 1,); what is taken from every row
    last: FloatArray  # (n_rows,); the last column

    @classmethod
    def of(cls, features: Any, shift: FloatArray, last: FloatArray) -> SparseRows:
        """Take all parts in the precision of the stored values."""
        dtype = features.dtype
        return cls(
            scipy.sparse.csr_array(features),
            np.asarray(shift, dtype=dtype),
            np.asarray(last, dtype=dtype),
        )

    # -- what an array has -------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows, and of features with the last column."""
        n, d = self.features.shape
        return int(n), int(d) + 1

    @property
    def ndim(self) -> int:
        """Rows and columns."""
        return 2

    @property
    def dtype(self) -> np.dtype[Any]:
        """Precision of the features."""
        dtype: np.dtype[Any] = self.features.dtype
        return dtype

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.last)

    def __getitem__(self, rows: Any) -> SparseRows:
        """Return some rows, by slice, positions or mask; a slice of neighbours is not copied."""
        if isinstance(rows, slice) and rows.step in (None, 1):
            return SparseRows(_neighbours(self.features, rows), self.shift, self.last[rows])
        return SparseRows(self.features[rows], self.shift, self.last[rows])

    def astype(self, dtype: Any, copy: bool = True) -> SparseRows:
        """Return the same rows in another precision."""
        if self.dtype == dtype and not copy:
            return self
        return SparseRows(
            self.features.astype(dtype), self.shift.astype(dtype), self.last.astype(dtype)
        )

    @property
    def T(self) -> TransposedRows:
        """Transposed rows, for products; nothing is copied."""
        return TransposedRows(self)

    def __matmul__(self, other: Any) -> FloatArray:
        """Product with coefficients (n_features, ...), or with other rows transposed."""
        if isinstance(other, TransposedRows):
            return self.products(other.rows) + np.outer(self.last, other.rows.last)
        product = self.times(other[:-1])
        product += np.multiply.outer(self.last, other[-1])
        return product

    @cached_property
    def _shifted(self) -> IntArray:
        """Features that something is taken from: those that the reference has."""
        return np.flatnonzero(self.shift)

    # -- products without the last column ----------------------------------------------------

    def times(self, directions: FloatArray) -> FloatArray:
        """Product of the rows, last column left out, with (n_features - 1, ...)."""
        return np.asarray(self.features @ directions - self.shift @ directions)

    def transposed_times(self, weights: FloatArray) -> FloatArray:
        """Product of the transposed rows, last column left out, with (n_rows, ...)."""
        product: FloatArray = self.features.T @ weights
        shifted = self._shifted
        product[shifted] -= np.multiply.outer(self.shift[shifted], weights.sum(axis=0))
        return product

    def products(self, other: SparseRows) -> FloatArray:
        """Inner products of these rows with others of the same shift, last column left out."""
        found = (self.features @ other.features.T).toarray()
        found -= (self.features @ self.shift)[:, None]
        found -= other.features @ self.shift
        found += self.shift @ self.shift
        return np.asarray(found)

    @cached_property
    def squared_norms(self) -> FloatArray:
        """Squared norm of every row in double precision, last column left out."""
        shift = self.shift.astype(np.float64)
        squares = _row_sums(self.features, lambda values, columns: values**2)
        crossed = _row_sums(self.features, lambda values, columns: values * shift[columns])
        return np.asarray(np.maximum(squares - 2.0 * crossed + shift @ shift, 0.0))

    def weighted_gram(self, weights: FloatArray) -> FloatArray:
        """``X' diag(weights) X``, of the size of the features: where these are few."""
        d = self.shape[1] - 1
        weighted = self.features.multiply(weights[:, None]).tocsr()
        found = np.empty((d + 1, d + 1), dtype=np.result_type(self.dtype, weights))
        gram = (self.features.T @ weighted).toarray()
        sums = np.asarray(self.features.T @ weights)
        crossed = np.outer(sums - 0.5 * weights.sum() * self.shift, self.shift)
        found[:d, :d] = gram - crossed - crossed.T
        found[:d, d] = found[d, :d] = self.transposed_times(weights * self.last)
        found[d, d] = weights @ self.last**2
        return found

    @property
    def largest(self) -> float:
        """Largest absolute value, as if zeros were left in every column."""
        of_parts = (
            np.abs(self.features.data[part] - self.shift[self.features.indices[part]]).max()
            for part in parts_of(len(self.features.data))
        )
        return float(max(np.abs(self.shift).max(initial=0.0), np.abs(self.last).max(), *of_parts))


@dataclass(frozen=True, eq=False)
class TransposedRows:
    """The other factor of a product of rows."""

    __array_ufunc__ = None

    rows: SparseRows

    def __matmul__(self, weights: FloatArray) -> FloatArray:
        """Sum over the rows under weights (n_rows, ...): (n_features, ...)."""
        rows = self.rows
        found = np.empty((rows.shape[1], *weights.shape[1:]), np.result_type(rows.dtype, weights))
        found[:-1] = rows.transposed_times(weights)
        found[-1] = rows.last @ weights
        return found

    def __rmatmul__(self, models: FloatArray) -> FloatArray:
        """Scores of the rows by models (..., n_features): (..., n_rows)."""
        return np.asarray((self.rows @ models.T).T)


AnyRows = FloatArray | SparseRows


def stack_rows(parts: Sequence[Any]) -> Any:
    """Rows below rows: of arrays an array, of sparse rows of one shift sparse rows."""
    if not isinstance(parts[0], SparseRows):
        return np.concatenate(parts)
    return SparseRows(
        scipy.sparse.vstack([part.features for part in parts], format="csr"),
        parts[0].shift,
        np.concatenate([part.last for part in parts]),
    )


def squared_norms(X: Any) -> FloatArray:
    """Squared norm of every row in double precision, last column left out."""
    if isinstance(X, SparseRows):
        return X.squared_norms
    return np.asarray(np.sum(np.square(X[:, :-1]), axis=1, dtype=np.float64))


def whole_norms(X: Any) -> FloatArray:
    """Squared norm of every row in double precision, last column included."""
    if isinstance(X, SparseRows):
        return np.asarray(X.squared_norms + X.last.astype(np.float64) ** 2)
    return np.asarray(np.sum(np.square(X), axis=1, dtype=np.float64))


def as_rows(X: Any) -> Any:
    """Rows in double precision: an array, or of a sparse matrix sparse rows (last column zero)."""
    if isinstance(X, SparseRows):
        return X.astype(np.float64, copy=False)
    if not scipy.sparse.issparse(X):
        return np.asarray(X, dtype=np.float64)
    n, d = X.shape
    return SparseRows.of(canonical(X).astype(np.float64), np.zeros(d), np.zeros(n))


# -- stored values ---------------------------------------------------------------------------


def canonical(X: Any) -> Any:
    """Return a csr matrix without duplicates, indices in order; the one given is left as it is."""
    X = X.tocsr()
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


def parts_of(n_entries: int) -> Iterator[slice]:
    """Split stored values into parts that arrays of their size may be made for."""
    return (slice(low, low + ENTRIES) for low in range(0, n_entries, ENTRIES))


def map_entries(X: Any, change: Callable[[FloatArray, IntArray], FloatArray]) -> Any:
    """Return a csr matrix with ``change(values, columns)`` in the place of the stored values."""
    values = np.empty_like(X.data)
    for part in parts_of(len(values)):
        values[part] = change(X.data[part], X.indices[part])
    return _with_values(X, values)


def only_columns(X: Any, kept: IntArray) -> Any:
    """Return some columns of a csr matrix, in order; what is stored in others is left out."""
    if len(kept) == X.shape[1]:
        return X
    place = np.full(X.shape[1], -1, dtype=X.indices.dtype)
    place[kept] = np.arange(len(kept))
    indices, data, pointers = place[X.indices], X.data, X.indptr
    inside = indices >= 0
    if not inside.all():
        before = np.zeros(len(inside) + 1, dtype=pointers.dtype)  # entries that stay
        np.cumsum(inside, out=before[1:])
        indices, data, pointers = indices[inside], data[inside], before[pointers]
    return _canonical_array(data, indices, pointers, (X.shape[0], len(kept)))


def column_sums(
    X: Any, of_entries: Callable[[FloatArray, IntArray], FloatArray] | None = None
) -> FloatArray:
    """Sum ``of_entries(values, columns)`` (the values themselves) over the rows of each column."""
    total = np.zeros(X.shape[1])
    for part in parts_of(len(X.data)):
        values, columns = X.data[part], X.indices[part]
        if of_entries is not None:
            values = of_entries(values, columns)
        total += np.bincount(columns, values, minlength=X.shape[1])
    return total


def column_extremes(X: Any) -> tuple[FloatArray, FloatArray]:
    """Lowest and highest value of each column, the zeros that are not stored included."""
    low, high = np.full(X.shape[1], np.inf), np.full(X.shape[1], -np.inf)
    for part in parts_of(len(X.data)):
        np.minimum.at(low, X.indices[part], X.data[part])
        np.maximum.at(high, X.indices[part], X.data[part])
    empty = np.bincount(X.indices, minlength=X.shape[1]) < X.shape[0]
    return np.where(empty, np.minimum(low, 0.0), low), np.where(empty, np.maximum(high, 0.0), high)


def _row_sums(X: Any, of_entries: Callable[[FloatArray, IntArray], FloatArray]) -> FloatArray:
    values = np.empty(len(X.data))
    for part in parts_of(len(values)):
        values[part] = of_entries(X.data[part].astype(np.float64), X.indices[part])
    return np.asarray(_with_values(X, values).sum(axis=1)).ravel()


def _neighbours(X: Any, rows: slice) -> Any:
    """Rows that follow one another, sharing the stored values."""
    low, high, _ = rows.indices(X.shape[0])
    high = max(low, high)
    stored = slice(X.indptr[low], X.indptr[high])
    pointers = X.indptr[low : high + 1] - X.indptr[low]
    return _canonical_array(X.data[stored], X.indices[stored], pointers, (high - low, X.shape[1]))


def _with_values(X: Any, values: FloatArray) -> Any:
    return _canonical_array(values, X.indices, X.indptr, X.shape)


def _canonical_array(values: Any, indices: Any, pointers: Any, shape: tuple[int, int]) -> Any:
    array = scipy.sparse.csr_array(shape, dtype=values.dtype)
    # Given to the constructor, a part of a larger array would be copied.
    array.data, array.indices, array.indptr = values, indices, pointers
    array.has_canonical_format = True  # spares scipy a look at every index
    return array
