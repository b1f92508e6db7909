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
    %(parameters_of_medians)s

    Attributes
    ----------
    %(sources_)s
    %(coef_)s

    Examples
    --------
    >>> from sourcewise.baselines import ComponentMedian
    %(flipped)s
    >>> model = ComponentMedian(reference="gold").fit(X, y, sources=vendor)
    >>> bool(model.score(X[:400], y[:400]) > 0.9)
    True
    """

    def _fit(self, work: SharedFits) -> None:
        self._set_linear(work, component_median(work.local_models(self.C)))
