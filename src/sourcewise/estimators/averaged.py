"""Models of several kinds as one: their log-odds, or predictions, averaged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin

from sourcewise.core.mixture import TOLD, UNTOLD
from sourcewise.estimators.fitting import ToldSources, class_probabilities
from sourcewise.estimators.rows import FilledRows
from sourcewise.validation import n_rows_of


@dataclass(eq=False)
class Member:
    """A model that takes part in an average."""

    name: str  # how it was trained
    share: float  # what it counts; shares sum to 1
    model: Any
    filled: FilledRows | None = None  # what its rows go through first
    wrong: float = 0.0  # held-out trusted rows that a classifier without probabilities gets wrong

    @property
    def trained_on(self) -> str:
        """The name, but of an estimator that could not be told the sources."""
        untold = self.name == TOLD and not isinstance(self.model, ToldSources)
        return UNTOLD if untold else self.name

    def predict(self, X: Any) -> np.ndarray:
        """Predict targets."""
        return np.asarray(self.model.predict(self._rows(X)), dtype=np.float64)

    def probabilities(self, X: Any, classes: np.ndarray) -> np.ndarray:
        """Probability of each class; a class that is only named has that of being right."""
        found = class_probabilities(self.model, self._rows(X), n_rows_of(X), classes)
        return with_doubt(found, self.wrong)

    def _rows(self, X: Any) -> Any:
        return X if self.filled is None else self.filled(X)


def with_doubt(named: np.ndarray, wrong: float) -> np.ndarray:
    """Probabilities of classes that are named and wrong at a rate; of rate 0, as they are."""
    others = wrong / (named.shape[-1] - 1)
    return np.asarray(named * (1.0 - wrong - others) + others)


def log_odds(probabilities: np.ndarray, least: float) -> np.ndarray:
    """Scores that probabilities come from, as our linear models have them, (..., n_outputs).

    Of two classes the second one's log-odds, of more their logarithms. No probability counts as
    less than ``least`` nor as more than ``1 - least``.
    """
    logs = np.log(np.clip(probabilities, least, 1.0 - least))
    return np.asarray(logs[..., 1:] - logs[..., :1] if logs.shape[-1] == 2 else logs)


class AveragedClassifier(ClassifierMixin, BaseEstimator):
    """Fitted classifiers as one: it averages their log-odds.

    Probabilities count as at least ``least``, and at most 1 less this.
    """

    def __init__(self, members: list[Member], classes: np.ndarray, least: float):
        self.members = members
        self.classes = classes
        self.least = least

    @property
    def classes_(self) -> np.ndarray:
        """Sorted labels."""
        return self.classes

    def decision_function(self, X: Any) -> np.ndarray:
        """Averaged log-odds, (n_rows,) of the second of two classes, else (n_rows, n_classes)."""
        scores = self._scores(X)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def _scores(self, X: Any) -> np.ndarray:
        return np.asarray(
            sum(
                member.share * log_odds(member.probabilities(X, self.classes), self.least)
                for member in self.members
            )
        )

    def predict(self, X: Any) -> np.ndarray:
        """Most probable class of each row."""
        return np.asarray(self.classes[self.predict_proba(X).argmax(axis=1)])

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probability of each class."""
        scores = self._scores(X)
        if scores.shape[1] == 1:
            scores = np.hstack([np.zeros_like(scores), scores])
        return np.asarray(softmax(scores, axis=1))


class AveragedRegressor(RegressorMixin, BaseEstimator):
    """Fitted regressors as one: it averages their predictions."""

    def __init__(self, members: list[Member]):
        self.members = members

    def predict(self, X: Any) -> np.ndarray:
        """Averaged predictions."""
        return np.asarray(sum(member.share * member.predict(X) for member in self.members))
