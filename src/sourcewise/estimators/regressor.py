"""Regression from sources of unknown quality."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import RegressorMixin

from sourcewise.core.choices import Choices
from sourcewise.core.family import Family
from sourcewise.core.losses import spread
from sourcewise.core.ridge import RidgeFamily
from sourcewise.estimators.averaged import AveragedRegressor, Member
from sourcewise.estimators.base import SourceWeightedBase
from sourcewise.estimators.feature_map import linear_scores
from sourcewise.estimators.rows import Rows
from sourcewise.estimators.wrapped import EstimatorFamily


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

    _is_classifier = False

    def _learn_targets(self, y: np.ndarray, trusted: np.ndarray) -> None:
        targets = np.asarray(y[trusted], dtype=np.float64)
        self._target_centre = float(targets.mean())
        self._target_scale = spread(targets, self._choices().far_off)

    def _encode(
        self, y: np.ndarray, codes: np.ndarray, names: list[Any], reference: int
    ) -> np.ndarray:
        return (np.asarray(y, dtype=np.float64) - self._target_centre) / self._target_scale

    def _default_family(self, how: Choices, n_classes: int) -> Family:
        return RidgeFamily(how.regularisations, how.ridge_intercept_penalty)

    def _wrapped_family(self, rows: Rows) -> EstimatorFamily:
        return EstimatorFamily(
            self.estimator,
            rows.X,
            rows.y,
            self.n_jobs,
            self._seed,
            via=self.via,
            centre=self._target_centre,
            scale=self._target_scale,
        )

    def _average_of(self, members: list[Member]) -> AveragedRegressor:
        return AveragedRegressor(members)

    def _set_coefficients(self, coef: np.ndarray, intercept: np.ndarray) -> None:
        self.coef_ = coef[0] * self._target_scale
        self.intercept_ = float(intercept[0] * self._target_scale + self._target_centre)

    def _model_norm(self) -> float:
        intercept = self.intercept_ - self._target_centre
        return float(np.linalg.norm(np.append(self.coef_, intercept)) / self._target_scale)

    def predict(self, X: Any) -> np.ndarray:
        """Predicted value of each row."""
        X = self._check_new_features(X)
        if not self._wants_numbers:
            return np.asarray(self.estimator_.predict(X))
        return linear_scores(X, self.coef_, self.intercept_, self.feature_range_)
