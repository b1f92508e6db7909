"""Component-wise median of the sources' own models."""

from __future__ import annotations

from sourcewise.baselines.base import MedianOfModels, with_shared_entries
from sourcewise.baselines.shared_fits import SharedFits
from sourcewise.core.aggregation import component_median


@with_shared_entries
class ComponentMedian(MedianOfModels):
    r"""Median of every coefficient over the sources' own models.

    Assumes that more than half of the sources are good:

    .. math:: w_f = \operatorname{median}_i\, w_{if},

    after Yin, Chen, Kannan and Bartlett (2018), "Byzantine-robust distributed learning".
    %(local_models)s
    Several classes: the median of every class's coefficients.

    It fails where half of the sources or more are bad, and depends on the coordinates: the result
    need not lie near any of the models when features are correlated.

    Parameters
    ----------
    %(fixed_C)s
    %(reference)s
    %(unused_cv)s
    %(protocol_of_features)s
    %(unused_random_state)s

    Attributes
    ----------
    %(classes_)s
    %(sources_)s
    %(coef_)s

    Examples
    --------
    >>> import numpy as np
    >>> from sourcewise.baselines import ComponentMedian
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(700, 5))
    >>> y = (X[:, 0] + X[:, 1] > 0).astype(int)
    >>> vendor = np.repeat(["gold", "careful", "careless"], [100, 300, 300])
    >>> y[400:] = 1 - y[400:]  # the careless vendor has them the wrong way round
    >>> model = ComponentMedian(reference="gold").fit(X, y, sources=vendor)
    >>> bool(model.score(X[:400], y[:400]) > 0.9)
    True
    """

    def _fit(self, work: SharedFits) -> None:
        self._set_linear(work, component_median(work.local_models(self.C)))
