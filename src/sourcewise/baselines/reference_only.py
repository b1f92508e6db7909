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
    %(reference)s
    %(cv)s
    %(protocol)s
    %(random_state)s

    Attributes
    ----------
    %(classes_)s
    %(sources_)s
    source_weights_ : array of shape (n_sources,)
        1 for the reference.
    %(coef_)s
    %(C_)s

    Examples
    --------
    >>> import numpy as np
    >>> from sourcewise.baselines import ReferenceOnly
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(700, 5))
    >>> y = (X[:, 0] + X[:, 1] > 0).astype(int)
    >>> vendor = np.repeat(["gold", "careful", "careless"], [100, 300, 300])
    >>> y[400:] = rng.permutation(y[400:])  # the careless vendor's labels are noise
    >>> model = ReferenceOnly(reference="gold", random_state=0).fit(X, y, sources=vendor)
    >>> model.source_weights_
    array([1., 0., 0.])
    """

    def _weigh(self, work: SharedFits) -> np.ndarray:
        return work.by_size(work.only_reference)
