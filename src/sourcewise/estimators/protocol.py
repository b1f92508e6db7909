"""What a fit does, beyond the user's own parameters: grids, losses, rules."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sourcewise.core.weights import theory_trade_off


@dataclass(frozen=True)
class Protocol:
    """The choices that turn the method into a procedure.

    Attributes
    ----------
    trade_offs : array
        Values of lambda that cross-validation tries.
    regularisations : array
        Values of ``C`` for the default learners.
    n_repeats : int
        How often the reference is dealt into folds.
    zero_one : bool
        Choose by the error rate instead of a smooth loss.
    averaged : bool
        Average the models of all pairs of trade-off and regularisation (the weights over the
        trade-offs, for an estimator of the user's own), by how well each does; otherwise take the
        best pair, the smallest trade-off where several are.
    preferred : float
        The trade-off that counts most where the data cannot tell.
    doublings : float
        How many doublings from the preferred trade-off make a standard deviation of the prior.
    decades : float
        How many powers of ten from the expected regularisation do.
    joint : float
        What the likelihood of the averaged model counts for its shares, against the average of the
        likelihoods of its parts.
    least_share : float
        Trade-offs with a smaller share in the average are left out of it.
    effective_total : bool
        Row weights sum to the effective number of rows ``1 / sum_i alpha_i^2 / m_i`` (continuous
        in the trade-off); otherwise to the number of rows in use.
    tol : float
        Predicted relative decrease at which the default classifier's solver stops. Error rates
        jump where a score crosses zero, so comparing them asks for more digits than a smooth loss.
    as_given : bool
        Leave features as they are and penalise the constant's coefficient; otherwise centre and
        scale them by the reference and leave the constant free.
    second_look : bool
        Judge sources again, by pull, agreement and features ("local", default learners).
    """

    trade_offs: np.ndarray
    regularisations: np.ndarray
    n_repeats: int
    zero_one: bool
    averaged: bool
    preferred: float
    doublings: float
    decades: float
    joint: float
    least_share: float
    effective_total: bool
    tol: float
    as_given: bool
    second_look: bool


DEFAULT = Protocol(
    trade_offs=np.concatenate([[0.0], theory_trade_off() * 2.0 ** np.arange(-4, 4), [np.inf]]),
    regularisations=np.logspace(-3, 2, 6),
    n_repeats=2,
    zero_one=False,
    averaged=True,
    preferred=theory_trade_off() / 4.0,
    doublings=2.0,
    decades=1.0,
    joint=0.5,
    least_share=0.01,
    effective_total=True,
    tol=1e-7,
    as_given=False,
    second_look=True,
)

PAPER = Protocol(
    trade_offs=np.concatenate([[0.0], 2.0 ** np.arange(-10, 10), [1e4]]),
    regularisations=np.logspace(-4, 4, 10),
    n_repeats=1,
    zero_one=True,
    averaged=False,
    preferred=theory_trade_off(),
    doublings=1.0,
    decades=1.0,
    joint=0.5,
    least_share=0.0,
    effective_total=False,
    tol=1e-9,
    as_given=True,
    second_look=False,
)
