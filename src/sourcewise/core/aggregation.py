r"""Combining the models of many sources: medians, rectified cosines, likelihood of a mixture."""

from __future__ import annotations

import numpy as np
from scipy.optimize import nnls

from sourcewise.core.data import FloatArray


def geometric_median(points: FloatArray, *, tol: float = 1e-10, max_iter: int = 1000) -> FloatArray:
    r"""Point of least summed distance to ``points`` of shape (n_points, n_coordinates).

    .. math:: \arg\min_z \sum_i \lVert z - w_i \rVert

    Weiszfeld's iteration averages the points with weights :math:`1 / \lVert z - w_i \rVert`, which
    breaks down when it lands on one of them. Vardi and Zhang (2000) take the average over the other
    points and then move only as far as the pull of the others exceeds the multiplicity of the one
    landed on; with that step the iteration descends from everywhere. As convergence can be slow
    where the median is itself one of the points, the nearest one is tested now and then by its
    optimality condition: the unit vectors to the other points sum to no more than its multiplicity.

    Parameters
    ----------
    points : array of shape (n_points, n_coordinates)
    tol : float
        The iteration stops when a step is shorter than ``tol`` times the spread of the points.
    max_iter : int

    Examples
    --------
    >>> import numpy as np
    >>> geometric_median(np.array([[0.0, 0.0], [0.0, 1.0], [0.0, 9.0]]))
    array([0., 1.])
    """
    points = np.asarray(points, dtype=np.float64)
    spread = float(np.linalg.norm(points - points.mean(axis=0), axis=1).max())
    if spread <= 8.0 * np.finfo(np.float64).eps * np.abs(points).max():
        return np.array(points[0])  # all the same
    z = points.mean(axis=0)
    for iteration in range(max_iter):
        if iteration % 10 == 5:
            nearest = points[int(np.argmin(np.linalg.norm(points - z, axis=1)))]
            pull, here = _pull(points, nearest, spread)
            if np.linalg.norm(pull) <= here:
                return np.array(nearest)
        moved = _vardi_zhang_step(points, z, spread)
        if np.linalg.norm(moved - z) <= tol * spread:
            return moved
        z = moved
    return np.asarray(z)


def _pull(points: FloatArray, z: FloatArray, spread: float) -> tuple[FloatArray, int]:
    """Sum of unit vectors from ``z`` to the points, and how many points lie at ``z`` itself."""
    difference = points - z
    distance = np.linalg.norm(difference, axis=1)
    away = distance > 1e-14 * spread
    pull = (difference[away] / distance[away, None]).sum(axis=0)
    return pull, int((~away).sum())


def _vardi_zhang_step(points: FloatArray, z: FloatArray, spread: float) -> FloatArray:
    distance = np.linalg.norm(points - z, axis=1)
    away = distance > 1e-14 * spread
    inverse = 1.0 / distance[away]
    average = inverse @ points[away] / inverse.sum()
    pull, here = _pull(points, z, spread)
    strength = float(np.linalg.norm(pull))
    stay = 1.0 if strength <= here else here / strength
    return np.asarray((1.0 - stay) * average + stay * z)


def component_median(points: FloatArray) -> FloatArray:
    """Median of every coordinate by itself; the first axis runs over the points."""
    return np.asarray(np.median(points, axis=0))


def median_probabilities(probabilities: FloatArray) -> FloatArray:
    """Median over models of each class's probability, scaled to sum to 1.

    Parameters
    ----------
    probabilities : array of shape (n_models, n_rows, n_classes)

    Returns
    -------
    array of shape (n_rows, n_classes)
        With two classes the medians sum to 1 by themselves. With more they can all be 0 where the
        models are certain and disagree; the mean takes their place in such a row.
    """
    medians = np.median(probabilities, axis=0)
    total = medians.sum(axis=1, keepdims=True)
    lost = total[:, 0] <= 1e-12
    if lost.any():
        medians[lost] = probabilities[:, lost].mean(axis=0)
        total[lost] = medians[lost].sum(axis=1, keepdims=True)
    return np.asarray(medians / total)


def rectified_cosines(updates: FloatArray, trusted: FloatArray) -> FloatArray:
    """Cosine between each update and the trusted one, negative ones set to 0.

    Parameters
    ----------
    updates : array of shape (n_sources, n_coordinates)
    trusted : array of shape (n_coordinates,)
    """
    sizes = np.linalg.norm(updates, axis=1) * np.linalg.norm(trusted)
    safe = sizes > 0
    cosines = np.where(safe, updates @ trusted / np.where(safe, sizes, 1.0), 0.0)
    return np.asarray(np.clip(cosines, 0.0, 1.0))


def trusted_average(updates: FloatArray, trusted: FloatArray, trust: FloatArray) -> FloatArray:
    """Average of the updates, each scaled to the length of the trusted one, weighted by trust."""
    sizes = np.linalg.norm(updates, axis=1)
    scale = np.where(sizes > 0, np.linalg.norm(trusted) / np.where(sizes > 0, sizes, 1.0), 0.0)
    return np.asarray((trust * scale) @ updates / trust.sum())


def mixture_weights(
    likelihoods: FloatArray, shares: FloatArray, *, tol: float = 1e-8, max_iter: int = 100
) -> FloatArray:
    r"""Maximum-likelihood weights of a mixture of known components.

    .. math:: \max_{\lambda \in \Delta} \sum_j s_j \log \sum_i \lambda_i p_{ij}

    A few steps of expectation-maximisation (which is exponentiated gradient with its natural step),
    then Newton's method: the simplex constraint can be replaced by :math:`- \sum_i \lambda_i` in
    the objective, whose maximiser over nonnegative vectors sums to 1 by itself, so that each
    quadratic model is a nonnegative least-squares problem (Kim et al. 2020).

    Parameters
    ----------
    likelihoods : array of shape (n_components, n_rows)
        ``p``, positive.
    shares : array of shape (n_rows,)
        ``s``; they sum to 1.
    tol : float
        Bound on the distance from the optimal mean log-likelihood: by concavity it is at most
        ``max_i sum_j s_j p_ij / (sum_k lambda_k p_kj) - 1``.
    max_iter : int
        Newton steps.

    Examples
    --------
    >>> import numpy as np
    >>> p = np.array([[0.9, 0.9, 0.1], [0.1, 0.1, 0.9]])
    >>> mixture_weights(p, np.full(3, 1 / 3)).round(3)  # by hand: 17/24 and 7/24
    array([0.708, 0.292])
    """
    used = shares > 0
    P, s = likelihoods[:, used].astype(np.float64), shares[used]
    weights = np.full(len(P), 1.0 / len(P))
    for _ in range(20):
        weights = weights * ((P * (s / (weights @ P))).sum(axis=1))
    for _ in range(max_iter):
        mixed = weights @ P
        score = P @ (s / mixed)
        if score.max() - 1.0 <= tol:
            break
        weights = _newton_mixture_step(P, s, weights, mixed, score)
    return np.asarray(weights / weights.sum())


def _newton_mixture_step(
    P: FloatArray, s: FloatArray, weights: FloatArray, mixed: FloatArray, score: FloatArray
) -> FloatArray:
    n = len(P)
    rooted = P * (np.sqrt(s) / mixed)
    H = rooted @ rooted.T
    H[np.arange(n), np.arange(n)] += 1e-10 * (1.0 + np.trace(H) / n)
    L = np.linalg.cholesky(H)
    target = np.linalg.solve(L, 2.0 * score - 1.0)
    step = nnls(L.T, target)[0] - weights
    value = s @ np.log(mixed) - weights.sum()
    slope = (score - 1.0) @ step
    length = 1.0
    for _ in range(40):
        moved = weights + length * step
        mass = moved @ P
        if mass.min() > 0 and s @ np.log(mass) - moved.sum() >= value + 1e-4 * length * slope:
            return np.asarray(moved)
        length *= 0.5
    # No progress that rounding lets through: one safe step instead.
    return np.asarray(weights * score)
