r"""How much each source counts: the exact solution of the paper's eq. 6.

The weights :math:`\alpha` minimise

.. math:: \sum_i \alpha_i d_i + \lambda \sqrt{\sum_i \alpha_i^2 / m_i}

on the simplex. The optimality conditions give the whole answer:
:math:`\alpha_i \propto m_i \max(\mu - d_i, 0)`, where the cut-off :math:`\mu` solves
:math:`\sum_i m_i \max(\mu - d_i, 0)^2 = \lambda^2` and is also the optimal value. One sort of the
discrepancies therefore answers every trade-off.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class WeightProblem:
    r"""One set of sources, sorted once, ready for any number of trade-offs.

    With :math:`d` sorted and :math:`k` the last source inside, a cut-off :math:`\mu = d_k + t`
    means :math:`M_k t^2 + 2 S_k t + B_k = \lambda^2` with

    .. math:: M_k = \sum_{j \le k} m_j, \quad S_k = \sum_{j \le k} m_j (d_k - d_j), \quad
              B_k = \sum_{j \le k} m_j (d_k - d_j)^2.

    All three are running sums of terms that are never negative, so nothing cancels, however large
    the discrepancies are next to their differences. :math:`\sqrt{B_k}` is the trade-off above
    which source :math:`k` counts.

    Attributes
    ----------
    discrepancies, sizes : arrays of shape (n_sources,)
        :math:`d_i` and :math:`m_i`, in the order of the caller.
    order : int array of shape (n_sources,)
        Sources by increasing discrepancy; the arrays below follow it.
    ordered : array of shape (n_sources,)
        Sorted discrepancies.
    mass, slope, entries : arrays of shape (n_sources,)
        :math:`M_k`, :math:`S_k` and :math:`\sqrt{B_k}`, the last two in multiples of `unit`.
    unit : float
        Power of two near the range of the discrepancies, so that squares stay representable.

    Examples
    --------
    >>> problem = WeightProblem.from_sources([0.0, 0.1, 0.5], [100, 300, 600])
    >>> problem.breakpoints.round(2)
    array([0.  , 1.  , 8.54])
    >>> problem.cutoffs([1.0, 4.0]).round(3)
    array([0.1 , 0.27])
    >>> problem.weights(4.0).round(3)
    array([0.346, 0.654, 0.   ])
    """

    discrepancies: Floats
    sizes: Floats
    order: NDArray[np.intp]
    ordered: Floats
    mass: Floats
    slope: Floats
    entries: Floats
    unit: float

    @classmethod
    def from_sources(cls, discrepancies: ArrayLike, sizes: ArrayLike) -> WeightProblem:
        """Check and sort the sources."""
        d, m = _check_sources(discrepancies, sizes)
        order = np.argsort(d)
        ordered = d[order]
        mass = np.cumsum(m[order])
        spread = float(ordered[-1] - ordered[0])
        unit = math.ldexp(1.0, math.frexp(spread)[1] - 1) if spread > 0 else 1.0

        gaps = np.diff(ordered)
        gaps /= unit
        slope = np.empty_like(mass)
        slope[0] = 0.0
        np.multiply(gaps, mass[:-1], out=slope[1:])
        np.cumsum(slope, out=slope)
        # B_k - B_{k-1} = gap * (S_{k-1} + S_k)
        entries = np.empty_like(mass)
        entries[0] = 0.0
        np.add(slope[:-1], slope[1:], out=entries[1:])
        entries[1:] *= gaps
        np.cumsum(entries, out=entries)
        np.sqrt(entries, out=entries)
        return cls(d, m, order, ordered, mass, slope, entries, unit)

    @property
    def breakpoints(self) -> Floats:
        r"""Trade-off above which each source counts, in the order of the caller.

        :math:`\lambda_i = \sqrt{\sum_j m_j \max(d_i - d_j, 0)^2}`.
        """
        found = np.empty_like(self.entries)
        found[self.order] = self.entries * self.unit
        return found

    def cutoffs(self, trade_offs: ArrayLike) -> Floats:
        r"""Cut-offs :math:`\mu(\lambda)`, each in :math:`O(\log N)`.

        Parameters
        ----------
        trade_offs : float or array-like
            Values of :math:`\lambda`, infinity included.

        Returns
        -------
        array of the shape of `trade_offs`
            A source counts only if its discrepancy is below the cut-off. It is also the optimal
            value of the problem.
        """
        last, rise = self._locate(_check_trade_offs(trade_offs))
        return self.ordered[last] + rise

    def support_sizes(self, trade_offs: ArrayLike) -> NDArray[np.intp]:
        """Count the sources with a positive weight at each trade-off."""
        asked = _check_trade_offs(trade_offs)
        with np.errstate(over="ignore"):
            inside = np.searchsorted(self.entries, asked / self.unit, side="left")
        tied = np.searchsorted(self.ordered, self.ordered[0], side="right")
        return np.asarray(np.maximum(inside, tied))

    def weights(self, trade_off: float) -> Floats:
        r"""Weights :math:`\alpha(\lambda)`, in the order of the caller."""
        return self._solve(float(_check_trade_offs(trade_off, one=True)))[0]

    def _locate(self, trade_offs: Floats) -> tuple[NDArray[np.intp], Floats]:
        """Find the last source inside the cut-off and how far the cut-off lies above it."""
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            asked = trade_offs / self.unit
            last = np.maximum(np.searchsorted(self.entries, asked, side="left") - 1, 0)
            entry, slope, mass = self.entries[last], self.slope[last], self.mass[last]
            # lambda^2 - B_k in factors: it neither overflows nor loses digits next to an entry.
            root = np.sqrt(np.maximum(asked - entry, 0.0)) * np.sqrt(asked + entry)
            rise = root * (root / (slope + np.hypot(slope, np.sqrt(mass) * root))) * self.unit
            # Differences between sources vanish next to a trade-off whose square overflows.
            rise = np.where(asked > 1e290, trade_offs / np.sqrt(mass), rise)
        return last, np.where(asked > 0, rise, 0.0)

    def _solve(self, trade_off: float) -> tuple[Floats, float]:
        found, found_rise = self._locate(np.asarray(trade_off))
        last, rise = float(self.ordered[found]), float(found_rise)
        lowest = float(self.ordered[0])
        if math.isinf(rise):
            return self.sizes / self.mass[-1], math.inf
        # rise + (d_k - d_i), not mu - d_i: mu rounds away a rise far smaller than d_k.
        weights = np.subtract(last, self.discrepancies)
        largest = rise + (last - lowest)
        if largest > 0:
            weights += rise
            np.maximum(weights, 0.0, out=weights)
            weights /= largest
            weights *= self.sizes
        else:
            # lambda -> 0: the sources tied for the smallest discrepancy share by size.
            np.multiply(self.discrepancies == lowest, self.sizes, out=weights)
        weights /= weights.sum()
        return weights, last + rise


@dataclass(frozen=True, eq=False)
class WeightPath:
    r"""Weights for every trade-off: how sources enter as :math:`\lambda` grows.

    Attributes
    ----------
    trade_offs : array of shape (n_trade_offs,)
        Values of :math:`\lambda`.
    weights : array of shape (n_trade_offs, n_sources)
        :math:`\alpha(\lambda)`; every row sums to 1.
    cutoffs : array of shape (n_trade_offs,)
        :math:`\mu(\lambda)`: a source counts only if its discrepancy is below it.
    support_sizes : int array of shape (n_trade_offs,)
        Number of sources that count.
    breakpoints : array of shape (n_sources,)
        Trade-off above which each source counts,
        :math:`\lambda_i = \sqrt{\sum_j m_j \max(d_i - d_j, 0)^2}`.

    Examples
    --------
    >>> import sourcewise as sw
    >>> path = sw.weight_path([0.0, 0.1], [100, 100], [0.5, 2.0])
    >>> path.support_sizes
    array([1, 2])
    >>> path.weights.sum(axis=1)
    array([1., 1.])
    """

    trade_offs: Floats
    weights: Floats
    cutoffs: Floats
    support_sizes: NDArray[np.intp]
    breakpoints: Floats


@overload
def solve_weights(
    discrepancies: ArrayLike,
    sizes: ArrayLike,
    trade_off: float,
    *,
    return_cutoff: Literal[False] = False,
) -> Floats: ...
@overload
def solve_weights(
    discrepancies: ArrayLike,
    sizes: ArrayLike,
    trade_off: float,
    *,
    return_cutoff: Literal[True],
) -> tuple[Floats, float]: ...
def solve_weights(
    discrepancies: ArrayLike,
    sizes: ArrayLike,
    trade_off: float,
    *,
    return_cutoff: bool = False,
) -> Floats | tuple[Floats, float]:
    r"""Weigh sources by how different and how large they are, exactly.

    Minimises :math:`\sum_i \alpha_i d_i + \lambda \sqrt{\sum_i \alpha_i^2 / m_i}` (paper, eq. 6)
    over weights :math:`\alpha` that are not negative and sum to 1. The solution is
    :math:`\alpha_i \propto m_i \max(\mu - d_i, 0)`, where the cut-off :math:`\mu` solves
    :math:`\sum_i m_i \max(\mu - d_i, 0)^2 = \lambda^2`.

    Parameters
    ----------
    discrepancies : array-like of shape (n_sources,)
        :math:`d_i`: how different each source is from the reference, whose own value is 0.
    sizes : array-like of shape (n_sources,)
        :math:`m_i`: rows, or effective rows, of each source.
    trade_off : float
        :math:`\lambda`. At 0 the source with the smallest discrepancy takes everything (ties
        share by size); at infinity every row counts the same, :math:`\alpha_i = m_i / m`.
    return_cutoff : bool, default=False
        Return :math:`\mu` as well.

    Returns
    -------
    weights : array of shape (n_sources,)
        :math:`\alpha`, summing to 1.
    cutoff : float
        :math:`\mu`, only if `return_cutoff`. A source counts only if its discrepancy is below
        it; it is also the optimal value, and infinite at an infinite trade-off.

    Examples
    --------
    A small reference, a large source much like it, and one that is far off:

    >>> weights, cutoff = solve_weights([0.0, 0.1, 0.5], [100, 300, 600], 4.0, return_cutoff=True)
    >>> weights.round(3)
    array([0.346, 0.654, 0.   ])
    >>> round(cutoff, 3)
    0.27
    >>> solve_weights([0.0, 0.1, 0.5], [100, 300, 600], float("inf"))
    array([0.1, 0.3, 0.6])
    """
    problem = WeightProblem.from_sources(discrepancies, sizes)
    weights, cutoff = problem._solve(float(_check_trade_offs(trade_off, one=True)))
    return (weights, cutoff) if return_cutoff else weights


def counted_sizes(sizes: NDArray[Any], size_cap: float, trusted: float) -> NDArray[Any]:
    """Rows that sources count for: at most ``size_cap`` times the trusted ones.

    No source's count depends on another's, so that names cost and gain nothing.
    """
    return np.asarray(np.minimum(sizes, size_cap * trusted))


def weight_path(
    discrepancies: ArrayLike, sizes: ArrayLike, trade_offs: ArrayLike | None = None
) -> WeightPath:
    r"""Weights for many trade-offs from one sort of the sources.

    Parameters
    ----------
    discrepancies, sizes : array-like of shape (n_sources,)
        :math:`d_i` and :math:`m_i`, as in `solve_weights`.
    trade_offs : array-like of shape (n_trade_offs,), optional
        Values of :math:`\lambda`, in any order. By default 0, 62 values evenly spaced in
        logarithm from below the first entry of a source to where differences between sources
        hardly matter, and infinity.

    Returns
    -------
    WeightPath

    Notes
    -----
    The weights take ``n_trade_offs * n_sources`` numbers. For millions of sources build a
    `WeightProblem` and ask it for one trade-off at a time.

    Examples
    --------
    >>> path = weight_path([0.0, 0.1, 0.5], [100, 300, 600], [0.0, 4.0, 20.0])
    >>> path.weights.round(3)
    array([[1.   , 0.   , 0.   ],
           [0.346, 0.654, 0.   ],
           [0.155, 0.416, 0.429]])
    >>> path.support_sizes
    array([1, 2, 3])
    >>> path.breakpoints.round(2)
    array([0.  , 1.  , 8.54])
    """
    problem = WeightProblem.from_sources(discrepancies, sizes)
    if trade_offs is None:
        asked = _default_trade_offs(problem)
    else:
        asked = np.atleast_1d(_check_trade_offs(trade_offs))
        if asked.ndim != 1:
            raise ValueError(f"Trade-offs must be a list of numbers; got {asked.ndim} dimensions.")
    weights = np.empty((len(asked), len(problem.sizes)))
    cutoffs = np.empty(len(asked))
    for row, trade_off in enumerate(asked):
        weights[row], cutoffs[row] = problem._solve(float(trade_off))
    return WeightPath(asked, weights, cutoffs, problem.support_sizes(asked), problem.breakpoints)


def theory_trade_off(delta: float = 0.05, loss_bound: float = 1.0) -> float:
    r"""Trade-off of Theorem 1 itself, which needs no cross-validation.

    Half the bound of Theorem 1 without the complexities is eq. 6 with
    :math:`\lambda = 3 \sqrt{\log(4 / \delta) M^2 / 2}`.

    Parameters
    ----------
    delta : float, default=0.05
        :math:`\delta`: the bound may fail with this probability.
    loss_bound : float, default=1.0
        :math:`M`: the largest value the loss can take.

    Returns
    -------
    float

    Examples
    --------
    >>> round(theory_trade_off(), 3)
    4.441
    """
    if not 0 < delta < 1:
        raise ValueError(f"delta must lie strictly between 0 and 1; got {delta}.")
    if not 0 < loss_bound < math.inf:
        raise ValueError(f"loss_bound must be positive and finite; got {loss_bound}.")
    return 3.0 * loss_bound * math.sqrt(math.log(4.0 / delta) / 2.0)


def _default_trade_offs(problem: WeightProblem) -> Floats:
    entries = problem.entries[problem.entries > 0] * problem.unit
    if len(entries):
        spread = problem.ordered[-1] - problem.ordered[0]
        # From here on no slack mu - d_i is more than about 1% below another.
        low, high = entries[0] / 10, 100 * spread * math.sqrt(problem.mass[-1])
    else:
        low = high = theory_trade_off()
    return np.concatenate([[0.0], np.geomspace(low, high, 62), [np.inf]])


def _check_sources(discrepancies: ArrayLike, sizes: ArrayLike) -> tuple[Floats, Floats]:
    """Return both as float64 vectors, or say which source is wrong."""
    d = np.asarray(discrepancies, dtype=np.float64)
    m = np.asarray(sizes, dtype=np.float64)
    if d.ndim != 1 or m.ndim != 1 or len(d) != len(m):
        raise ValueError(
            "Discrepancies and sizes must be two lists of the same length, one number a source; "
            f"got shapes {d.shape} and {m.shape}."
        )
    if len(d) == 0:
        raise ValueError("There are no sources to weigh: discrepancies and sizes are empty.")
    # A minimum and a maximum carry NaN along and need no array of their own.
    if not (d.min() >= 0 and d.max() < np.inf):
        bad = int(np.argmin((d >= 0) & (d < np.inf)))
        raise ValueError(
            f"Discrepancies must be finite and not negative; source {bad} has {d[bad]}."
        )
    if not (m.min() > 0 and m.max() < np.inf):
        bad = int(np.argmin((m > 0) & (m < np.inf)))
        raise ValueError(f"Sizes must be positive and finite; source {bad} has {m[bad]}.")
    return d, m


def _check_trade_offs(trade_offs: ArrayLike, *, one: bool = False) -> Floats:
    asked = np.asarray(trade_offs, dtype=np.float64)
    if one and asked.ndim:
        raise ValueError("The trade-off must be one number; weight_path takes several.")
    if not (asked >= 0).all():
        bad = asked[~(asked >= 0)].flat[0]
        raise ValueError(f"A trade-off must be 0 or more, or infinity; got {bad}.")
    return asked
