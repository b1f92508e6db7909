"""Median of the probabilities that the sources' own models give."""

from __future__ import annotations

import numpy as np

from sourcewise.baselines.base import MedianOfModels, with_shared_entries
from sourcewise.baselines.shared_fits import SharedFits
from sourcewise.core.aggregation import median_probabilities
from sourcewise.core.logistic import probabilities

BLOCK = 4_000_000  # scores held at a time


@with_shared_entries
class ProbabilityMedian(MedianOfModels):
    r"""Median of the class probabilities over the sources' own models.

    Assumes that, row by row, more than half of the sources' models are about right:

    .. math:: p(k \mid x) \propto \operatorname{median}_i\, p_i(k \mid x),

    "Median of probs" in Konstantinov and Lampert (2019), section 4.1.
    %(local_models)s
    Several classes: the medians are scaled to sum to 1 (for two they do by themselves).

    It fails where half of the sources or more are bad; the model is as large as all local models
    together, and prediction takes that much longer.

    Parameters
    ----------
    %(parameters_of_medians)s

    Attributes
    ----------
    %(sources_)s
    local_coef_ : array of shape (n_sources, n_outputs, n_features)
    local_intercept_ : array of shape (n_sources, n_outputs)
        The local models, in the units of ``X``.

    Examples
    --------
    >>> from sourcewise.baselines import ProbabilityMedian
    %(flipped)s
    >>> model = ProbabilityMedian(reference="gold").fit(X, y, sources=vendor)
    >>> bool(model.score(X[:400], y[:400]) > 0.9)
    True
    """

    def _fit(self, work: SharedFits) -> None:
        features = work.pool.features
        assert features is not None
        units = [features.unmap(model) for model in work.local_models(self.C)]
        self.local_coef_ = np.stack([coef for coef, _ in units])
        self.local_intercept_ = np.stack([intercept for _, intercept in units])

    def _probabilities(self, X: np.ndarray) -> np.ndarray:
        result = np.empty((X.shape[0], len(self.classes_)))
        n_models, outputs, d = self.local_coef_.shape
        flat = self.local_coef_.reshape(-1, d).T
        step = max(1, BLOCK // (n_models * outputs))
        for low in range(0, X.shape[0], step):
            rows = slice(low, low + step)
            scores = (X[rows] @ flat).reshape(-1, n_models, outputs) + self.local_intercept_
            result[rows] = median_probabilities(probabilities(scores.transpose(1, 0, 2)))
        return result
