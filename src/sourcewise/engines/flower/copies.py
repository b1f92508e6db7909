"""Sites that are copies: of each other, or of the reference, under whatever names.

Two samples of one distribution differ by a known amount. Sites that differ by much less share rows.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.stats import chi2

from sourcewise.core.data import FloatArray
from sourcewise.core.discrepancy.moments import Moments, concat_moments, ridge_solution
from sourcewise.core.quadratic_sources import Derivatives

COPY_OF_SITE = "its answers are those of {other!r}, but for less than chance would make of them"
COPY_OF_REFERENCE = "its rows are copies of the reference's"
# Chance below which two sites, or a site and the reference, are too much alike to be two samples.
ALIKE = 1e-9
NEAR = 1e-2  # of the squared distance of two samples, where that is known roughly
INFINITE = float("inf")


def copies(
    names: Sequence[str], known: Derivatives, sizes: FloatArray, reference: Derivatives, size: float
) -> dict[str, str]:
    r"""Find sites whose rows are those of another, or of the reference.

    Under a strongly regularised model every row's residual is about as large, and a mean gradient
    of :math:`m` rows has about the covariance :math:`H / m`. So

    .. math:: (g_i - g_j)^\top H^{-1} (g_i - g_j) \Big/ \frac2{\max(m_i, m_j)}

    is about chi-squared for two samples of one size and distribution, larger where they differ,
    and smaller only for samples that share rows. The larger size counts: else a site that claims a
    single row would be too near to all others to be another sample, and they would be its copies.

    Parameters
    ----------
    names : sequence of str
    known, reference : Derivatives
        At the strongest regularisation first.
    sizes : array of shape (n_sources,)
    size : float
        Of the reference.
    """
    own = _as_rows(reference)[0]
    whitener = _whitener(reference.hessians[0, 0])
    variances = np.ones(len(names) + 1)
    gradients = np.concatenate([_as_rows(known), own[None]])
    return _copies(names, gradients @ whitener, variances / np.append(sizes, size), INFINITE)


def copies_by_moments(
    names: Sequence[str], known: Moments, sizes: FloatArray, reference: Moments, size: float
) -> dict[str, str]:
    r"""Find such sites by second moments, for regression.

    At one model between none and the reference's own, which leaves a residual to every row, a mean
    gradient :math:`G_i w - b_i` of :math:`m_i` rows has about the covariance :math:`s_i^2 G / m_i`,
    with the mean square :math:`s_i^2` of the residuals. As that is rough, two sites have to be ten
    times nearer than separate samples are, besides.

    Parameters
    ----------
    names : sequence of str
    known, reference : Moments
    sizes : array of shape (n_sources,)
    size : float
        Of the reference.
    """
    gram = reference.gram[0]
    model = ridge_solution(reference.gram, reference.cross, float(np.trace(gram)) / len(gram))[0]
    both = concat_moments([known, reference])
    gradients = (both.gram @ model - both.cross)[:, :, 0]
    residuals = model[:, 0] @ (gradients - both.cross[:, :, 0]).T + both.square[:, 0]
    spreads = np.maximum(residuals, 1e-300) / np.append(sizes, size)
    return _copies(names, gradients @ _whitener(gram), spreads, NEAR)


def _whitener(scale: FloatArray) -> FloatArray:
    values, vectors = np.linalg.eigh(scale)
    kept = values > 1e-6 * values.max()
    return np.asarray(vectors[:, kept] / np.sqrt(values[kept]))


def _copies(
    names: Sequence[str], points: FloatArray, spreads: FloatArray, most: float
) -> dict[str, str]:
    """Compare all points with the reference's, which is the last, and with each other."""
    freedom = points.shape[1]
    n_pairs = 0.5 * len(names) * (len(names) + 1)
    least = min(float(chi2.ppf(ALIKE / n_pairs, freedom)), most * freedom)

    def gaps(i: int, others: Sequence[int]) -> FloatArray:
        between = np.sum((points[i] - points[others]) ** 2, axis=1)
        return np.asarray(between / (2.0 * np.minimum(spreads[i], spreads[others])))

    found: dict[str, str] = {}
    first: list[int] = []
    for i, name in enumerate(names):
        if gaps(i, [-1])[0] < least:
            found[name] = COPY_OF_REFERENCE
            continue
        to_first = gaps(i, first) if first else np.array([INFINITE])
        if to_first.min() < least:
            found[name] = COPY_OF_SITE.format(other=names[first[int(to_first.argmin())]])
        else:
            first.append(i)
    return found


def _as_rows(known: Derivatives) -> FloatArray:
    """Gradients at the first point, (n_sources, n_outputs * n_features)."""
    return np.asarray(known.gradients[:, 0, :-1].swapaxes(1, 2).reshape(len(known.gradients), -1))
