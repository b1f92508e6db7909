"""A quadratic, convex or not, minimised exactly over a ball."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sourcewise.core.data import FloatArray

# Newton climbs monotonically and quadratically; a dozen steps are typical.
_MAX_STEPS = 100

# Relative size of what rounding leaves of a number that is zero in exact arithmetic.
_ROUNDING = 1e-12


def minimise_quadratic_on_ball(
    A: FloatArray, c: FloatArray, radius: float | FloatArray
) -> tuple[FloatArray, FloatArray]:
    r"""Minimise :math:`w^\top A w - 2 c^\top w` over :math:`\|w\| \le r`, for a stack of problems.

    ``w`` is a global minimiser exactly when there is a multiplier :math:`\mu \ge 0` with
    :math:`(A + \mu I) w = c`, :math:`A + \mu I \succeq 0` and :math:`\mu (r - \|w\|) = 0`
    [1]_. In the eigenbasis of ``A`` that is one scalar equation, :math:`\|w(\mu)\| = r`. Newton's
    method on :math:`1 / \|w(\mu)\|`, which is concave and increasing, approaches its root from
    the left without ever passing it. When :math:`c` has no part along the lowest eigenvector the
    equation may have no root (the *hard case*); what is missing to the sphere is then walked
    along that eigenvector. Where several models are minimisers because neither ``A`` nor ``c`` has
    a part along a direction, the shortest of them is taken.

    Parameters
    ----------
    A : array of shape (n, n_features, n_features)
        Symmetric, not necessarily definite.
    c : array of shape (n, n_features)
    radius : float or array of shape (n,)

    Returns
    -------
    w : array of shape (n, n_features)
    value : array of shape (n,)

    References
    ----------
    .. [1] A. R. Conn, N. I. M. Gould and P. L. Toint, *Trust-Region Methods*, SIAM, 2000,
       chapter 7.

    Examples
    --------
    >>> import numpy as np
    >>> A = np.diag([-1.0, 2.0])[None]
    >>> w, value = minimise_quadratic_on_ball(A, np.array([[0.5, 0.0]]), 1.0)
    >>> w.round(6).tolist(), value.tolist()
    ([[1.0, 0.0]], [-2.0])
    """
    values, vectors = np.linalg.eigh(A)
    slope = np.einsum("nij,ni->nj", vectors, c)
    # Along a direction that changes nothing, rounding must not choose how far to go.
    flat = _negligible(values)
    values = np.where(flat, 0.0, values)
    slope = np.where(flat & _negligible(slope), 0.0, slope)
    r = np.broadcast_to(np.asarray(radius, dtype=np.float64), len(A))[:, None]
    lowest = values[:, :1]
    # Measuring the multiplier from the lowest eigenvalue keeps full precision near the hard case.
    gaps = values - lowest
    # No coordinate of w may exceed the radius: either |w| >= r here, or this is the answer.
    at_least = np.max(_divide(np.abs(slope), r) - gaps, axis=1, keepdims=True)
    shift = np.maximum(np.maximum(lowest, 0.0), at_least)
    z = _divide(slope, gaps + shift)
    norm = _norm(z)
    climbing = (norm > r) & (r > 0.0)
    for _ in range(_MAX_STEPS):
        curvature = np.sum(_divide(z**2, gaps + shift), axis=1, keepdims=True)
        step = np.where(climbing, _divide(norm**2 * (_divide(norm, r) - 1.0), curvature), 0.0)
        climbing &= step > 1e-15 * shift
        if not climbing.any():
            break
        shift = shift + np.where(climbing, step, 0.0)
        z = _divide(slope, gaps + shift)
        norm = _norm(z)
    # Newton stops a rounding error outside the sphere.
    z = np.where(norm > r, z * _divide(r, norm), z)
    missing = np.sqrt(np.maximum(r**2 - np.sum(z**2, axis=1, keepdims=True), 0.0))
    hard = (lowest < 0.0) & (shift == 0.0)
    z[:, :1] += np.where(hard, missing, 0.0)
    value = np.sum(z * (values * z - 2.0 * slope), axis=1)
    return np.einsum("nij,nj->ni", vectors, z), value


def _negligible(coordinates: FloatArray) -> NDArray[np.bool_]:
    """Tell which coordinates are zero next to the largest of their problem."""
    size = np.abs(coordinates)
    return np.asarray(size <= _ROUNDING * size.max(axis=1, keepdims=True))


def _divide(numerator: FloatArray, denominator: FloatArray) -> FloatArray:
    """Divide with 0 / 0 = 0: a coordinate without slope stays where it is."""
    out = np.zeros(np.broadcast_shapes(numerator.shape, denominator.shape))
    return np.asarray(np.divide(numerator, denominator, out=out, where=denominator > 0.0))


def _norm(z: FloatArray) -> FloatArray:
    return np.asarray(np.linalg.norm(z, axis=1, keepdims=True))
