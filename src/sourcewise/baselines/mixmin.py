"""Mix the sources' own predictions, then train with the weights of the mixture."""

from __future__ import annotations

import numpy as np

from sourcewise.baselines.base import OfLocalModels, with_shared_entries
from sourcewise.baselines.shared_fits import SharedFits
from sourcewise.core.aggregation import mixture_weights
from sourcewise.core.family import kept_shares

SMALLEST = 1e-6  # one row that all models get wrong must not decide alone


@with_shared_entries
class MixMin(OfLocalModels):
    r"""Source weights that make the mixture of the sources' models most likely on the reference.

    Assumes that the target's distribution is about a mixture of the sources':

    .. math:: \lambda = \arg\max_{\lambda \in \Delta} \sum_{j \in T}
              \log \sum_i \lambda_i\, p_i(y_j \mid x_j),

    a convex problem, solved to convergence; then logistic regression with source weights
    :math:`\lambda` (Thudi, Rovers, Ruan, Thrush and Maddison 2025, "MixMin: finding data mixtures
    via convex minimization", arXiv:2502.10510). The reference is one of the sources; it is judged
    by predictions for rows its models have not seen. In cross-validation of the final C the
    mixture is found without the validation rows. Several classes: multinomial throughout.

    It fails where local models are poor: those of small sources are, however clean, and the
    mixture then prefers few large sources (or the reference) to many small ones; a source adds
    nothing once another predicts the same.

    Parameters
    ----------
    %(local_C)s
    %(parameters)s

    Attributes
    ----------
    %(sources_)s
    source_weights_ : array of shape (n_sources,)
        :math:`\lambda`.
    %(trained)s

    Examples
    --------
    >>> from sourcewise.baselines import MixMin
    %(noise)s
    >>> model = MixMin(reference="gold", random_state=0).fit(X, y, sources=vendor)
    >>> bool(model.source_weights_[2] < 0.01)
    True
    """

    def _weigh(self, work: SharedFits) -> np.ndarray:
        data = work.pool.data
        X, y = work.pool.reference.X, work.pool.reference.y
        likelihoods = work.pool.family.predict(work.local_models(self.C), X)[
            :, np.arange(len(y)), y
        ]
        likelihoods[data.reference] = work.reference_predictions[np.arange(len(y)), y]
        likelihoods = np.maximum(likelihoods, SMALLEST)
        shares = work.reference_shares
        return np.stack(
            [
                mixture_weights(likelihoods, kept)
                for kept in [shares, *(kept_shares(shares, mask) for mask in work.held_out)]
            ]
        )
