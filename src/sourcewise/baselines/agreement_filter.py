"""Keep the sources whose labels the reference's model finds right often enough."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np
from scipy.special import ndtri

from sourcewise.baselines.base import Baseline, with_shared_entries
from sourcewise.baselines.shared_fits import SharedFits


@with_shared_entries
class AgreementFilter(Baseline):
    r"""Train on the sources on which the reference's model is as accurate as on the reference.

    Assumes that a source whose labels agree with the reference's model is a good one. With
    :math:`a_T` the accuracy on the reference by models that have not seen the row, :math:`a_i`
    the mean accuracy of the same models on source i, a source is kept unless it is significantly
    worse,

    .. math:: a_i \ge a_T - z_{1 - \text{level}} \sqrt{\hat v_T / m_T + \hat v_i / m_i},

    with :math:`\hat v` the variance of a row's accuracy; then as :class:`AllData` on the sources
    kept and the reference. This is the check a practitioner would write first; screening data by a
    model of trusted data is as old as Brodley and Friedl (1999), "Identifying mislabeled training
    data". There is no correction for the number of sources: of the good ones, a share of about
    ``level`` is lost. The choice is made once, on the whole reference; C is then cross-validated.
    Several classes: multinomial.

    It fails where the reference is small (its model is poor and the test weak), against sources
    that are bad in rows the model is sure of only in part, and it drops good sources from other
    regions of the features, which could teach the most.

    Parameters
    ----------
    level : float
        Of the test, between 0 and 0.5.
    %(parameters)s

    Attributes
    ----------
    %(sources_)s
    source_weights_ : array of shape (n_sources,)
        Shares of the rows trained on.
    agreements_ : array of shape (n_sources,)
        :math:`a_i`.
    %(trained)s

    Examples
    --------
    >>> from sourcewise.baselines import AgreementFilter
    %(noise)s
    >>> model = AgreementFilter(reference="gold", random_state=0).fit(X, y, sources=vendor)
    >>> model.source_weights_
    array([0.25, 0.75, 0.  ])
    """

    def __init__(
        self,
        *,
        level: float = 0.05,
        reference: Any = "reference",
        cv: int = 5,
        protocol: str | None = None,
        random_state: Any = None,
    ):
        super().__init__(reference=reference, cv=cv, protocol=protocol, random_state=random_state)
        self.level = level

    def _check_parameters(self, names: list[Any]) -> None:
        if not isinstance(self.level, numbers.Real) or not 0.0 < self.level < 0.5:
            raise ValueError(f"level must be between 0 and 0.5; got {self.level!r}.")

    def _weigh(self, work: SharedFits) -> np.ndarray:
        pool, data = work.pool, work.pool.data
        correct = np.empty(len(data.y))
        models = work.reference_trained.fold_models
        for rows in data.slices():
            predicted = predicted_classes(models, data.X[rows])
            correct[rows] = (predicted == data.y[rows]).mean(axis=0)
        trusted = data.rows(data.reference)
        X, y = pool.reference.X, pool.reference.y
        unseen = (predicted_classes(models, X) == y) & work.held_out
        correct[trusted] = unseen.sum(axis=0) / len(pool.folds.folds)
        weighted = data.row_shares * correct
        means = np.add.reduceat(weighted, data.starts[:-1])
        variances = np.add.reduceat(weighted * correct, data.starts[:-1]) - means**2
        errors = np.maximum(variances, 0.0) / data.sizes
        spread = np.sqrt(errors + errors[data.reference])
        kept = means >= means[data.reference] - ndtri(1.0 - self.level) * spread
        self.agreements_ = means
        return work.by_size(kept | work.only_reference)


def predicted_classes(models: np.ndarray, X: np.ndarray) -> np.ndarray:
    """Class codes of shape (n_models, n_rows)."""
    n_models, outputs, d = models.shape
    scores = (X @ models.reshape(-1, d).T).reshape(len(X), n_models, outputs)
    codes = scores.argmax(axis=2) if outputs > 1 else (scores[:, :, 0] > 0).astype(np.intp)
    return np.asarray(codes.T)
