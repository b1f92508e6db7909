"""Pool all rows as if every source could be trusted."""

from __future__ import annotations

import numpy as np

from sourcewise.baselines.base import Baseline, with_shared_entries
from sourcewise.baselines.shared_fits import SharedFits


@with_shared_entries
class AllData(Baseline):
    r"""Logistic regression on the rows of all sources.

    Assumes that every source has the reference's distribution:

    .. math:: \min_w \sum_i \sum_{j \in S_i} \ell(x_j^\top w, y_j)
              + \frac{1}{2C} \lVert w \rVert^2,

    the paper's :math:`\lambda \to \infty`, weights :math:`m_i / m` (Konstantinov and Lampert
    2019, section 4.1). C is chosen by cross-validation on the reference, all other rows staying in
    training. Several classes: multinomial.

    It fails where bad sources hold a large part of the rows.

    Parameters
    ----------
    %(parameters)s

    Attributes
    ----------
    %(sources_)s
    source_weights_ : array of shape (n_sources,)
        Shares of the rows.
    %(trained)s

    Examples
    --------
    >>> from sourcewise.baselines import AllData
    %(noise)s
    >>> model = AllData(reference="gold", random_state=0).fit(X, y, sources=vendor)
    >>> model.source_weights_.round(2)
    array([0.14, 0.43, 0.43])
    """

    def _weigh(self, work: SharedFits) -> np.ndarray:
        return work.by_size(np.ones(work.pool.data.n_sources))
