r"""Shares of many models in one: Q-aggregation of scores on rows that none of them has seen.

Let :math:`E(s)` be minus the log-likelihood of the held-out rows under scores :math:`s` (log-odds,
or predictions of a target), and :math:`s_k` those of model :math:`k`. The shares :math:`q` minimise

.. math::

    \nu E\Big( \sum_k q_k s_k \Big) + (1 - \nu) \sum_k q_k E(s_k)
    + \mathrm{KL}(q \,\|\, \pi)

on the simplex, with :math:`\nu = \tfrac12` (Dai, Rigollet and Zhang, *Deviation optimal learning
using greedy Q-aggregation*, Annals of Statistics 2012). The second term alone would give Bayes'
rule, :math:`q_k \propto \pi_k e^{-E(s_k)}`, which ends with the one best model however well another
makes up for what it lacks; the first alone stacking, which makes too much of few rows. With half of
each, the mixture is nearly as good as the best model, with as few rows as that can be had.

The likelihood of targets is the normal one with its variance fitted. Squared errors beyond the clip
grow linearly, so that no model is too far off to be told from a better one; but rows on which even
the best model is beyond the clip are wrong themselves, and tell nothing.

The problem is convex but for the floor of probabilities and for the fitted variance. The solution
is the one that Newton's steps reach from the prior.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.special import logsumexp

from sourcewise.core.choices import DEFAULT
from sourcewise.core.data import FloatArray
from sourcewise.core.logistic import probabilities
from sourcewise.core.losses import NO_LOSS

# What takes part beside an estimator of the user's own: the default learner; the estimator on the
# reference alone, on weighted sources, on all rows with their sources told, or not where it cannot
# be told them. Model files have these names.
DEFAULT_LEARNER, ALONE, WEIGHTED = "linear default", "reference only", "weighted sources"
TOLD, UNTOLD = "source as a feature", "all rows"
MAX_ITER = 100
TOL = 1e-12  # predicted decrease, in units of log-likelihood, at which shares are found
SUFFICIENT = 1e-4  # part of the predicted decrease that a step has to bring
NEXT_TO_NOTHING = -300.0  # logarithm below which shares need not be told apart


@dataclass(frozen=True)
class HeldOutRows:
    """What some models say of rows that they have not seen."""

    scores: FloatArray  # (n_rows, n_outputs, n_models)
    y: NDArray[Any]  # (n_rows,); class codes, or targets
    row_shares: FloatArray  # (n_rows,); what each row counts; they sum to 1
    size: float  # number of independent rows that a likelihood may count
    n_classes: int  # 0 for regression
    scale: float = 1.0  # standard deviation of targets
    # As of the losses.
    clip: float = DEFAULT.clip
    least_probability: float = DEFAULT.least_probability

    def costs(self, scores: FloatArray) -> FloatArray:
        """Minus the log-likelihoods of scores of shape (n_rows, n_outputs, n_mixtures)."""
        if not self.n_classes:
            size = np.abs(self._residuals(scores))
            losses = np.where(size < 1.0, np.minimum(size, 1.0) ** 2, 2.0 * size - 1.0)
            losses[~self._told] = 1.0
            return np.asarray(0.5 * self.size * np.log(self.row_shares @ losses + NO_LOSS))
        chance = self._chance(probabilities(np.moveaxis(scores, 1, -1)))
        return np.asarray(-self.size * (self.row_shares @ np.log(chance)))

    def slopes(self, scores: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the cost's derivatives by each model's share, at a mixture's (n_rows, n_outputs).

        A gradient, and a matrix of second derivatives that is never indefinite: that of the
        likelihood for classes, Gauss and Newton's for targets.
        """
        if not self.n_classes:
            residuals = self._residuals(scores[:, :, None])[:, 0]
            moved = self.scores[:, 0] / (self.clip * self.scale)
            mean_loss = np.exp(self.costs(scores[:, :, None])[0] / (0.5 * self.size))
            weights = self.size / mean_loss * self.row_shares * self._told
            curved = weights * (np.abs(residuals) < 1.0)
            gradient = (weights * np.clip(residuals, -1.0, 1.0)) @ moved
            return gradient, (moved * curved[:, None]).T @ moved
        p = probabilities(scores)
        counted = self._chance(p[:, None, :])[:, 0] > self.least_probability
        importance = self.size * self.row_shares * counted
        by_output = p[:, -scores.shape[1] :]  # of two classes the second has the score
        excess = by_output - np.eye(p.shape[1])[self.y][:, -by_output.shape[1] :]
        gradient = np.einsum("no,nom->m", importance[:, None] * excess, self.scores)
        rooted = np.sqrt(importance[:, None] * by_output)[:, :, None] * self.scores
        mean = np.sqrt(importance)[:, None] * np.einsum("no,nom->nm", by_output, self.scores)
        rooted = rooted.reshape(-1, rooted.shape[2])
        return gradient, rooted.T @ rooted - mean.T @ mean

    def _residuals(self, scores: FloatArray) -> FloatArray:
        """Residuals of predictions in units of the clip, (n_rows, n_mixtures)."""
        return np.asarray((scores[:, 0] - self.y[:, None]) / (self.clip * self.scale))

    @cached_property
    def _told(self) -> NDArray[np.bool_]:
        """Whether each row is within the clip of the best model's prediction."""
        size = np.abs(self._residuals(self.scores))
        best = np.argmin(self.row_shares @ np.minimum(size, 1.0) ** 2)
        return np.asarray(size[:, best] < 1.0)

    def _chance(self, p: FloatArray) -> FloatArray:
        """Probability that (n_rows, n_mixtures, n_classes) give to each row's label."""
        found = np.take_along_axis(p, self.y[:, None, None], axis=-1)[..., 0]
        return np.asarray(np.maximum(found, self.least_probability))


def mixture_shares(rows: HeldOutRows, log_prior: FloatArray, joint: float = 0.5) -> FloatArray:
    """Return the shares that minimise the objective above; they sum to 1.

    Newton's direction is taken in the logarithms of the shares, where the solution for models that
    do not make up for one another is a single step away.

    Parameters
    ----------
    rows : HeldOutRows
    log_prior : array of shape (n_models,)
        Up to a constant.
    joint : float
        Nu: what the likelihood of the mixture counts, against the average of the models' own.

    Examples
    --------
    Of two models each of which knows one half of the rows, neither is left out:

    >>> import numpy as np
    >>> scores = np.array([[[4.0, 0.0]], [[-4.0, 0.0]], [[0.0, 4.0]], [[0.0, -4.0]]])
    >>> rows = HeldOutRows(scores, np.array([1, 0, 1, 0]), np.full(4, 0.25), 40.0, 2)
    >>> mixture_shares(rows, np.zeros(2))
    array([0.5, 0.5])
    """
    log_prior = log_prior - logsumexp(log_prior)
    own = rows.costs(rows.scores)
    own = own - own.min()

    def objective(log_shares: FloatArray) -> float:
        shares = np.exp(log_shares)
        together = rows.costs((rows.scores @ shares)[:, :, None])[0]
        divergence = shares @ (log_shares - log_prior)
        return float(joint * together + (1.0 - joint) * (shares @ own) + divergence)

    log_shares, value = log_prior, objective(log_prior)
    for _ in range(MAX_ITER):
        shares = np.exp(log_shares)
        gradient, curvature = rows.slopes(rows.scores @ shares)
        gradient = joint * gradient + (1.0 - joint) * own + log_shares - log_prior
        direction = _newton_direction(gradient, joint * curvature, shares)
        decrease = -float(gradient @ (shares * direction))
        if decrease <= TOL:
            break
        length = 1.0
        while True:
            moved = np.maximum(log_shares + length * direction, NEXT_TO_NOTHING)
            moved -= logsumexp(moved)
            found = objective(moved)
            if found <= value - SUFFICIENT * length * decrease or length < TOL:
                break
            length *= 0.5
        if found >= value:
            break
        log_shares, value = moved, found
    return np.exp(log_shares)


def _newton_direction(
    gradient: FloatArray, curvature: FloatArray, shares: FloatArray
) -> FloatArray:
    """Return Newton's step relative to the shares; it leaves their sum as it is.

    The divergence has the curvature ``1 / shares``. Scaled by their roots the system is as good as
    the identity wherever shares are small.
    """
    root = np.sqrt(shares)
    system = cho_factor(np.eye(len(shares)) + root[:, None] * curvature * root)
    free, even = cho_solve(system, np.column_stack([root * gradient, root])).T
    multiplier = (root @ free) / (root @ even)
    step = root * (multiplier * even - free)
    return np.asarray(multiplier - gradient - curvature @ step)
