"""Average of the sources' updates, trusted by their direction."""

from __future__ import annotations

from sourcewise.baselines.base import OfLocalModels, with_shared_entries
from sourcewise.baselines.shared_fits import SharedFits
from sourcewise.core.aggregation import rectified_cosines, trusted_average


@with_shared_entries
class FLTrust(OfLocalModels):
    r"""Average of the sources' models, weighted by the cosine to the reference's own.

    Assumes that a good source's update points where the reference's points. With updates
    :math:`u_i = w_i` from zero, in one shot (every local model is trained to convergence once):

    .. math:: t_i = \max(0, \cos(u_i, u_T)), \qquad
              w = \frac{1}{\sum_i t_i} \sum_i t_i \frac{\lVert u_T \rVert}
              {\lVert u_i \rVert} u_i

    (Cao, Fang, Liu and Gong 2021, "FLTrust: Byzantine-robust federated learning via trust
    bootstrapping", arXiv:2012.13995; there over many rounds of gradients). The reference counts as
    one of the sources, with trust 1, so that the average exists when no other is trusted. Several
    classes: the coefficients of all of them make one vector.

    It fails where the reference's own direction is poor (few rows, many features), against sources
    that are bad in a way that keeps the direction, such as a label bias, which only moves the
    constant; and sizes play no part.

    Parameters
    ----------
    %(local_C)s
    %(reference)s
    cv : int
        Folds of the reference, at least 3; C of "cv" is chosen on them.
    %(protocol)s
    %(random_state)s

    Attributes
    ----------
    %(sources_)s
    source_weights_ : array of shape (n_sources,)
        :math:`t_i / \sum_k t_k`.
    %(coef_)s

    Examples
    --------
    >>> from sourcewise.baselines import FLTrust
    %(flipped)s
    >>> model = FLTrust(reference="gold", random_state=0).fit(X, y, sources=vendor)
    >>> model.source_weights_.round(1)
    array([0.5, 0.5, 0. ])
    """

    def _fit(self, work: SharedFits) -> None:
        models = work.local_models(self.C)
        updates = models.reshape(len(models), -1)
        trusted = updates[work.pool.data.reference]
        trust = rectified_cosines(updates, trusted)
        trust[work.pool.data.reference] = 1.0
        self.source_weights_ = trust / trust.sum()
        average = trusted_average(updates, trusted, trust)
        self._set_linear(work, average.reshape(models.shape[1:]))
