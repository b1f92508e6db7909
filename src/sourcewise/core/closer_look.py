r"""What a mean loss hardly shows: a region that is labelled otherwise, numbers that scatter more.

Both compare rows of a source with held-out rows of the reference, looked at by models that have
seen neither. They end in a warning, never in a weight: natural sources differ too.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

from sourcewise.core.data import FloatArray, IntArray

# Fewer rows of either side are no ground for a test.
LEAST_ROWS = 5
TINY = 1e-9  # what rounding may leave of nothing
# Labels that scatter less than so many times as much as the reference's are nobody's concern.
MARGIN = 1.2
# Residuals count as at least this part of the typical one: the logarithm of nothing is not finite.
LEAST_RESIDUAL = 0.05


@dataclass(frozen=True)
class RegionLosses:
    """Losses of some rows, by region."""

    # (..., n_regions); number of rows, and the sums of their losses' powers.
    rows: FloatArray
    total: FloatArray
    squares: FloatArray
    cubes: FloatArray

    @classmethod
    def of(cls, losses: FloatArray, cell: IntArray, shape: tuple[int, ...]) -> RegionLosses:
        """Add up the losses of rows in each cell of an array of this shape."""
        size = int(np.prod(shape))

        def added(values: FloatArray) -> FloatArray:
            return np.bincount(cell, values, minlength=size).reshape(shape).astype(np.float64)

        return cls(added(np.ones(len(losses))), added(losses), added(losses**2), added(losses**3))


def region_test(source: RegionLosses, own: RegionLosses) -> tuple[IntArray, FloatArray]:
    r"""Ask of each source in which region its losses are most clearly larger than the reference's.

    Were a source like the reference, all ways to share out the losses of a region between the two
    would be as likely. The sum of the source's then has, over all permutations, a mean, a variance
    and a third moment that are known; Pearson's curve of type III with these (Berry and Mielke
    1983) takes the place of drawing permutations; a negative skewness, which would make far sums
    impossible, counts as none. Regions are permuted independently, so the smallest of their
    p-values :math:`p` is one of :math:`1 - (1 - p)^k`.

    Parameters
    ----------
    source : RegionLosses
        Arrays of shape (n_sources, n_regions).
    own : RegionLosses
        Of the reference, (n_regions,).

    Returns
    -------
    region : int array of shape (n_sources,)
    p_values : array of shape (n_sources,)
        1 where no region has rows enough.
    """
    n, size = source.rows, source.rows + own.rows
    enough = (n >= LEAST_ROWS) & (own.rows >= LEAST_ROWS)
    size = np.where(enough, size, 2.0 * LEAST_ROWS)
    n = np.where(enough, n, LEAST_ROWS)
    mean = (source.total + own.total) / size
    square = (source.squares + own.squares) / size
    cube = (source.cubes + own.cubes) / size
    variance = np.maximum(square - mean**2, 0.0)
    third = cube - 3.0 * mean * square + 2.0 * mean**3
    spread = np.sqrt(n * (size - n) / (size - 1.0) * variance)
    skewness = n * (size - n) * (size - 2.0 * n) / ((size - 1.0) * (size - 2.0)) * third
    enough &= spread > TINY
    spread = np.where(enough, spread, 1.0)
    off = (source.total - n * mean) / spread
    p = stats.pearson3.sf(off, np.maximum(skewness / spread**3, 0.0))
    p = np.maximum(p, np.exp(-_log_choices(size, n)))  # there are no more ways than these
    p = np.where(enough, p, 1.0)
    k = enough.sum(axis=1)
    least = np.minimum(p.min(axis=1), 1.0 - TINY)
    return np.argmin(p, axis=1), np.where(k > 0, -np.expm1(k * np.log1p(-least)), 1.0)


def _log_choices(size: FloatArray, n: FloatArray) -> FloatArray:
    found = special.gammaln(size + 1) - special.gammaln(n + 1) - special.gammaln(size - n + 1)
    return np.asarray(found)


def scatter_test(residuals: FloatArray, own: FloatArray) -> tuple[float, float]:
    """Ask whether a source's labels scatter clearly more widely around the reference's model.

    Welch's test compares the logarithms of absolute residuals around their medians, which a few
    far ones do not decide, against a ratio of ``MARGIN``.

    Returns
    -------
    ratio, p_value : float
    """
    if min(len(residuals), len(own)) < 2 * LEAST_ROWS:
        return 1.0, 1.0
    sizes = [np.abs(r - np.median(r)) for r in (residuals, own)]
    typical = float(np.median(sizes[1]))
    if typical <= 0.0:
        return 1.0, 1.0
    logs = [np.log(np.maximum(size / typical, LEAST_RESIDUAL)) for size in sizes]
    found = stats.ttest_ind(
        logs[0] - np.log(MARGIN), logs[1], equal_var=False, alternative="greater"
    )
    return float(np.exp(logs[0].mean() - logs[1].mean())), float(np.nan_to_num(found.pvalue, nan=1))


def unchecked_regions(
    shares: FloatArray, own_rows: IntArray, least: int, level: float
) -> NDArray[np.intp]:
    """Regions that have fewer than ``least`` trusted rows, and clearly too few for the sources.

    ``shares`` is the share of the sources' rows in each region. Were the reference spread as they
    are, so few of its rows would be there with a probability below ``level`` in any region.
    """
    chance = stats.binom.cdf(own_rows, int(own_rows.sum()), shares)
    return np.flatnonzero((own_rows < least) & (chance < level / len(shares)))
