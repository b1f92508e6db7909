"""The one shape in which labelled sources reach the mathematics."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.floating]
IntArray = NDArray[np.intp]


@dataclass(frozen=True)
class SourceData:
    """Rows grouped by source, so that every source is one contiguous slice."""

    # (n_rows, n_features); features; the rows of source ``i`` are ``starts[i]:starts[i + 1]``.
    X: FloatArray
    # (n_rows,); class codes ``0 .. n_classes - 1``, or real targets when ``n_classes`` is 0.
    y: Any  # class codes or real targets: integers or floats
    # (n_sources + 1,); where each source begins, and the number of rows at the end.
    starts: IntArray
    reference: int  # position of the trusted source, -1 where it is not among these
    # (n_rows,); how much a row counts within its source; they sum to 1 in each source (``1 / m_i``
    # unless rows carry sample weights)
    row_shares: FloatArray
    n_classes: int  # number of classes, 0 for regression
    # (n_sources,); rows of each source that were left out because they repeat trusted ones, where
    # rows are first mapped and somebody looked.
    copies: IntArray | None = None

    @property
    def n_sources(self) -> int:
        """Number of sources, the reference included."""
        return len(self.starts) - 1

    @property
    def row_counts(self) -> IntArray:
        """Rows of each source."""
        return np.diff(self.starts)

    @property
    def sizes(self) -> FloatArray:
        """Effective sizes ``m_i = 1 / sum_j share_j^2``.

        McDiarmid's inequality in the proof of Theorem 1 sees a row through the square of its
        share, so this is the size the bound asks for. Without sample weights it is the number of
        rows.
        """
        squares = np.add.reduceat(self.row_shares.astype(np.float64) ** 2, self.starts[:-1])
        return np.asarray(1.0 / squares)

    @property
    def reference_shares(self) -> FloatArray:
        """How much each row of the reference counts."""
        return self.row_shares[self.rows(self.reference)]

    @property
    def untrusted(self) -> IntArray:
        """Positions of all sources but the reference."""
        positions = np.arange(self.n_sources)
        return np.asarray(positions[positions != self.reference])

    @property
    def source_of_row(self) -> IntArray:
        """Position of each row's source."""
        return np.repeat(np.arange(self.n_sources), self.row_counts)

    def rows(self, source: int) -> slice:
        """Rows of one source."""
        return slice(int(self.starts[source]), int(self.starts[source + 1]))

    @property
    def untrusted_runs(self) -> tuple[slice, ...]:
        """Rows before and after the reference's."""
        if self.reference < 0:
            return (slice(0, len(self.y)),)
        own = self.rows(self.reference)
        return slice(0, own.start), slice(own.stop, len(self.y))

    def rows_of(self, sources: Sequence[int] | IntArray) -> IntArray:
        """Rows of some sources, one after the other."""
        parts = [np.arange(self.starts[i], self.starts[i + 1]) for i in sources]
        return np.concatenate([np.arange(0), *parts])

    def slices(self) -> Iterator[slice]:
        """Rows of every source in turn."""
        return (self.rows(i) for i in range(self.n_sources))

    def some(self, first: int, last: int) -> SourceData:
        """Return the sources from ``first`` up to ``last``, without copying a row."""
        rows = slice(int(self.starts[first]), int(self.starts[last]))
        return SourceData(
            self.X[rows],
            self.y[rows],
            self.starts[first : last + 1] - self.starts[first],
            self.reference - first if first <= self.reference < last else -1,
            self.row_shares[rows],
            self.n_classes,
        )

    def select(self, sources: Sequence[int]) -> SourceData:
        """Return some sources in the order asked for."""
        positions = [int(i) for i in sources]
        if positions == list(range(self.n_sources)):
            return self
        rows = self.rows_of(positions)
        counts = self.row_counts[positions]
        return SourceData(
            self.X[rows],
            self.y[rows],
            np.concatenate([[0], np.cumsum(counts)]).astype(np.intp),
            positions.index(self.reference) if self.reference in positions else -1,
            self.row_shares[rows],
            self.n_classes,
        )

    def with_features(self, X: FloatArray) -> SourceData:
        """Return the same rows under other features."""
        return replace(self, X=X)


@dataclass(frozen=True)
class ReferenceRows:
    """Rows of the trusted source, which are where the fit is done."""

    X: FloatArray  # (n_rows, n_features)
    y: Any  # (n_rows,); class codes, or real targets when ``n_classes`` is 0
    shares: FloatArray  # (n_rows,); how much a row counts; they sum to 1
    n_classes: int

    @classmethod
    def of(cls, data: SourceData) -> ReferenceRows:
        """Take the reference's rows out of a pool of sources."""
        rows = data.rows(data.reference)
        return cls(data.X[rows], data.y[rows], data.row_shares[rows], data.n_classes)

    def as_data(self) -> SourceData:
        """Return a pool of this source alone."""
        starts = np.array([0, len(self.y)], dtype=np.intp)
        return SourceData(self.X, self.y, starts, 0, self.shares, self.n_classes)

    @property
    def size(self) -> float:
        """Effective size ``m_T = 1 / sum_j share_j^2``."""
        return float(1.0 / np.sum(self.shares**2))

    def with_features(self, X: FloatArray) -> ReferenceRows:
        """Return the same rows under other features."""
        return replace(self, X=X)


def concat_sources(parts: Sequence[SourceData]) -> SourceData:
    """Put sources behind one another; none of them is the reference."""
    counts = np.concatenate([part.row_counts for part in parts])
    return replace(
        parts[0],
        X=np.concatenate([part.X for part in parts]),
        y=np.concatenate([part.y for part in parts]),
        starts=np.concatenate([[0], np.cumsum(counts)]).astype(np.intp),
        row_shares=np.concatenate([part.row_shares for part in parts]),
    )


def group_rows(
    X: FloatArray,
    y: NDArray[np.generic],
    source_of_row: IntArray,
    *,
    reference: int,
    n_classes: int,
    sample_weight: FloatArray | None = None,
) -> tuple[SourceData, IntArray]:
    """Group rows by source, keeping their order within a source.

    Returns
    -------
    data : SourceData
    order : int array of shape (n_rows,)
        Row ``k`` of ``data`` is row ``order[k]`` of the input.
    """
    order = np.argsort(source_of_row, kind="stable")
    if (order[1:] > order[:-1]).all():
        order = np.arange(len(order))
    else:
        X, y = X[order], y[order]
    counts = np.bincount(source_of_row)
    starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.intp)
    if sample_weight is None:
        shares = np.repeat(1.0 / counts, counts)
    else:
        weight = sample_weight[order].astype(np.float64)
        shares = weight / np.repeat(np.add.reduceat(weight, starts[:-1]), counts)
    return SourceData(X, y, starts, reference, shares, n_classes), order
