"""The models that tell a source from the reference, and how their losses compare."""

from __future__ import annotations

import numpy as np

from sourcewise.core.data import FloatArray
from sourcewise.core.discrepancy.findings import Findings
from sourcewise.core.discrepancy.moments import Moments, ridge_solution
from sourcewise.core.discrepancy.result import Discrepancies, Witness
from sourcewise.core.discrepancy.trust_region import minimise_quadratic_on_ball

# Relative size of what rounding leaves of a number that is zero in exact arithmetic.
ROUNDING = 1e-12


def separating_models(
    sources: Moments, reference: Moments, *, ridge: float | FloatArray
) -> FloatArray:
    r"""Classifiers that are right on the reference and wrong on the source.

    Appendix B of the paper: flip the labels of the source and solve a square-loss problem on
    both sides, each of total weight 1,

    .. math:: \min_w \sum_{j \in i} s_j (x_j^\top w + t_j)^2
              + \sum_{j \in T} s_j (x_j^\top w - t_j)^2 + \rho \|w\|^2 ,

    so that :math:`w = (G_i + G_T + \rho I)^{-1} (b_T - b_i)`. The ridge is not divided by the
    number of rows: the losses are means already.

    Parameters
    ----------
    sources, reference : Moments
        Of ``n`` pairs; either may have a leading axis of length 1.
    ridge : float or array of shape (n,)

    Returns
    -------
    array of shape (n, n_targets, n_features)
        One model a class against the rest (a single one for two classes).
    """
    gram = sources.gram + reference.gram
    cross = reference.cross - sources.cross
    # A copy of the reference has no separating model: rounding must not find one.
    least = ROUNDING * (np.abs(reference.cross) + np.abs(sources.cross)).max(axis=1, keepdims=True)
    cross = np.where(np.abs(cross) <= least, 0.0, cross)
    return np.swapaxes(ridge_solution(gram, cross, ridge), 1, 2)


def extreme_models(
    sources: Moments, reference: Moments, *, norm_bound: float | FloatArray
) -> FloatArray:
    r"""Regressions of bounded norm with the largest and the smallest difference of squared loss.

    .. math:: \epsilon_i(w) - \epsilon_T(w)
              = w^\top (G_i - G_T) w - 2 (b_i - b_T)^\top w + q_i - q_T, \quad \|w\| \le B

    is an indefinite quadratic on a ball, so both ends are found exactly.

    Returns
    -------
    array of shape (n, 2, n_features)
        First the model that is worst on the source, then the one worst on the reference.
    """
    gram = sources.gram - reference.gram
    cross = (sources.cross - reference.cross)[:, :, 0]
    largest, _ = minimise_quadratic_on_ball(-gram, -cross, norm_bound)
    smallest, _ = minimise_quadratic_on_ball(gram, cross, norm_bound)
    return np.stack([largest, smallest], axis=1)


def reference_norm(reference: Moments, ridge: float) -> float:
    r"""Norm :math:`\|w_T\|` of the reference's own ridge regression.

    A discrepancy over a ball speaks of the models one would consider; the reference's own is the
    yardstick. Where it is zero (targets unrelated to the features) the norm falls back to
    :math:`\sqrt{q_T n / \operatorname{tr} G_T}`, at which a model's predictions are about as
    large as the targets.
    """
    own = float(np.linalg.norm(ridge_solution(reference.gram, reference.cross, ridge)))
    scale = float(np.trace(reference.gram[0])) / reference.gram.shape[1]
    typical = float(np.sqrt(reference.square[0, 0] / scale)) if scale > 0.0 else 0.0
    return own if own > 1e-9 * typical else typical


def model_losses(
    X: FloatArray, targets: FloatArray, models: FloatArray, n_classes: int
) -> FloatArray:
    """Loss of every row under every model.

    Classes: the 0/1 loss ``1{t x'w < 0}`` of the paper, by which a margin of exactly zero is no
    error, on either side. Regression: ``(x'w - t)^2``, not clipped; scale the target if the loss
    is to stay below 1.

    Parameters
    ----------
    X : array of shape (n_rows, n_features)
    targets : array of shape (n_rows, n_targets)
    models : array of shape (n_models, n_features)
    n_classes : int

    Returns
    -------
    array of shape (n_rows, n_models)
    """
    scores = X @ models.T
    if n_classes == 0:
        return np.asarray((scores - targets) ** 2)
    return np.asarray(_beyond_rounding(scores, X, models) * targets < 0.0, dtype=np.float64)


def _beyond_rounding(scores: FloatArray, X: FloatArray, models: FloatArray) -> FloatArray:
    """Set scores to zero that are zero in exact arithmetic, whatever the basis of the features."""
    sizes = np.linalg.norm(X, axis=1)[:, None] * np.linalg.norm(models, axis=1)
    return np.asarray(np.where(np.abs(scores) <= ROUNDING * sizes, 0.0, scores))


def loss_moments(losses: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    r"""Mean losses of some models, (n_rows, n_models), and the variances of these means.

    .. math:: \epsilon = \sum_j s_j \ell_j, \qquad v = \sum_j s_j^2 (\ell_j - \epsilon)^2

    under weights that sum to 1. The models are taken as fixed, and a single row contributes no
    variance of its own.
    """
    mean = weights @ losses
    return mean, weights**2 @ (losses - mean) ** 2


def separation_values(found: Findings) -> FloatArray:
    """Return the largest difference over the targets, (n_sets, n_sources)."""
    return np.asarray(np.abs(found["differences"]).max(axis=1))


def separation_discrepancies(found: Findings, n_classes: int) -> Discrepancies:
    r"""Values, standard errors and witnesses, of the model with the largest difference.

    Of the whole reference and without each fold, ``differences`` of mean losses, source minus
    reference, are (n_sets, n_targets, n_sources); their standard errors on the whole reference,
    :math:`\sqrt{v_i + v_T}`, are (n_targets, n_sources).
    """
    signed = found["differences"][0]
    which = np.abs(signed).argmax(axis=0)
    sources = np.arange(signed.shape[1])
    witnesses = tuple(
        Witness(
            f"separating model of class {k}" if n_classes > 2 else "separating model",
            "source" if signed[k, i] >= 0.0 else "reference",
        )
        for i, k in enumerate(which.tolist())
    )
    errors = found["difference_errors"][which, sources]
    return Discrepancies(separation_values(found)[0], errors, found["p_values"], witnesses)
