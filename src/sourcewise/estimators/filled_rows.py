"""Rows of numbers without gaps, for the default learner beside one that takes gaps as they are."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.utils import check_array

from sourcewise.validation import sound_rows

LARGEST = 1e150  # numbers beyond cannot be squared and summed


@dataclass(frozen=True)
class FilledRows:
    """Fills what is missing, infinite or too large by the reference's median of its column.

    Attributes
    ----------
    medians : array of shape (n_features,)
        Zeros for sparse rows.
    """

    medians: np.ndarray

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
