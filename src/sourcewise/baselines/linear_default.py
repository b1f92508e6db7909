"""The default learner beside an estimator that takes rows as they are."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from sourcewise.estimators.filled_rows import FilledRows


def are_numbers(X: Any) -> bool:
    """Whether the default learner can read rows, once what is missing is filled."""
    return FilledRows.learn(X, np.array([0])) is not None


class LinearDefault(BaseEstimator):
    """The default learner on rows of numbers; those missing are the reference's medians.

    Parameters
    ----------
    model : SourceWeightedClassifier or SourceWeightedRegressor
        Without an estimator.

    Attributes
    ----------
    model_ : fitted model
    filled_ : FilledRows or None
    """

    def __init__(self, model: Any):
        self.model = model

    def fit(self, X: Any, y: Any, sources: Any) -> LinearDefault:
        """Fit the default learner to filled rows."""
        trusted = np.flatnonzero([name == self.model.reference for name in sources])
        self.filled_ = FilledRows.learn(X, trusted)
        self.model_ = clone(self.model).fit(self._rows(X), y, sources=sources)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Predict every row."""
        check_is_fitted(self)
        return np.asarray(self.model_.predict(self._rows(X)))

    def _rows(self, X: Any) -> Any:
        """Return filled rows; what is no number is refused in the default learner's words."""
        return X if self.filled_ is None else self.filled_(X)
