"""One fit of an estimator of one's own, without a weight in sight, and the default beside it."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.utils import _safe_indexing, check_random_state
from sklearn.utils.validation import check_is_fitted

from sourcewise import validation
from sourcewise.estimators.fitting import fit_told, fit_weighted, told_columns
from sourcewise.estimators.rows import FilledRows

ROWS = ("reference", "all", "told")


class _OneFit(BaseEstimator):
    """An estimator fitted once, to the reference or to all rows alike.

    ``rows`` are "reference", "all", or "told": all of them beside columns that say which source a
    row is from, predicting as for the reference.
    """

    __metadata_request__fit = {"sources": True}

    def __init__(
        self,
        estimator: Any,
        *,
        rows: str = "all",
        reference: Any = "reference",
        random_state: Any = None,
    ):
        self.estimator = estimator
        self.rows = rows
        self.reference = reference
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sources: Any) -> Any:
        """Train on the rows that were asked for."""
        if self.rows not in ROWS:
            raise ValueError(f"rows must be one of {ROWS}; got {self.rows!r}.")
        X, y = validation.indexable_rows(X), np.asarray(y)
        names, codes = validation.check_source_names(sources, validation.n_rows_of(X))
        position = validation.check_reference(names, self.reference)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        if self.rows == "told":
            told = told_columns(codes, len(names), position)
            self.estimator_ = fit_told(self.estimator, X, y, None, told, seed)
        else:
            used = np.flatnonzero((codes == position) | (self.rows == "all"))
            self.estimator_ = fit_weighted(
                self.estimator, _safe_indexing(X, used), y[used], None, seed
            )
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Predict every row, as one of the reference."""
        check_is_fitted(self)
        return np.asarray(self.estimator_.predict(X))


class OneFit(ClassifierMixin, _OneFit):
    """A classifier fitted once, to the reference or to all rows alike; see `_OneFit`.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> X = np.arange(8.0)[:, None]
    >>> vendor = np.repeat(["gold", "other"], 4)
    >>> model = OneFit(DecisionTreeClassifier(), rows="reference", reference="gold")
    >>> model.fit(X, [0, 0, 1, 1, 1, 1, 0, 0], sources=vendor).predict([[0.0], [7.0]])
    array([0, 1])
    """

    @property
    def classes_(self) -> np.ndarray:
        """Sorted labels."""
        return np.asarray(self.estimator_.classes_)


class OneFitRegressor(RegressorMixin, _OneFit):
    """A regressor fitted once, to the reference or to all rows alike; see `_OneFit`."""


def are_numbers(X: Any) -> bool:
    """Whether the default learner can read rows, once what is missing is filled."""
    return FilledRows.learn(X, np.array([0])) is not None


class LinearDefault(BaseEstimator):
    """The default learner on rows of numbers; those missing are the reference's medians."""

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
