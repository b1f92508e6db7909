"""Every choice that moves the model, in one place: grids, losses, rules and constants.

Only digits are elsewhere: where solvers stop, and which way they take, stands beside them.
``benchmarks/accuracy --variants`` measures what each of them is worth; docs/method.md lists them.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace

import numpy as np

from sourcewise.core.data import FloatArray
from sourcewise.core.weights import theory_trade_off


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
        Average the models of all pairs of trade-off and regularisation (for an estimator of the
        user's own, the members of `estimators/members.py`), by how well each does; otherwise take
        the best pair, the smallest trade-off where several are.
    preferred : float
        The trade-off that counts most where the data cannot tell.
    doublings : float
        How many doublings from the preferred trade-off make a standard deviation of the prior.
    end_doublings : float
        How many doublings beyond the last trade-off between them 0 and infinity count as.
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
        Predicted relative decrease at which the default classifier's solver stops.
    grid_tol : float
        The same of models that are compared on held-out rows. Error rates jump where a score
        crosses zero, so comparing them asks for more digits than a smooth loss.
    final_tol : float
        The same of the final model, whose digits will be looked at.
    least_pair : float
        Pairs of trade-off and regularisation with a smaller share in the final model are left out.
    hopeless : float
        While the regularisation is weakened, trade-offs whose log-likelihood has fallen so far
        behind the best are given up.
    hope : float
        Unless they are catching up: so many more gains like the last one are thought possible.
    first_folds : int
        Folds after which members of an average around an estimator of the user's own are given up
        that are as far behind: each fold costs fits of theirs.
    as_given : bool
        Leave features as they are and penalise the constant's coefficient; otherwise centre and
        scale them by the reference and leave the constant free.
    smallest_share : float
        No feature is left with a smaller share of the largest one's standard deviation.
    own_units : float
        Columns are in different units if one that never changes its sign deviates more than so many
        times as much as the median column: components and embeddings go both ways.
    clearly_likelier : float
        Columns that look alike are standardised if this makes the held-out reference rows likelier
        by so much, in units of log-likelihood.
    judged_folds : int
        Folds that this likelihood is found by: each costs a grid of fits, twice.
    judged_rows : int
        Most reference rows that it is found by: with more the penalty, and so the scaling, hardly
        matters.
    largest : float
        Mapped features are cut off there. Beyond lie placeholders such as 1e36, which no arithmetic
        survives, and running numbers of other sources, with which solvers did not get to the end.
    ridge : float
        Of the plug-in discrepancy; the paper's.
    relative_ridge : float
        Of the cross-fitted discrepancy, relative to the features' mean square: the paper's ridge
        interpolates as soon as there are more features than rows.
    least_chance : float
        Where models of several kinds are averaged by their log-odds, no probability counts as less
        than this: a forest may give a class none at all.
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
    pulled : float
        What a pull counts: it is about twice a discrepancy.
    missed : float
        Labels that have nothing to do with the features cost this share of what knowing nothing
        does.
    farness : float
        What the features' distance counts: moments that differ by as much as the reference has
        cost about a fifth of what knowing nothing does.
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
    without_copies : bool
        Leave rows out that repeat trusted ones: a held-out row whose copy is trained on has been
        seen.
    copy_radius : float
        What part of the typical distance from a trusted row to the next makes a copy: three times
        the noise that hides a copy from exact comparison at no cost to its use, and far from what
        separates rows by nature.
    copy_twins : float
        Share of the trusted rows that may be as near to each other; where more are equal, equal
        rows are nothing unusual.
    mixture_radius : float
        What part of the least distance from a trusted row to mixtures of the others makes a row a
        mixture: clean rows are not that near.
    most_mixed : int
        Trusted rows of which mixtures are looked for, at most: the work grows with their cube.
    own_folds : int
        Folds for an estimator of the user's own, at most: every further one costs three fits.
    clip_quantile : float
        Features are cut off at these quantiles of the reference, below and above; 0: not.
    size_cap : float
        No source counts for more rows than so many times the trusted ones: these are the only
        number that nobody else can choose. What is known of a source is no surer than the rows that
        it was judged on; with twice as many, its own rows add little to what remains unknown.
    only_varying : bool
        Ignore columns that are constant in the reference: of what they mean it cannot tell
        anything, so they could carry a signal that only a source knows.
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
    grid_tol: float
    final_tol: float
    as_given: bool
    least_pair: float = 0.001
    hopeless: float = 10.0
    hope: float = 2.0
    first_folds: int = 2
    end_doublings: float = 2.0
    smallest_share: float = 0.1
    own_units: float = 5.0
    clearly_likelier: float = 1.0
    judged_folds: int = 3
    judged_rows: int = 500
    largest: float = 100.0
    ridge: float = 1e-6
    relative_ridge: float = 0.1
    least_chance: float = 0.001
    clip: float = 2.0
    far_off: float = 10.0
    least_probability: float = 1e-6
    intercept_penalty: float = 1e-3
    ridge_intercept_penalty: float = 1e-8
    pulled: float = 0.5
    missed: float = 0.4
    farness: float = 0.05
    nearest: float = 1e-6
    agreement_noise: float = 2.0
    agreement_farthest: float = 4.0
    most_missing: float = 2.0
    feature_rows: int = 300
    feature_least_rows: int = 3
    feature_noise: float = 2.0
    without_copies: bool = True
    copy_radius: float = 0.3
    copy_twins: float = 0.05
    mixture_radius: float = 0.5
    most_mixed: int = 1000
    only_varying: bool = True
    own_folds: int = 5
    clip_quantile: float = 0.0
    size_cap: float = np.inf


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
    grid_tol=1e-5,
    final_tol=1e-10,
    as_given=False,
)

# Against sources that lie on purpose.
STRICT = replace(DEFAULT, clip_quantile=0.025, size_cap=2.0)

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
    without_copies=False,
    only_varying=False,
    own_folds=sys.maxsize,
    tol=1e-9,
    grid_tol=1e-9,
    final_tol=1e-12,
    as_given=True,
)
