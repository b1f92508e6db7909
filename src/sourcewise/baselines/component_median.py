"""Component-wise median of the sources' own models."""

from __future__ import annotations

from sourcewise.baselines.medians import MedianOfModels
from sourcewise.baselines.shared_fits import SharedFits
from sourcewise.core.aggregation import component_median


class ComponentMedian(MedianOfModels):
    r"""Median of every coefficient over the sources' own models.

    Assumes that more than half of the sources are good:

    .. math:: w_f = \operatorname{median}_i\, w_{if},

    after Yin, Chen, Kannan and Bartlett (2018), "Byzantine-robust distributed learning".
    The local models are logistic regressions on one source each, with one fixed C (the authors'
    choice); the reference's own is one of them, and a source that shows one class only has the
    constant model of log-odds 1 for that class, whatever the features. Several
    classes: the median of every class's coefficients.

    It fails where half of the sources or more are bad, and depends on the coordinates: the result
    need not lie near any of the models when features are correlated.

    Parameters
    ----------
    C : float
        Inverse regularisation of the local models; 100 in the authors' experiments.
    reference : hashable, default "reference"
        Name of the trusted source.
    cv : int
        Folds of the reference, at least 3; for the same contract as elsewhere, not used.
    protocol : None or "paper"
        None: features centred and scaled by the reference. "paper": features as given with a
        penalised constant.
    random_state : int, RandomState or None
        For the same contract as elsewhere, not used.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The reference's labels.
    sources_ : array of shape (n_sources,)
        Names, in order of first appearance.
    coef_, intercept_
        In the units of ``X``.

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
