"""How the default learners' features come from the input, and their coefficients go back.

A linear model in the units of ``X`` scores new rows as it was trained: cut off at the same range.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse

from sourcewise.core.choices import DEFAULT, Choices
from sourcewise.core.sparse_rows import (
    SparseRows,
    column_extremes,
    column_sums,
    map_entries,
    only_columns,
)

# Deviations that rounding may leave of a constant, as shares of its size and of other columns'.
ROUNDING = 1e-12
COLUMNS = 1000  # of sparse rows that are made dense at a time


@dataclass(frozen=True)
class FeatureMap:
    """Affine map of the features, and back for coefficients."""

    centre: np.ndarray  # of shape (n_features,), as the scale
    scale: np.ndarray
    constant: bool  # whether a column of ones is appended
    # Where mapped values are cut off, all or each: at 0 those of which the reference can tell
    # nothing, because they are constant there.
    limit: float | np.ndarray = np.inf
    # Features that mapped rows have. Those that are zero in all rows get the coefficient zero, and
    # of sparse rows they may be most.
    kept: np.ndarray | None = None
    standard: bool = False  # whether all features have the same standard deviation on the reference

    @classmethod
    def as_given(cls, X: Any) -> FeatureMap:
        """Leave the features alone; add a constant unless all rows ``X`` share one."""
        d = X.shape[1]
        low, high = _extremes(X)
        has_constant = bool(((low == high) & (low != 0.0)).any())
        return cls(np.zeros(d), np.ones(d), not has_constant)

    @classmethod
    def from_reference(
        cls, X: Any, choices: Choices = DEFAULT, scaling: str = "auto"
    ) -> FeatureMap:
        """Learn the map from the reference's rows ``X``: untrusted rows have no say in it.

        Proportions between the features' standard deviations are kept, because features that
        hardly vary among a few trusted rows are mostly noise; none is left with less than
        ``choices.smallest_share`` of the largest one's. But columns in different units have no
        natural proportion: those become alike. ``scaling="standard"`` makes all columns alike,
        ``"keep"`` none.
        """
        found = Columns.of(X)
        centre, deviation = found.mean, found.deviation
        varies = deviation > ROUNDING * np.maximum(np.abs(found.low), np.abs(found.high))
        if varies.any():
            # Not of the largest: beside a time in milliseconds, all others would be nothing.
            varies &= deviation > ROUNDING * typical(deviation[varies])
        largest = float(deviation[varies].max(initial=0.0)) or 1.0
        mapped = np.maximum(deviation / largest, choices.smallest_share)
        standard = scaling == "standard"
        if scaling == "auto" and varies.any():
            one_sign = (found.low >= 0.0) | (found.high <= 0.0)
            standard = in_different_units(deviation[varies], one_sign[varies], choices.own_units)
        if standard:
            mapped = np.ones_like(deviation)
        # So that values of C mean about the same whatever the number of small ones.
        mapped /= np.sqrt(np.mean(mapped**2))
        scale = np.where(varies, deviation, largest) / mapped
        limit = np.where(varies, choices.largest, 0.0) if choices.only_varying else choices.largest
        if choices.clip_quantile:
            low, high = _quantiles(X, choices.clip_quantile)
            centre = (low + high) / 2.0
            limit = np.minimum(limit, (high - low) / 2.0 / scale)
        return cls(centre, scale, True, limit, standard=standard)

    def for_rows(self, X: Any) -> FeatureMap:
        """Leave out the features that are zero in all of these rows, if they are sparse."""
        if not scipy.sparse.issparse(X):
            return self
        stored = np.bincount(X.indices, minlength=X.shape[1]) > 0
        stored &= np.broadcast_to(self.limit, stored.shape) > 0.0
        stored[-1:] |= not self.constant  # see below
        return replace(self, kept=None if stored.all() else np.flatnonzero(stored))

    def __call__(self, X: Any) -> Any:
        """Map rows of features: an array, or `SparseRows` of a csr matrix."""
        if scipy.sparse.issparse(X):
            return self._map_sparse(X)
        d = X.shape[1]
        mapped = np.empty((len(X), d + self.constant), dtype=X.dtype)
        np.subtract(X, self.centre, out=mapped[:, :d], casting="same_kind")
        with np.errstate(over="ignore"):  # it is cut off below
            mapped[:, :d] /= self.scale
        np.clip(mapped[:, :d], -self.limit, self.limit, out=mapped[:, :d])
        mapped[:, d:] = 1.0
        return mapped

    def _map_sparse(self, X: Any) -> SparseRows:
        """Map the stored values; what zero becomes is taken from every row."""
        kept = np.arange(X.shape[1]) if self.kept is None else self.kept
        last = np.ones(X.shape[0])
        if not self.constant:  # what is last may be a constant, and stands for one
            X, last, kept = X[:, :-1], X[:, [-1]].toarray().ravel(), kept[:-1]
        centre, scale = self.centre[kept], self.scale[kept]
        limit = np.broadcast_to(self.limit, self.scale.shape)[kept]
        zero = np.clip(centre / scale, -limit, limit)

        def change(values: np.ndarray, columns: np.ndarray) -> np.ndarray:
            with np.errstate(over="ignore"):  # it is cut off at once
                off = (values - centre[columns]) / scale[columns]
            reach = limit[columns]
            return np.asarray(np.clip(off, -reach, reach) + zero[columns])

        return SparseRows.of(map_entries(only_columns(X, kept), change), zero, last)

    @property
    def bounds(self) -> np.ndarray:
        """Lowest and highest value of each feature that is not cut off, (2, n_features)."""
        reach = self.limit * self.scale
        return np.stack([self.centre - reach, self.centre + reach])

    def unmap(self, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Coefficients and intercepts in the original units, from (n_outputs, n_mapped)."""
        kept = slice(None) if self.kept is None else self.kept
        coef = np.zeros((len(weights), len(self.scale)))
        coef[:, kept] = weights[:, : weights.shape[1] - self.constant] / self.scale[kept]
        intercept = weights[:, -1] if self.constant else np.zeros(len(weights))
        return coef, intercept - coef @ self.centre


@dataclass(frozen=True)
class Columns:
    """What is known of each column of some rows; arrays of shape (n_features,)."""

    mean: np.ndarray
    deviation: np.ndarray
    low: np.ndarray
    high: np.ndarray

    @classmethod
    def of(cls, X: Any) -> Columns:
        """Look at rows of an array, or of a csr matrix."""
        if not scipy.sparse.issparse(X):
            mean, deviation = X.mean(axis=0, dtype=np.float64), X.std(axis=0, dtype=np.float64)
            return cls(mean, deviation, *_extremes(X))
        n = X.shape[0]
        mean = column_sums(X) / n
        stored = np.bincount(X.indices, minlength=X.shape[1])
        squares = column_sums(X, lambda values, columns: (values - mean[columns]) ** 2)
        return cls(mean, np.sqrt((squares + (n - stored) * mean**2) / n), *_extremes(X))


def _quantiles(X: Any, share: float) -> np.ndarray:
    """Return the lower and the upper quantile of each column, some columns at a time.

    Both are values of rows, and at least that share of the rows lies at them or beyond.
    """
    if not scipy.sparse.issparse(X):
        X = X.astype(np.float64)
        low = np.quantile(X, share, axis=0, method="higher")
        return np.stack([low, np.quantile(X, 1.0 - share, axis=0, method="lower")])
    columns = scipy.sparse.csc_array(X)
    found = np.empty((2, X.shape[1]))
    for start in range(0, X.shape[1], COLUMNS):
        some = slice(start, start + COLUMNS)
        found[:, some] = _quantiles(columns[:, some].toarray(), share)
    return found


def _extremes(X: Any) -> tuple[np.ndarray, np.ndarray]:
    """Lowest and highest value of each column."""
    return column_extremes(X) if scipy.sparse.issparse(X) else (X.min(axis=0), X.max(axis=0))


def in_different_units(deviations: np.ndarray, one_sign: np.ndarray, many: float) -> bool:
    """Whether columns look like quantities in units of their own, not like parts of one whole.

    Of principal components, too, a few may be much larger than the rest, but with good reason: so
    only columns of one sign count.
    """
    return bool(np.any(deviations[one_sign] > many * typical(deviations)))


def typical(deviations: np.ndarray) -> float:
    """Return the median, the smaller of two in the middle: of two columns, one may be far off."""
    return float(np.quantile(deviations, 0.5, method="lower"))


def linear_scores(
    X: Any, coef: np.ndarray, intercept: np.ndarray | float, feature_range: np.ndarray
) -> np.ndarray:
    """Scores of rows, cut off where the model was trained on none beyond.

    From ``coef`` of shape (n_outputs, n_features) or (n_features,), and the lowest and highest
    value of each feature.
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
