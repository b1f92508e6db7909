"""The models that tell a source from the reference, and how their losses compare."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sourcewise.core.data import FloatArray, SourceData
from sourcewise.core.discrepancy.moments import Moments, ridge_solution
from sourcewise.core.discrepancy.result import NO_WITNESS, Discrepancies, Witness
from sourcewise.core.discrepancy.trust_region import minimise_quadratic_on_ball


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
    return np.swapaxes(ridge_solution(gram, cross, ridge), 1, 2)


def extreme_models(sources: Moments, reference: Moments, *, norm_bound: float) -> FloatArray:
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
    return np.asarray(scores * targets < 0.0, dtype=np.float64)


def compare_losses(
    source_losses: FloatArray,
    source_weights: FloatArray,
    reference_losses: FloatArray,
    reference_weights: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    r"""Difference of mean losses (source minus reference) and its standard error, per model.

    .. math:: \epsilon_i - \epsilon_T, \qquad \sqrt{v_i + v_T}, \qquad
              v = \sum_j s_j^2 (\ell_j - \epsilon)^2 ,

    for weights :math:`s` that sum to 1 on each side. The model is taken as fixed, and a single
    row contributes no variance of its own.
    """
    source_mean = source_weights @ source_losses
    reference_mean = reference_weights @ reference_losses
    variance = source_weights**2 @ (source_losses - source_mean) ** 2
    variance += reference_weights**2 @ (reference_losses - reference_mean) ** 2
    return source_mean - reference_mean, np.sqrt(variance)


def largest_differences(
    data: SourceData, judge: Callable[[int], tuple[FloatArray, FloatArray, float]]
) -> Discrepancies:
    """Collect, source by source, the model with the largest difference of losses.

    Parameters
    ----------
    data : SourceData
    judge : callable
        Maps a source other than the reference to the differences of its models (source minus
        reference), their standard errors, and a p-value.
    """
    values, errors = np.zeros(data.n_sources), np.zeros(data.n_sources)
    p_values = np.ones(data.n_sources)
    witnesses = [NO_WITNESS] * data.n_sources
    for i in range(data.n_sources):
        if i != data.reference:
            differences, deviations, p_values[i] = judge(i)
            k = int(np.argmax(np.abs(differences)))
            values[i], errors[i] = abs(differences[k]), deviations[k]
            of_class = f" of class {k}" if data.n_classes > 2 else ""
            side = "source" if differences[k] >= 0.0 else "reference"
            witnesses[i] = Witness(f"separating model{of_class}", side)
    return Discrepancies(values, errors, p_values, tuple(witnesses))
