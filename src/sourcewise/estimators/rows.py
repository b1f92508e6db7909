"""Rows that have passed every check, and rows of numbers without gaps."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.utils import _safe_indexing, check_array

from sourcewise.core.sparse_rows import canonical
from sourcewise.validation import sound_rows


@dataclass(frozen=True)
class Rows:
    """Labelled rows and where they come from."""

    X: Any  # array, frame or list of n rows
    y: np.ndarray
    codes: np.ndarray  # position of each row's source among the names
    sample_weight: np.ndarray | None

    def of_positive_weight(self) -> Rows:
        """Leave out rows of weight zero: they are to count as if they were not there."""
        if self.sample_weight is None or self.sample_weight.all():
            return self
        return self.take(np.flatnonzero(self.sample_weight))

    def take(self, kept: np.ndarray) -> Rows:
        """Return some of the rows."""
        weight = None if self.sample_weight is None else self.sample_weight[kept]
        return Rows(_safe_indexing(self.X, kept), self.y[kept], self.codes[kept], weight)

    def append(self, other: Rows) -> Rows:
        """Put other rows below these."""
        weight = None
        if self.sample_weight is not None or other.sample_weight is not None:
            weight = np.concatenate([self._weight_or_ones(), other._weight_or_ones()])
        return Rows(
            concat_rows(self.X, other.X),
            np.concatenate([self.y, other.y]),
            np.concatenate([self.codes, other.codes]),
            weight,
        )

    def _weight_or_ones(self) -> np.ndarray:
        return np.ones(len(self.y)) if self.sample_weight is None else self.sample_weight

    def __getstate__(self) -> dict[str, Any]:
        """Sparse rows go into a file as the arrays that they are made of."""
        state = dict(vars(self))
        if scipy.sparse.issparse(self.X):
            state["X"] = sparse_parts(self.X)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Put sparse rows together again; a file may have been tampered with."""
        if isinstance(state["X"], dict):
            state = {**state, "X": sparse_from_parts(state["X"], len(state["y"]))}
        vars(self).update(state)


def sparse_parts(X: Any) -> dict[str, Any]:
    """Return the arrays of a csr matrix, and its number of columns."""
    X = canonical(X)
    parts = {"data": X.data, "indices": X.indices, "indptr": X.indptr}
    return {**parts, "n_columns": int(X.shape[1])}


def sparse_from_parts(parts: dict[str, Any], n_rows: int) -> Any:
    """Make a csr matrix of its arrays, if they are those of one."""
    data, indices, pointers = (parts[name] for name in ("data", "indices", "indptr"))
    n_columns = parts["n_columns"]
    sound = (
        all(isinstance(part, np.ndarray) and part.ndim == 1 for part in (data, indices, pointers))
        and data.dtype.kind in "fiub"
        and indices.dtype.kind == pointers.dtype.kind == "i"
        and type(n_columns) is int
        and len(pointers) == n_rows + 1
        and len(data) == len(indices)
        and pointers[0] == 0
        and pointers[-1] == len(data)
        and bool((np.diff(pointers) >= 0).all())
        and (len(indices) == 0 or (indices.min() >= 0 and indices.max() < n_columns))
    )
    if not sound:
        raise ValueError("The arrays are not those of a sparse matrix.")
    return canonical(scipy.sparse.csr_array((data, indices, pointers), shape=(n_rows, n_columns)))


def concat_rows(above: Any, below: Any) -> Any:
    """Stack two containers of rows of the same kind."""
    module = type(above).__module__.partition(".")[0]
    if module == "pandas":
        import pandas

        return pandas.concat([above, below], ignore_index=True)
    if module == "polars":
        import polars

        return polars.concat([above, below])
    if scipy.sparse.issparse(above):
        return scipy.sparse.vstack([above, below], format="csr")
    if isinstance(above, list):
        return [*above, *below]
    return np.concatenate([above, below])


LARGEST = 1e150  # numbers beyond cannot be squared and summed


@dataclass(frozen=True)
class FilledRows:
    """Fills what is missing, infinite or too large by the reference's median of its column."""

    medians: np.ndarray  # of shape (n_features,); zeros for sparse rows

    @classmethod
    def learn(cls, X: Any, trusted: np.ndarray) -> FilledRows | None:
        """Learn from the trusted rows of ``X``; None where rows cannot be read as numbers."""
        try:
            matrix = _numbers(X)
        except (TypeError, ValueError):
            return None
        if scipy.sparse.issparse(matrix):
            return cls(np.zeros(matrix.shape[1]))
        rows = np.where(_sound(matrix[trusted]), matrix[trusted], np.nan)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # of columns without any value
            return cls(np.nan_to_num(np.nanmedian(rows, axis=0)))

    def __call__(self, X: Any) -> Any:
        """Return rows as an array or a csr matrix of finite numbers."""
        matrix = _numbers(X)
        if scipy.sparse.issparse(matrix):
            values = np.where(_sound(matrix.data), matrix.data, self.medians[matrix.indices])
            filled = type(matrix)((values, matrix.indices, matrix.indptr), shape=matrix.shape)
            return sound_rows(filled)
        sound = _sound(matrix)
        return matrix if sound.all() else np.where(sound, matrix, self.medians).astype(matrix.dtype)


def _numbers(X: Any) -> Any:
    floats = (np.float64, np.float32)
    return sound_rows(check_array(X, accept_sparse="csr", dtype=floats, ensure_all_finite=False))


def _sound(values: np.ndarray) -> np.ndarray:
    """Which numbers can be computed with."""
    with np.errstate(invalid="ignore"):
        return np.asarray(np.abs(values) <= np.float64(LARGEST))  # too large for single precision
