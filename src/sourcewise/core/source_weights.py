r"""How much every source counts in every column of a grid, without a table of all of them.

A trade-off :math:`\lambda` weighs source :math:`i` by :math:`m_i \max(\mu - d_i, 0)` up to a factor
(:mod:`sourcewise.core.weights`). A column of a grid is therefore three numbers: its cut-off
:math:`\mu`, the set of discrepancies it goes by (measured on the whole reference, or without one of
its folds) and a scale. Whoever holds a source's rows works out the source's weights from these.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sourcewise.core.data import FloatArray, IntArray
from sourcewise.core.weights import WeightProblem

# Cut-off of the trade-off 0: only sources at distance 0 are below it.
LEAST_CUTOFF = 1e-200
BLOCK_ENTRIES = 1_000_000  # weights held at a time where all of them are looked at


class SourceWeights(Protocol):
    """Weights of some sources in some columns."""

    @property
    def n_sources(self) -> int:
        """Number of sources."""

    @property
    def n_columns(self) -> int:
        """Number of columns."""

    def of(self, sources: Any, columns: Any = ...) -> FloatArray:
        """Weights of some sources in some columns, (n_sources, n_columns)."""

    def in_columns(self, columns: Any) -> SourceWeights:
        """Weights of the same sources in some of the columns."""

    def of_sources(self, sources: Any) -> SourceWeights:
        """Weights of some of the sources in the same columns."""

    def scaled(self, factors: FloatArray) -> SourceWeights:
        """Weights times a factor for each column."""

    def alike(self, row_counts: IntArray) -> NDArray[np.bool_]:
        """Whether rows of each source and of the next count the same in every column."""

    def keys(self) -> FloatArray:
        """Rows of numbers, (n_columns, ...), equal where the columns' weights are."""


@dataclass(frozen=True)
class CutoffWeights:
    r"""Weights :math:`a_{iq} = c_q \, m_i \max(\mu_q - d_{s_q i}, 0)`."""

    discrepancies: FloatArray  # (n_sets, n_sources); d_{si}
    sizes: FloatArray  # (n_sources,); m_i
    sets: IntArray  # (n_columns,); s_q
    # (n_columns,); mu_q. Where it is infinite, the weight is c_q m_i.
    cutoffs: FloatArray
    scales: FloatArray  # (n_columns,); c_q

    @property
    def n_sources(self) -> int:
        """Number of sources."""
        return len(self.sizes)

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return len(self.sets)

    def of(self, sources: Any, columns: Any = slice(None)) -> FloatArray:
        """Weights of some sources in some columns, (n_sources, n_columns)."""
        cutoffs, scales = self.cutoffs[columns], self.scales[columns]
        slack = cutoffs - self.discrepancies[:, sources].T[:, self.sets[columns]]
        np.maximum(slack, 0.0, out=slack)
        slack[:, np.isinf(cutoffs)] = 1.0
        slack *= scales
        slack *= self.sizes[sources, None]
        return np.asarray(slack)

    def in_columns(self, columns: Any) -> CutoffWeights:
        """Weights of the same sources in some of the columns."""
        return replace(
            self,
            sets=self.sets[columns],
            cutoffs=self.cutoffs[columns],
            scales=self.scales[columns],
        )

    def of_sources(self, sources: Any) -> CutoffWeights:
        """Weights of some of the sources in the same columns."""
        return replace(
            self, discrepancies=self.discrepancies[:, sources], sizes=self.sizes[sources]
        )

    def scaled(self, factors: FloatArray) -> CutoffWeights:
        """Weights times a factor for each column."""
        return replace(self, scales=self.scales * factors)

    def alike(self, row_counts: IntArray) -> NDArray[np.bool_]:
        """Whether rows of each source and of the next count the same in every column.

        Discrepancies of two sources are never quite equal, so this is for columns of all rows.
        """
        per_row = self.sizes / row_counts
        return np.asarray(np.isinf(self.cutoffs).all() & (per_row[1:] == per_row[:-1]))

    def keys(self) -> FloatArray:
        """Rows of numbers, (n_columns, 3), equal where the columns' weights are."""
        return np.column_stack([self.sets, self.cutoffs, self.scales])


@dataclass(frozen=True)
class GivenWeights:
    """Weights that follow no rule, source by source."""

    values: FloatArray  # (n_sources, n_columns)

    @property
    def n_sources(self) -> int:
        """Number of sources."""
        return len(self.values)

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return int(self.values.shape[1])

    def of(self, sources: Any, columns: Any = slice(None)) -> FloatArray:
        """Weights of some sources in some columns, (n_sources, n_columns)."""
        return np.asarray(self.values[sources][:, columns])

    def in_columns(self, columns: Any) -> GivenWeights:
        """Weights of the same sources in some of the columns."""
        return GivenWeights(self.values[:, columns])

    def of_sources(self, sources: Any) -> GivenWeights:
        """Weights of some of the sources in the same columns."""
        return GivenWeights(self.values[sources])

    def scaled(self, factors: FloatArray) -> GivenWeights:
        """Weights times a factor for each column."""
        return GivenWeights(self.values * factors)

    def alike(self, row_counts: IntArray) -> NDArray[np.bool_]:
        """Whether rows of each source and of the next count the same in every column."""
        per_row = self.values / row_counts[:, None]
        return np.asarray((per_row[1:] == per_row[:-1]).all(axis=1))

    def keys(self) -> FloatArray:
        """Rows of numbers, (n_columns, n_sources), equal where the columns' weights are."""
        return self.values.T


def cutoff_and_scale(problem: WeightProblem, trade_off: float) -> tuple[float, float]:
    r"""Cut-off :math:`\mu` and factor :math:`c` with :math:`\alpha_i = c\,m_i \max(\mu - d_i, 0)`.

    One source of the problem, the reference, is at distance 0. Trade-offs that leave the others
    without any weight all have the same answer, so that equal weights have equal numbers.
    """
    cutoff = float(problem.cutoffs(trade_off))
    if np.isinf(cutoff):
        return cutoff, 1.0 / float(problem.mass[-1])
    if problem.support_sizes(trade_off) <= np.count_nonzero(problem.ordered == 0.0):
        cutoff = LEAST_CUTOFF
    slack = np.maximum(cutoff - problem.discrepancies, 0.0)
    return cutoff, 1.0 / float(problem.sizes @ slack)


def source_blocks(n_sources: int, n_columns: int) -> Sequence[slice]:
    """Split sources so that a table of their weights in all columns stays small."""
    step = max(1, BLOCK_ENTRIES // max(n_columns, 1))
    return [slice(low, min(low + step, n_sources)) for low in range(0, n_sources, step)]


def rows_in_use(weights: SourceWeights, row_counts: IntArray) -> IntArray:
    """Rows of the sources that count in each column."""
    rows = np.zeros(weights.n_columns, dtype=np.intp)
    for some in source_blocks(weights.n_sources, weights.n_columns):
        rows += row_counts[some] @ (weights.of(some) > 0)
    return rows


def share_gaps(
    weights: SourceWeights,
    of_reference: FloatArray,
    first: IntArray,
    second: IntArray,
) -> FloatArray:
    """L1 distance of shares in the total weight, between columns: (len(first), len(second)).

    ``of_reference`` is the reference's weight in every column.
    """
    totals = of_reference.astype(np.float64)
    blocks = source_blocks(weights.n_sources, weights.n_columns)
    for some in blocks:
        totals = totals + weights.of(some).sum(axis=0)
    own = of_reference / totals
    gaps = np.abs(own[first, None] - own[second])
    for some in blocks:
        shares = weights.of(some) / totals
        for k, q in enumerate(first):
            gaps[k] += np.abs(shares[:, [q]] - shares[:, second]).sum(axis=0)
    return np.asarray(gaps)
