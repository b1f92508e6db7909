"""Train on the trusted rows and nothing else."""

from __future__ import annotations

import numpy as np

from sourcewise.baselines.base import Baseline, with_shared_entries
from sourcewise.baselines.shared_fits import SharedFits


@with_shared_entries
class ReferenceOnly(Baseline):
    r"""Logistic regression on the reference alone.

    Assumes nothing of the other sources, whose rows are not used:

    .. math:: \min_w \sum_{j \in T} \ell(x_j^\top w, y_j) + \frac{1}{2C} \lVert w \rVert^2,

    the paper's :math:`\lambda = 0` (Konstantinov and Lampert 2019, section 4.1). C is chosen by
    cross-validation on the reference. Several classes: multinomial.

    It fails where the reference is small: good sources could have helped and are ignored.

    Parameters
    ----------
    %(parameters)s

    Attributes
    ----------
    %(sources_)s
    source_weights_ : array of shape (n_sources,)
        1 for the reference.
    %(trained)s

    Examples
    --------
    >>> from sourcewise.baselines import ReferenceOnly
    %(noise)s
    >>> model = ReferenceOnly(reference="gold", random_state=0).fit(X, y, sources=vendor)
    >>> model.source_weights_
    array([1., 0., 0.])
    """

    def _weigh(self, work: SharedFits) -> np.ndarray:
        return work.by_size(work.only_reference)
