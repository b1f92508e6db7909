"""Regression from sources of unknown quality."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import RegressorMixin

from sourcewise.core.feature_map import linear_scores
from sourcewise.estimators.base import SourceWeightedBase
from sourcewise.estimators.task import Numbers


class SourceWeightedRegressor(RegressorMixin, SourceWeightedBase):
    """Regressor for data from many sources, one of which is trusted.

    The same method as :class:`SourceWeightedClassifier`, whose documentation says what parameters
    and attributes mean. The loss that sources are judged by is the squared error in units of the
    reference's standard deviation, clipped at two of them; the default learner is ridge
    regression. Under ``protocol="paper"``, which the paper states for classes only, the trade-off
    is chosen by that loss and the plug-in discrepancy is the exact supremum over norm-bounded
    linear predictors.

    Parameters
    ----------
    estimator : scikit-learn regressor that takes sample_weight, optional
    reference : hashable, default "reference"
    discrepancy : {"combined", "local", "cross-fit", "plug-in"}
    trade_off : "cv", "theory" or float
    cv : int
    protocol : None or "paper"
    via : {"weights", "resample"}
    scaling : {"auto", "standard", "keep"}
    n_jobs : int, optional
    random_state : int, RandomState or None
    keep_data : bool
    strict : bool, default False
    verbose : bool

    Examples
    --------
    >>> import numpy as np
    >>> import sourcewise as sw
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(700, 5))
    >>> y = 3.0 * X[:, 0] + rng.normal(size=700)
    >>> lab = np.repeat(["ours", "north", "south"], [100, 300, 300])
    >>> y[400:] *= -1  # the southern laboratory has the sign wrong
    >>> model = sw.SourceWeightedRegressor(reference="ours", random_state=0)
    >>> model = model.fit(X, y, sources=lab)
    >>> model.source_weights_.round(1)
    array([0.3, 0.7, 0. ])
    """

    _kind = Numbers

    def predict(self, X: Any) -> np.ndarray:
        """Predicted value of each row."""
        X = self._check_new_features(X)
        if not self._wants_numbers:
            return np.asarray(self.estimator_.predict(X))
        return linear_scores(X, self.coef_, self.intercept_, self.feature_range_)
