"""Keep the sources that most others resemble, without asking the reference."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np
from scipy.special import expit

from sourcewise.baselines.base import Baseline, check_C, with_shared_entries
from sourcewise.baselines.shared_fits import SharedFits
from sourcewise.core.losses import brier_loss


@with_shared_entries
class PairwiseFilter(Baseline):
    r"""Train on the sources that are close to most of the others.

    Assumes an honest majority: more than half of the sources share the target's distribution. No
    reference is needed for the filter, to which it is a source like any other:

    .. math:: q_i = \operatorname{median}_{j \ne i}\, d_{ij},

    and the half with the smallest :math:`q_i` is kept (ties included), after Konstantinov, Frantar,
    Alistarh and Lampert (2020), "On the sample complexity of adversarial multi-source PAC
    learning", and FLEA (Iofinova, Konstantinov and Lampert 2022, arXiv:2106.11732). A
    ``threshold`` keeps the sources with :math:`q_i` up to it instead. The supremum in the
    discrepancy is taken over the two hypotheses that matter, the sources' own models,

    .. math:: d_{ij} = \max_{h \in \{h_i, h_j\}} \lvert L_i(h) - L_j(h) \rvert,

    with L the mean Brier loss; each source trains two models on a half of its rows and is judged
    by them on the other half. FLEA's two further terms, on a protected attribute, have no meaning
    here. Then as :class:`AllData` on the sources kept and, as it is trusted, the reference.
    Several classes: multinomial.

    It fails where half of the sources or more are bad (if they are bad in the same way, they are
    what is kept), and in keeping half it wastes the other half where all sources are good. Two
    sources are both kept: neither is a majority.

    Parameters
    ----------
    threshold : float, optional
        Largest median discrepancy to keep; by default the median over the sources.
    %(local_C)s
    %(parameters)s

    Attributes
    ----------
    %(sources_)s
    source_weights_ : array of shape (n_sources,)
        Shares of the rows trained on.
    median_discrepancies_ : array of shape (n_sources,)
        :math:`q_i`; 0 for a single source.
    %(trained)s

    Examples
    --------
    >>> import numpy as np
    >>> from sourcewise.baselines import PairwiseFilter
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(900, 5))
    >>> y = (X[:, 0] + X[:, 1] > 0).astype(int)
    >>> vendor = np.repeat(["gold", "careful", "careless"], 300)
    >>> y[600:] = rng.permutation(y[600:])  # the careless vendor's labels are noise
    >>> model = PairwiseFilter(reference="gold", random_state=0).fit(X, y, sources=vendor)
    >>> model.source_weights_
    array([0.5, 0.5, 0. ])
    """

    def __init__(
        self,
        *,
        threshold: float | None = None,
        C: float | str = "cv",
        reference: Any = "reference",
        cv: int = 5,
        protocol: str | None = None,
        random_state: Any = None,
    ):
        super().__init__(reference=reference, cv=cv, protocol=protocol, random_state=random_state)
        self.threshold = threshold
        self.C = C

    def _check_parameters(self, names: list[Any]) -> None:
        check_C(self.C, chosen=True)
        number = isinstance(self.threshold, numbers.Real)
        if self.threshold is not None and not (number and self.threshold >= 0):
            raise ValueError(
                f"threshold must be None or a number that is not negative; got {self.threshold!r}."
            )

    def _weigh(self, work: SharedFits) -> np.ndarray:
        medians = median_to_others(pairwise_discrepancies(mean_losses(work, self.C)))
        threshold = np.median(medians) if self.threshold is None else self.threshold
        self.median_discrepancies_ = medians
        return work.by_size((medians <= threshold) | work.only_reference)


def mean_losses(work: SharedFits, C: float | str) -> np.ndarray:
    """Mean loss of each source's models on each source, (n_sources, n_sources).

    On its own rows a source is judged by the model that has not seen them.
    """
    data = work.pool.data
    models, half = work.half_models(C)
    losses = np.empty((data.n_sources, data.n_sources))
    flat = models.reshape(-1, *models.shape[2:])
    for i, rows in enumerate(data.slices()):
        X, y, shares = data.X[rows], data.y[rows], data.row_shares[rows]
        if data.n_classes == 2:  # as below, at a fraction of the cost
            by_model = ((expit(X @ flat[:, 0].T) - y[:, None]) ** 2).T
        else:
            by_model = brier_loss(work.pool.family.predict(flat, X), y)
        losses[:, i] = (by_model @ shares).reshape(-1, 2).mean(axis=1)
        losses[i, i] = by_model[2 * i + half[rows], np.arange(len(y))] @ shares
    return losses


def pairwise_discrepancies(losses: np.ndarray) -> np.ndarray:
    """Discrepancies from the loss of source i's model on source j."""
    one_way = np.abs(losses - np.diag(losses)[:, None])
    return np.asarray(np.maximum(one_way, one_way.T))


def median_to_others(discrepancies: np.ndarray) -> np.ndarray:
    """Median distance of each source from the others."""
    n = len(discrepancies)
    if n == 1:
        return np.zeros(1)
    others = discrepancies[~np.eye(n, dtype=bool)].reshape(n, n - 1)
    return np.asarray(np.median(others, axis=1))
