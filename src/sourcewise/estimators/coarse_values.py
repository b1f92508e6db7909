"""Boosting on histograms with row weights, without the wait for weighted quantiles.

scikit-learn 1.9 cuts columns of more than ``max_bins`` values at weighted quantiles, one search
for each bin and column, which takes about twenty times as long as all else in a fit to a thousand
rows. Columns of fewer values are cut between them at once. So columns are made as coarse as
boosting would make them anyway, at quantiles of the rows, before it sees them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor


def is_boosting(estimator: Any) -> bool:
    """Whether this is scikit-learn's boosting on histograms."""
    return isinstance(estimator, HistGradientBoostingClassifier | HistGradientBoostingRegressor)


def with_coarse_values(X: Any, max_bins: int) -> Any:
    """Give every column of numbers at most so many values: the means of its bins.

    Columns that are no numbers are left as they are, and so is what is missing.
    """
    if isinstance(X, np.ndarray) and X.dtype.kind == "f":
        return np.column_stack([coarse(column, max_bins) for column in X.T])
    if hasattr(X, "iloc") and hasattr(X, "assign"):
        numbers = X.select_dtypes(include="floating")
        return X.assign(**{n: coarse(numbers[n].to_numpy(), max_bins) for n in numbers})
    return X


def coarse(values: np.ndarray, max_bins: int) -> np.ndarray:
    """Replace the values of a column by the means of at most ``max_bins`` bins."""
    known = np.isfinite(values)
    if len(np.unique(values[known])) <= max_bins:
        return values
    shares = np.linspace(0.0, 100.0, max_bins + 1)[1:-1]
    cuts = np.unique(np.percentile(values[known], shares, method="averaged_inverted_cdf"))
    rows = np.searchsorted(cuts, values[known])
    means = np.bincount(rows, values[known], minlength=len(cuts) + 1)
    counts = np.bincount(rows, minlength=len(cuts) + 1)
    found = values.copy()
    found[known] = (means / np.maximum(counts, 1))[rows]
    return found
