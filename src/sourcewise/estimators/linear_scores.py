"""Scores of new rows, dense or sparse, by a linear model in the units of ``X``."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse

from sourcewise.core.sparse_rows import SparseRows, map_entries


def linear_scores(
    X: Any, coef: np.ndarray, intercept: np.ndarray | float, feature_range: np.ndarray
) -> np.ndarray:
    """Scores of rows, cut off where the model was trained on none beyond.

    Parameters
    ----------
    X : array or csr matrix of shape (n_rows, n_features)
    coef : array of shape (n_outputs, n_features) or (n_features,)
    intercept : array of shape (n_outputs,), or float
    feature_range : array of shape (2, n_features)
        Lowest and highest value of each feature.
    """
    X, at_zero = cut_off(X, feature_range)
    return np.asarray(X @ coef.T + (intercept + at_zero @ coef.T))


def cut_off(X: Any, feature_range: np.ndarray) -> tuple[Any, np.ndarray]:
    """Rows cut off at a range, as a matrix and what is to be added to each of its rows.

    Zeros of sparse rows that lie outside the range are moved too, by what is added.
    """
    low, high = feature_range
    if not scipy.sparse.issparse(X):
        return np.clip(X, low, high), np.zeros(X.shape[1])
    at_zero = np.clip(np.zeros(X.shape[1]), low, high)
    if at_zero.any():  # as far from zero as that, single precision might lose the values
        X = X.astype(np.float64)

    def change(values: np.ndarray, columns: np.ndarray) -> np.ndarray:
        cut = np.clip(values, low[columns], high[columns])
        return np.asarray(cut - at_zero[columns], dtype=values.dtype)

    return map_entries(X, change), at_zero


def rows_with_constant(X: Any, feature_range: np.ndarray) -> Any:
    """Rows as a model sees them, cut off at a range and with a constant behind."""
    X, at_zero = cut_off(X, feature_range)
    ones = np.ones(X.shape[0])
    if scipy.sparse.issparse(X):
        return SparseRows.of(X, -at_zero, ones)
    return np.column_stack([X, ones])
