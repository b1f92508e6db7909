"""Learners that an audit can be asked about, by name."""

from __future__ import annotations

from typing import Any

import scipy.sparse
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)

from sourcewise.tables.training import TrainingTable

LINEAR = "linear"
# Each for classes and for numbers, with the settings that scikit-learn gives them.
LEARNERS = {
    "boosting": (HistGradientBoostingClassifier, HistGradientBoostingRegressor),
    "forest": (RandomForestClassifier, RandomForestRegressor),
}
NAMES = (LINEAR, *LEARNERS)
NO_TEXT = "boosting takes no sparse rows, which words of free text become; take forest or linear."


def learner_of(name: str, training: TrainingTable) -> Any:
    """Return an unfitted learner for a table, or None for the default one."""
    if name == LINEAR:
        return None
    if name not in LEARNERS:
        raise ValueError(f"learner must be one of {', '.join(NAMES)}; got {name!r}.")
    if name == "boosting" and scipy.sparse.issparse(training.X):
        raise ValueError(NO_TEXT)
    return LEARNERS[name][not training.classification]()
