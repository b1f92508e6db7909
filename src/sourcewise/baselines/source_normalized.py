"""Standardise every source by itself, then pool."""

from __future__ import annotations

import numpy as np

from sourcewise.baselines.base import Baseline, with_shared_entries
from sourcewise.baselines.shared_fits import SharedFits
from sourcewise.core.data import SourceData


@with_shared_entries
class SourceNormalized(Baseline):
    r"""Logistic regression on all rows after standardising each source by itself.

    Assumes that sources differ by a shift and a scale of each feature, and that labels are right:

    .. math:: z_{jf} = (x_{jf} - \mu_{if}) / \sigma_{if}, \quad j \in S_i,

    the reference by its own :math:`\mu_T, \sigma_T`, and so are rows to predict ("batch norm" in
    Konstantinov and Lampert 2019, section 4.1, after Ioffe and Szegedy 2015). A feature that is
    constant in a source becomes 0 there instead of infinite. Then as :class:`AllData`; a constant
    is always added, as standardising removes any. The reference's mean and deviation are taken
    over all its rows, in cross-validation too. Several classes: multinomial.

    It fails where labels are bad, or where sources differ in their share of classes: standardising
    then moves the classes against each other.

    Parameters
    ----------
    %(parameters)s

    Attributes
    ----------
    %(sources_)s
    %(trained)s

    Examples
    --------
    >>> import numpy as np
    >>> from sourcewise.baselines import SourceNormalized
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 5))
    >>> y = (X[:, 0] > 0).astype(int)
    >>> X[100:] = 10.0 + 3.0 * X[100:]  # the other vendor measures in other units
    >>> vendor = np.repeat(["gold", "other"], [100, 400])
    >>> model = SourceNormalized(reference="gold", random_state=0).fit(X, y, sources=vendor)
    >>> bool(model.score(X[:100], y[:100]) > 0.9)
    True
    """

    _most_sparse_rows = 0  # each source is centred by its own means

    def _fit(self, work: SharedFits) -> None:
        pool = work.pool
        assert pool.features is not None
        d = len(pool.features.scale)
        # The pool's features are an affine map of the input, which standardising undoes.
        Z, centre, scale = standardise_sources(pool.data, d)
        normalized = SharedFits(pool.with_features(Z))
        trained = normalized.train(normalized.by_size(np.ones(pool.data.n_sources)))
        self.C_ = trained.C
        coef = trained.model[:, :d] / scale
        self.coef_ = coef / pool.features.scale
        self.intercept_ = trained.model[:, d] - coef @ centre - self.coef_ @ pool.features.centre


def standardise_sources(
    data: SourceData, n_features: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Standardise the first features of each source and append a constant.

    Returns the new features, and the reference's means and deviations.
    """
    Z = np.empty((len(data.X), n_features + 1), dtype=data.X.dtype)
    Z[:, n_features] = 1.0
    for i, rows in enumerate(data.slices()):
        X, shares = data.X[rows, :n_features], data.row_shares[rows]
        mean = shares @ X
        centred = X - mean
        deviation = np.sqrt(shares @ centred**2)
        varies = deviation > 1e-10 * (np.abs(mean) + deviation.max())
        scale = np.where(varies, deviation, 1.0)
        Z[rows, :n_features] = np.where(varies, centred / scale, 0.0)
        if i == data.reference:
            of_reference = mean, scale
    return Z, *of_reference
