"""Geometric median of the sources' own models."""

from __future__ import annotations

from sourcewise.baselines.base import MedianOfModels, with_shared_entries
from sourcewise.baselines.shared_fits import SharedFits
from sourcewise.core.aggregation import geometric_median


@with_shared_entries
class GeometricMedian(MedianOfModels):
    r"""Geometric median of the sources' own coefficients.

    Assumes that more than half of the sources are good, wherever the others lie:

    .. math:: w = \arg\min_z \sum_i \lVert z - w_i \rVert,

    after Feng, Xu and Mannor (2014), "Distributed robust learning"; solved to convergence by
    Weiszfeld's iteration with the step of Vardi and Zhang (2000).
    %(local_models)s
    Several classes: one median of the coefficients of all classes.

    It fails where half of the sources or more are bad; it takes no account of their sizes, and no
    median gains what pooling many small sources would.

    Parameters
    ----------
    %(parameters_of_medians)s

    Attributes
    ----------
    %(sources_)s
    %(coef_)s

    Examples
    --------
    >>> from sourcewise.baselines import GeometricMedian
    %(flipped)s
    >>> model = GeometricMedian(reference="gold").fit(X, y, sources=vendor)
    >>> bool(model.score(X[:400], y[:400]) > 0.9)
    True
    """

    def _fit(self, work: SharedFits) -> None:
        models = work.local_models(self.C)
        median = geometric_median(models.reshape(len(models), -1))
        self._set_linear(work, median.reshape(models.shape[1:]))
