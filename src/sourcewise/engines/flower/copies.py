"""Sites that are copies: of each other, or of the reference, under whatever names.

Two samples of one distribution differ by a known amount. Sites that differ by much less share rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy.spatial.distance import pdist
from scipy.stats import chi2

from sourcewise.core.data import FloatArray, SourceData
from sourcewise.core.discrepancy.moments import Moments, ridge_solution
from sourcewise.core.loss import loss_of
from sourcewise.core.quadratic_sources import Derivatives

COPY_OF_SITE = "its answers are those of {other!r}, but for less than chance would make of them"
COPY_OF_REFERENCE = "its rows are copies of the reference's"
# Chance below which two sites, or a site and the reference, are too much alike to be two samples.
ALIKE = 1e-9
NEAR = 1e-2  # of the squared distance of two samples, which is known roughly
SAMPLES = 400  # 79,800 pairs
MOST_ROWS = 1e12  # of a sample: beyond it chance leaves nothing


@dataclass(frozen=True)
class Trusted:
    """The reference's rows, to draw samples from."""

    X: FloatArray  # (n_rows, n_features)
    residuals: FloatArray  # (n_rows, n_outputs), of the model at which gradients are compared
    shares: FloatArray  # (n_rows,)
    size: float

    @classmethod
    def of(cls, probe: SourceData, model: FloatArray) -> Trusted:
        """Find the residuals of a model of shape (n_outputs, n_features)."""
        loss = loss_of(probe.n_classes)
        labels = loss.labels(probe.y, np.float64)
        X = np.asarray(probe.X, dtype=np.float64)
        shares = np.asarray(probe.row_shares, dtype=np.float64)
        return cls(
            X, loss.residuals(X @ model.T, labels), shares / shares.sum(), float(probe.sizes[0])
        )

    def gradients(self, shares: FloatArray) -> FloatArray:
        """Mean gradients under some shares of the rows; outputs come before features."""
        return np.concatenate([(shares * r) @ self.X for r in self.residuals.T], axis=1)

    def gaps(self, size: float) -> FloatArray:
        """Squared distances of samples of so many rows, in pairs, times that number."""
        rows = int(np.clip(np.round(size), 1, MOST_ROWS))
        drawn = np.random.default_rng(0).multinomial(rows, self.shares, SAMPLES)
        return np.asarray(rows * pdist(self.gradients(drawn / rows), "sqeuclidean"))


def copies(
    names: Sequence[str],
    known: Derivatives,
    sizes: FloatArray,
    probe: SourceData,
    model: FloatArray,
) -> dict[str, str]:
    """Find sites whose rows are those of another, or of the reference, by gradients at a model.

    It is strongly regularised, so that every row leaves a residual, and the first at which the
    sites are ``known``. ``sizes`` are the rows that sites say they have: fewer would make large
    ones look too much alike. ``probe`` is the reference. Returns a sentence for each copy.
    """
    points = known.gradients[:, 0, :-1].swapaxes(1, 2).reshape(len(names), -1)
    return _copies(names, points, np.ones(len(names)), sizes, Trusted.of(probe, model))


def copies_by_moments(
    names: Sequence[str], known: Moments, sizes: FloatArray, probe: SourceData, own: Moments
) -> dict[str, str]:
    """Find such sites by second moments, for regression.

    Gradients follow from moments, at one model between none and the reference's own, which leaves a
    residual to every row. They spread with a site's own mean squared residual. ``own`` are the
    moments of the reference.
    """
    ridge = float(np.trace(own.gram[0])) / len(own.gram[0])
    model = ridge_solution(own.gram, own.cross, ridge)[0]
    gradients = (known.gram @ model - known.cross)[:, :, 0]
    squares = (gradients - known.cross[:, :, 0]) @ model[:, 0] + known.square[:, 0]
    trusted = Trusted.of(probe, model.T)
    spreads = squares / max(float(trusted.shares @ trusted.residuals[:, 0] ** 2), 1e-300)
    return _copies(names, gradients, np.maximum(spreads, 1e-300), sizes, trusted)


def _copies(
    names: Sequence[str], points: FloatArray, spreads: FloatArray, sizes: FloatArray, own: Trusted
) -> dict[str, str]:
    r"""Compare all sites with the reference, which becomes the last one, and with each other.

    Samples of :math:`m` trusted rows, drawn with replacement, say how far apart two samples are,
    :math:`D / m` in the mean of squared distances, and with how many degrees of freedom :math:`f`,
    by their variance. So

    .. math:: \|g_i - g_j\|^2 \max(m_i, m_j) f / D

    is about chi-squared for two samples of one size and distribution, larger where they differ or
    the smaller is much smaller, and smaller only for samples that share rows. The larger size
    counts: else a site that claims a single row would be too near to all others to be another
    sample, and they would be its copies. Few rows of columns with few values are equal by chance;
    so nothing is a copy whose size lets two such samples come as near.
    """
    gaps = own.gaps(own.size)
    apart = float(gaps.mean())
    if not apart > 0.0:
        return {}
    freedom = 2.0 * apart**2 / float(gaps.var())
    n_pairs = 0.5 * len(names) * (len(names) + 1)
    least = apart * min(float(chi2.ppf(ALIKE / n_pairs, freedom)) / freedom, NEAR)
    points = np.concatenate([points, own.gradients(own.shares[None])])
    spreads, sizes = np.append(spreads, 1.0), np.append(sizes, own.size)

    @cache
    def by_chance(size: float) -> bool:
        return bool(own.gaps(size).min() < least)

    def near(i: int, others: list[int]) -> int | None:
        unit = np.minimum(spreads[i] / sizes[i], spreads[others] / sizes[others])
        gap = np.sum((points[i] - points[others]) ** 2, axis=1) / unit
        order: list[int] = np.argsort(gap, kind="stable").tolist()
        for k in order:
            if gap[k] >= least:
                break
            if not by_chance(float(min(sizes[i], sizes[others[k]]))):
                return int(others[k])
        return None

    found: dict[str, str] = {}
    first: list[int] = []
    for i, name in enumerate(names):
        other = near(i, [len(names)])
        if other is None:
            other = near(i, first)
        if other is None:
            first.append(i)
        else:
            of_site = other < len(names)
            found[name] = COPY_OF_SITE.format(other=names[other]) if of_site else COPY_OF_REFERENCE
    return found
