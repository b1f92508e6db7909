r"""Gradients of weighted logistic losses, gathered source by source.

The rows of a source share one weight :math:`a_{iq}` in column :math:`q`: its part of the gradient
is :math:`a_{iq} X_i^\top (p - y)`. The product is taken with unweighted residuals of exactly those
columns in which the source counts. Rows are taken in blocks that stay in cache between the two
products: no array of the size rows x columns exists. Inside, columns are the last axis and outputs
come before them: what is summed over the outputs of a row is then summed over long runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sourcewise.core.data import FloatArray, IntArray, SourceData
from sourcewise.core.loss import label_sums, loss_of
from sourcewise.core.source_weights import SourceWeights

Residuals = Callable[[FloatArray, FloatArray], FloatArray]

BLOCK = 65536  # scores held at a time: half a megabyte stays in cache between two products
GROUP_ROWS = 512  # sources of fewer rows are taken several at a time
WIDE = 1024  # scores a row gets at a time when there are several outputs
PADDING = 1.25  # a group's longest source has at most so many times the rows of its shortest


@dataclass(frozen=True)
class SourceGroup:
    """Sources of about the same number of rows, taken together."""

    sources: IntArray  # (n,); positions among the untrusted sources
    # (n, m); rows of each source, filled up with repetitions; a slice where they follow one another
    # and are equally many.
    rows: IntArray | slice
    # (n, m); row shares, zero for what was filled up; None where all are 1 / m.
    shares: FloatArray | None
    # Whether all rows count the same in every column, so that the sources are as good as one.
    joined: bool = False

    @property
    def shape(self) -> tuple[int, int]:
        """Number of sources, and of rows in each."""
        if isinstance(self.rows, slice):
            n = 1 if self.joined else len(self.sources)
            return n, (self.rows.stop - self.rows.start) // n
        return len(self.rows), self.rows.shape[1]

    def weights(self, of_all: SourceWeights, columns: IntArray) -> FloatArray:
        """Weights of the sources in some columns; of each row where rows have no other shares."""
        weights = of_all.of(self.sources, columns)
        if self.joined:
            weights = weights.sum(axis=0, keepdims=True)
        return weights if self.shares is not None else weights / self.shape[1]


class Block(NamedTuple):
    """Rows of some sources of a group, with their labels and residuals."""

    sources: slice
    X: FloatArray
    labels: FloatArray
    P: FloatArray


class SourceGradients:
    """Sums over the untrusted sources of a pool, under given weights.

    Beside gradients, sums of each output's labels times its residuals are gathered: how much
    probability the labels did not get bounds the objective from below.
    """

    def __init__(self, data: SourceData, weights: SourceWeights):
        self.data, self.weights = data, weights
        self.loss = loss_of(data.n_classes)
        self.outputs = self.loss.outputs
        # With many scores a row, a source has work enough alone, and most columns skip most.
        self.groups = group_sources(
            data, max(1, GROUP_ROWS // self.outputs), weights.alike(data.row_counts[data.untrusted])
        )
        self.labels = self.loss.labels(data.y, data.X.dtype)
        self.counts = np.stack(
            [weights.of(g.sources).any(axis=0) for g in self.groups]
            or [np.zeros(weights.n_columns, dtype=bool)]
        )

    def __call__(
        self, points: FloatArray, columns: IntArray, at: IntArray | None = None
    ) -> FloatArray:
        """Weighted sums of (x, label) times residual.

        Parameters
        ----------
        points : array of shape (n_features, n_points, n_outputs)
        columns : int array of shape (n_columns,)
        at : int array of shape (n_columns,), optional
            Point at which each column stands. A source's sums depend on the point alone, so they
            are gathered once for each point, whatever the weights of the columns there. By
            default every column has a point of its own.

        Returns
        -------
        array of shape (n_features + 1, n_outputs, n_columns)
            Behind the features come the labels: each output's own.
        """
        if at is not None:
            return self._at_shared_points(points, columns, at)
        width = WIDE // self.outputs if self.outputs > 1 else len(columns)
        if len(columns) <= width:
            return self._of_some(points, columns)
        return np.concatenate(
            [
                self._of_some(points[:, low : low + width], columns[low : low + width])
                for low in range(0, len(columns), width)
            ],
            axis=2,
        )

    def _zeros(self, points: FloatArray, n_columns: int) -> FloatArray:
        return np.zeros((len(points) + 1, self.outputs, n_columns), dtype=points.dtype)

    def _of_some(self, points: FloatArray, columns: IntArray) -> FloatArray:
        # Most sources count under the larger trade-offs only. With columns from the emptiest to the
        # fullest, those of a source are neighbours, and few others are among them.
        counts = self.counts[:, columns]
        order = np.argsort(counts.sum(axis=0), kind="stable")
        columns, counts = columns[order], counts[:, order]
        ordered = np.ascontiguousarray(points[:, order].swapaxes(1, 2))
        total = self._zeros(points, len(columns))
        for position in np.flatnonzero(counts.any(axis=1)):
            group = self.groups[position]
            active = np.flatnonzero(counts[position])
            part = slice(active[0], active[-1] + 1)
            weights = group.weights(self.weights, columns[part]).astype(total.dtype)
            self._add(group, ordered[:, :, part], weights, total[:, :, part])
        result = np.empty_like(total)
        result[:, :, order] = total
        return result

    def _add(
        self, group: SourceGroup, points: FloatArray, weights: FloatArray, total: FloatArray
    ) -> None:
        """Add a group's weighted sums at points of shape (n_features, n_outputs, n_columns).

        Of a single source what is smaller is weighed: its rows' residuals, or its sums.
        """
        for some, X, labels, P in self._residuals(group, points.reshape(len(points), -1)):
            mine = weights[some]
            if len(mine) == 1 and len(P) < len(points):
                P.reshape(len(P), *points.shape[1:])[:] *= mine
                total += _sums(X, labels, P, 1).reshape(total.shape)
            else:
                sums = _sums(X, labels, P, len(mine))
                total += _weigh(sums.reshape(len(mine), *total.shape), mine)

    def _at_shared_points(self, points: FloatArray, columns: IntArray, at: IntArray) -> FloatArray:
        total = self._zeros(points, len(columns))
        flat = outputs_first(points)
        for position in np.flatnonzero(self.counts[:, columns].any(axis=1)):
            group = self.groups[position]
            weights = group.weights(self.weights, columns).astype(total.dtype)
            blocks = self._residuals(group, flat)
            for low, same in groupby(blocks, key=lambda block: block.sources.start):
                sums: FloatArray = np.zeros((), dtype=points.dtype)
                for some, X, labels, P in same:
                    sums = sums + _sums(X, labels, P, some.stop - low)
                shape = *sums.shape[:2], self.outputs, points.shape[1]
                total += _weigh(sums.reshape(shape)[..., at], weights[some])
        return total

    def _residuals(self, group: SourceGroup, flat: FloatArray) -> Iterator[Block]:
        """Yield blocks of a group: several whole sources, or some rows of one."""
        n, m = group.shape
        many = max(1, BLOCK // (m * flat.shape[1]))
        few = m if many > 1 else max(32, BLOCK // flat.shape[1])
        for low in range(0, n, many):
            high = min(low + many, n)
            for begin in range(0, m, few):
                rows: IntArray | slice
                if isinstance(group.rows, slice):
                    first = group.rows.start + low * m
                    rows = slice(first + begin, first + min((high - low) * m, begin + few))
                    if many > 1:
                        rows = slice(first, first + (high - low) * m)
                else:
                    rows = group.rows[low:high, begin : begin + few].ravel()
                X, labels = self.data.X[rows], self.labels[rows]
                P = self.loss.residuals(X @ flat, labels)
                if group.shares is not None:
                    shares = group.shares[low:high, begin : begin + few].reshape(-1, 1)
                    P *= shares.astype(P.dtype)
                yield Block(slice(low, high), X, labels, P)


def outputs_first(points: FloatArray) -> FloatArray:
    """Lay points of shape (n_features, n_columns, n_outputs) side by side, columns fastest."""
    return np.ascontiguousarray(points.swapaxes(1, 2)).reshape(len(points), -1)


def _sums(X: FloatArray, labels: FloatArray, P: FloatArray, n_sources: int) -> FloatArray:
    """Sum (x, label) times residual over each source of a block, (n_sources, features + 1, ...)."""
    d = X.shape[1]
    sums = np.empty((n_sources, d + 1, P.shape[1]), dtype=P.dtype)
    by_source = P.reshape(n_sources, -1, P.shape[1])
    np.matmul(X.reshape(n_sources, -1, d).transpose(0, 2, 1), by_source, out=sums[:, :d])
    sums[:, d] = label_sums(labels, P, n_sources)
    return sums


def _weigh(sums: FloatArray, weights: FloatArray) -> FloatArray:
    """Sum over the sources, (n_sources, ..., n_columns) under (n_sources, n_columns)."""
    if len(sums) == 1:
        return np.asarray(sums[0] * weights[0])
    return np.asarray(np.einsum("sekp,sp->ekp", sums, weights))


def group_sources(
    data: SourceData, rows: int = GROUP_ROWS, alike: NDArray[np.bool_] | None = None
) -> list[SourceGroup]:
    """Group sources of like size, about so many rows together; the reference is left out.

    Parameters
    ----------
    data : SourceData
    rows : int
    alike : bool array of shape (n_untrusted - 1,), optional
        Whether rows of each source and of the next count the same in every column. Such neighbours
        become one long source, and few large products take the place of many small ones.
    """
    untrusted, counts, equal = data.untrusted, data.row_counts, _equal_shares(data)
    joins = np.zeros(max(len(untrusted) - 1, 0), dtype=bool)
    if alike is not None:
        neighbours = np.diff(untrusted) == 1
        joins = alike & neighbours & equal[untrusted[1:]] & equal[untrusted[:-1]]
    groups: list[SourceGroup] = []
    rest: list[int] = []
    run: list[int] = []

    def follows(k: int) -> bool:
        i, last = untrusted[k], untrusted[run[-1]]
        return bool(i == last + 1 and counts[i] == counts[last] and equal[i])

    k = 0
    while k < len(untrusted):
        joined = 1
        while k + joined <= len(joins) and joins[k + joined - 1]:
            joined += 1
        if run and (joined > 1 or not follows(k)):
            _close_run(data, untrusted, run, groups, rest, rows)
            run = []
        if joined > 1:
            taken = slice(
                int(data.starts[untrusted[k]]), int(data.starts[untrusted[k + joined - 1] + 1])
            )
            groups.append(SourceGroup(np.arange(k, k + joined), taken, None, joined=True))
        elif equal[untrusted[k]]:
            run.append(k)
        else:
            rest.append(k)
        k += joined
    _close_run(data, untrusted, run, groups, rest, rows)
    order = np.array(sorted(rest, key=lambda k: counts[untrusted[k]]), dtype=np.intp)
    begin = 0
    for end in range(1, len(order) + 1):
        if (
            end == len(order)
            or counts[untrusted[order[end]]] > PADDING * counts[untrusted[order[begin]]]
            or (end + 1 - begin) * counts[untrusted[order[end]]] > rows
        ):
            groups.append(_padded(data, order[begin:end], untrusted[order[begin:end]]))
            begin = end
    return groups


def _equal_shares(data: SourceData) -> NDArray[np.bool_]:
    """Whether all rows of a source have the same share, for every source."""
    first = np.repeat(data.row_shares[data.starts[:-1]], data.row_counts)
    return np.logical_and.reduceat(data.row_shares == first, data.starts[:-1])


def _close_run(
    data: SourceData,
    untrusted: IntArray,
    run: list[int],
    groups: list[SourceGroup],
    rest: list[int],
    rows: int,
) -> None:
    """Turn neighbours of equal size into groups that need no copy, if they have rows enough."""
    if not run:
        return
    m = int(data.row_counts[untrusted[run[0]]])
    if len(run) * m < rows:
        rest.extend(run)
        return
    # Small groups: a column in which none of a group's sources counts skips its rows.
    many = max(1, rows // m)
    for low in range(0, len(run), many):
        part = run[low : low + many]
        first, last = untrusted[part[0]], untrusted[part[-1]]
        taken = slice(int(data.starts[first]), int(data.starts[last + 1]))
        groups.append(SourceGroup(np.array(part), taken, None))


def _padded(data: SourceData, sources: IntArray, positions: IntArray) -> SourceGroup:
    counts = data.row_counts[positions]
    position = np.arange(counts.max())
    rows = data.starts[positions, None] + np.minimum(position, counts[:, None] - 1)
    shares = np.where(position < counts[:, None], data.row_shares[rows], 0.0)
    return SourceGroup(sources, rows, shares)
