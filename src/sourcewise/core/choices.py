"""Every choice that moves the model, in one place: grids, losses, rules and constants.

``benchmarks/accuracy --variants`` measures what each of them is worth; docs/method.md lists them.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from sourcewise.core.data import FloatArray
from sourcewise.core.weights import theory_trade_off


@dataclass(frozen=True)
class CombinedChoices:
    """Constants of the ``combined`` discrepancy.

    Attributes
    ----------
    pulled : float
        What a pull counts: it is about twice a discrepancy.
    missed : float
        Labels that have nothing to do with the features cost this share of what knowing nothing
        does.
    failed : float
        What the failure of a source's own model on the reference counts: it is a noisy witness.
    beyond_doubt : float
        Standard errors beyond which that failure counts at all.
    farness : float
        What the features' distance counts: moments that differ by as much as the reference has
        cost about a fifth of what knowing nothing does.
    other_units : float
        Sources that differ by nature had moments up to seven times the reference's away from it
        (``benchmarks/accuracy``); beyond this their units or columns are others, even if all lie so
        far. It chooses words only.
    nearest : float
        Least discrepancy of a source: only the reference is at distance zero, because lambda = 0
        must leave every other source out.
    agreement_noise : float
        Standard errors below which the reference's own agreement cannot be distinguished from none.
    agreement_farthest : float
        Targets count as no farther from the median of their source than so many of the reference's
        standard deviations: a single one beyond must not decide.
    most_missing : float
        Labels that have nothing to do with the features miss all of the agreement, flipped ones
        twice as much; nothing misses more.
    feature_rows : int
        Rows of a source that its features are measured on: enough, and the work grows with their
        square.
    feature_least_rows : int
        Fewer rows than this have no distance: their moments are noise.
    feature_noise : float
        Distances count beyond so many standard deviations that rows like the reference's would
        have.
    natural_share : float
        Distances count beyond what this share of the sources, the nearest, makes look natural.
    natural_margin : float
        By how much more than those a distance may be natural.
    """

    pulled: float = 0.5
    missed: float = 0.4
    failed: float = 0.25
    beyond_doubt: float = 3.0
    farness: float = 0.05
    other_units: float = 20.0
    nearest: float = 1e-6
    agreement_noise: float = 2.0
    agreement_farthest: float = 4.0
    most_missing: float = 2.0
    feature_rows: int = 300
    feature_least_rows: int = 3
    feature_noise: float = 2.0
    natural_share: float = 0.1
    natural_margin: float = 0.5


@dataclass(frozen=True)
class Choices:
    """The choices that turn the method into a procedure.

    Attributes
    ----------
    trade_offs : array
        Values of lambda that cross-validation tries.
    regularisations : array
        Values of ``C`` for the default learners.
    n_repeats : int
        How often the reference is split into folds.
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
    smallest_share : float
        No feature is left with a smaller share of the largest one's standard deviation.
    own_units : float
        Columns are in different units if one that never changes its sign deviates more than so many
        times as much as the median column: components and embeddings go both ways.
    largest : float
        Mapped features are cut off there. Beyond lie placeholders such as 1e36, which no arithmetic
        survives, and running numbers of other sources, with which solvers did not get to the end.
    ridge : float
        Of the plug-in discrepancy; the paper's.
    relative_ridge : float
        Of the cross-fitted discrepancy, relative to the features' mean square: the paper's ridge
        interpolates as soon as there are more features than rows.
    likelier, lost_part : float
        For an estimator of the user's own, the reference alone is taken instead of the average
        where that is so much less likely, in units of log-likelihood, and by so large a part of
        what the reference knows.
    clip : float
        Squared errors beyond so many standard deviations of the reference's targets count as this
        many.
    far_off : float
        Reference targets count as no farther from their median than so many standard deviations in
        the unit that losses are measured in: one wrong target must not become the unit.
    least_probability : float
        Lower probabilities of a label count as this much, so that one row cannot decide alone.
    intercept_penalty, ridge_intercept_penalty : float
        A free intercept would run off to infinity on a source with one class; this holds it without
        being felt elsewhere (classifier and regressor).
    combined : CombinedChoices
    """

    trade_offs: FloatArray
    regularisations: FloatArray
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
    smallest_share: float = 0.1
    own_units: float = 5.0
    largest: float = 100.0
    ridge: float = 1e-6
    relative_ridge: float = 0.1
    likelier: float = 1.0
    lost_part: float = 0.25
    clip: float = 2.0
    far_off: float = 10.0
    least_probability: float = 1e-6
    intercept_penalty: float = 1e-3
    ridge_intercept_penalty: float = 1e-8
    combined: CombinedChoices = field(default_factory=CombinedChoices)


DEFAULT = Choices(
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
)

PAPER = Choices(
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
)
