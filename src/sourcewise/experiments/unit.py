"""The unit U that costs are told in: one fit of scikit-learn on the same rows."""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegressionCV

from sourcewise.estimators.splitter import ReferenceKFold


def unit_seconds(X: Any, y: np.ndarray, sources: np.ndarray, weights: Any = None) -> float:
    """Processor seconds of U: one `LogisticRegressionCV` without an intercept of its own.

    Ten values of C, five folds that hold out rows of the reference only (source 0), default solver
    and tolerance.
    """
    folds = list(ReferenceKFold(5, reference=0).split(np.empty((len(y), 0)), y, sources=sources))
    model = LogisticRegressionCV(Cs=np.logspace(-4, 4, 10), cv=folds, fit_intercept=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", FutureWarning)
        start = time.process_time()
        model.fit(X, y, sample_weight=weights)
        return time.process_time() - start
