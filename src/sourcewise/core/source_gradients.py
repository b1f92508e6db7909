r"""Gradients of weighted logistic losses, gathered source by source.

The rows of a source share one weight :math:`a_{iq}` in column :math:`q`: its part of the gradient
is :math:`a_{iq} X_i^\top (p - y)`. The product is taken with unweighted residuals of exactly those
columns in which the source counts. Rows are taken in blocks that stay in cache between the two
products: no array of the size rows x columns exists. Inside, columns are the last axis and outputs
come before them: what is summed over the outputs of a row is then summed over long runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from sourcewise.core.data import FloatArray, IntArray, SourceData
from sourcewise.core.logistic import centre_outputs, n_outputs, targets
from sourcewise.core.quasi_newton import Gradient

BLOCK = 65536  # scores held at a time: half a megabyte stays in cache between two products
GROUP_ROWS = 512  # sources of fewer rows are taken several at a time
WIDE = 1024  # scores a row gets at a time when there are several outputs
PADDING = 1.25  # a group's longest source has at most so many times the rows of its shortest


@dataclass(frozen=True)
class GridProblem:
    """A grid of weightings.

    Attributes
    ----------
    data : SourceData
    weights : array of shape (n_sources, n_columns)
        ``a``: source weight times total weight.
    C : array of shape (n_columns,)
    fold : int array of shape (n_columns,)
        Row of ``reference_shares`` that a column uses.
    reference_shares : array of shape (n_folds, n_reference_rows)
        Row shares of the reference, zero where left out.
    penalty : array of shape (n_features,)
    """

    data: SourceData
    weights: FloatArray
    C: FloatArray
    fold: IntArray
    reference_shares: FloatArray
    penalty: FloatArray

    @property
    def ridge(self) -> FloatArray:
        """Penalty of each coefficient in each column, (n_features, n_columns)."""
        return np.asarray((self.penalty[:, None] / self.C).astype(self.data.X.dtype))

    def start_from(self, models: FloatArray) -> FloatArray:
        """Points (n_features, n_columns, n_outputs) from one model, or one for each setting."""
        which = np.unique(self.C, return_inverse=True)[1]
        if len(models) == 1:
            which = np.zeros_like(which)
        return centre_outputs(models.transpose(2, 0, 1)[:, which])


@dataclass(frozen=True)
class SourceGroup:
    """Sources of about the same number of rows, taken together.

    Attributes
    ----------
    sources : int array of shape (n,)
    rows : int array of shape (n, m), or slice
        Rows of each source, filled up with repetitions; a slice where they follow one another
        and are equally many.
    shares : array of shape (n, m), or None
        Row shares, zero for what was filled up; None where all are 1 / m.
    """

    sources: IntArray
    rows: IntArray | slice
    shares: FloatArray | None


class SourceGradients:
    """Gradients of a grid's data term.

    Beside those of ``x``, sums over the labels' own residuals are gathered: how much probability
    the labels did not get bounds the objective from below.
    """

    def __init__(self, problem: GridProblem):
        self.by_source = problem.weights
        problem = merge_alike(problem)
        data = problem.data
        self.problem = problem
        self.outputs = n_outputs(data.n_classes)
        # With many scores a row, a source has work enough alone, and most columns skip most.
        self.groups = group_sources(data, max(1, GROUP_ROWS // self.outputs))
        indicator = targets(data.y, data.n_classes, data.X.dtype)
        # Two classes: +1 and -1; more: the indicator of each class.
        self.labels = 2.0 * indicator - 1.0 if self.outputs == 1 else indicator
        self.counts = np.stack(
            [problem.weights[g.sources].any(axis=0) for g in self.groups]
            or [np.zeros(len(problem.C), dtype=bool)]
        )

    def __call__(self, W: FloatArray, columns: IntArray) -> Gradient:
        """Gradients of some columns at points of shape (n_features, n_columns, n_outputs)."""
        width = WIDE // self.outputs if self.outputs > 1 else len(columns)
        if len(columns) <= width:
            return self._of_some(W, columns)
        parts = [
            self._of_some(W[:, low : low + width], columns[low : low + width])
            for low in range(0, len(columns), width)
        ]
        return Gradient(
            np.concatenate([part.value for part in parts], axis=1),
            np.concatenate([part.floor for part in parts]),
        )

    def _of_some(self, W: FloatArray, columns: IntArray) -> Gradient:
        G = self._reference_sums(W, columns)
        counts = self.counts[:, columns]
        for position in np.flatnonzero(counts.any(axis=1)):
            group = self.groups[position]
            active = np.flatnonzero(counts[position])
            everywhere = len(active) == len(columns)
            for sources, sums in self._source_sums(group, W if everywhere else W[:, active]):
                weights = self.problem.weights[sources][:, columns[active]]
                if everywhere:
                    G += _weigh(sums, weights)
                else:
                    G[..., active] += _weigh(sums, weights)
        return self._finish(G)

    def of_followers(self, W: FloatArray, leader_of: IntArray, columns: IntArray) -> Gradient:
        """Gradients of columns that stand at the points ``W[:, leader_of]``.

        A source's sums depend on the point alone, so they are gathered once for each leader,
        whatever the weights of its followers.
        """
        G = self._reference_sums(W[:, leader_of], columns)
        for position in np.flatnonzero(self.counts[:, columns].any(axis=1)):
            for sources, sums in self._source_sums(self.groups[position], W):
                weights = self.problem.weights[sources][:, columns]
                G += _weigh(sums[..., leader_of], weights)
        return self._finish(G)

    def from_sums(
        self, sums: FloatArray, reference: int, W: FloatArray, columns: IntArray
    ) -> Gradient:
        """Gradients at points where the sources' sums are known, one column of them a point."""
        G = self._reference_sums(W, columns)
        weights = self.by_source[:, columns].copy()
        weights[reference] = 0.0
        return self._finish(G + _weigh(sums.swapaxes(2, 3), weights))

    def _finish(self, G: FloatArray) -> Gradient:
        d = len(G) - self.outputs
        gradient = np.ascontiguousarray(G[:d].swapaxes(1, 2))
        return Gradient(gradient, -np.einsum("kkp->p", G[d:], dtype=np.float64))

    def _source_sums(
        self, group: SourceGroup, W: FloatArray
    ) -> Iterator[tuple[IntArray, FloatArray]]:
        """Yield sources and their share-weighted sums of (x, labels) times residual.

        Sums have the shape (n_sources, n_features + n_outputs, n_outputs, n_columns).
        """
        data = self.problem.data
        d, n_columns = W.shape[:2]
        flat = _outputs_first(W)
        n = len(group.sources)
        if isinstance(group.rows, slice):
            m = (group.rows.stop - group.rows.start) // n
        else:
            m = group.rows.shape[1]
        # Blocks of several whole sources, or of some rows of one.
        many = max(1, BLOCK // (m * flat.shape[1]))
        few = m if many > 1 else max(32, BLOCK // flat.shape[1])
        for low in range(0, n, many):
            high = min(low + many, n)
            sums = np.zeros((high - low, d + self.outputs, flat.shape[1]), dtype=W.dtype)
            for begin in range(0, m, few):
                rows: IntArray | slice
                if isinstance(group.rows, slice):
                    first = group.rows.start + low * m
                    rows = slice(first + begin, first + min((high - low) * m, begin + few))
                    if many > 1:
                        rows = slice(first, first + (high - low) * m)
                else:
                    rows = group.rows[low:high, begin : begin + few].ravel()
                X = data.X[rows]
                labels = self.labels[rows]
                P = residuals(X @ flat, labels)
                if group.shares is not None:
                    shares = group.shares[low:high, begin : begin + few].reshape(-1, 1)
                    P *= shares.astype(P.dtype)
                stacked = high - low, -1
                X_t = X.reshape(*stacked, d).transpose(0, 2, 1)
                L_t = labels.reshape(*stacked, self.outputs).transpose(0, 2, 1)
                P = P.reshape(*stacked, P.shape[1])
                sums[:, :d] += np.matmul(X_t, P)
                sums[:, d:] += np.matmul(L_t, P)
            if group.shares is None:
                sums *= 1.0 / m
            yield group.sources[low:high], sums.reshape(*sums.shape[:2], self.outputs, n_columns)

    def _reference_sums(self, W: FloatArray, columns: IntArray) -> FloatArray:
        """Weighted sums over the reference's rows, each column with the shares of its fold."""
        data, problem = self.problem.data, self.problem
        rows = data.rows(data.reference)
        weights = problem.weights[data.reference, columns]
        flat = _outputs_first(W)
        sums = np.zeros((len(W) + self.outputs, flat.shape[1]), dtype=W.dtype)
        step = max(32, BLOCK // flat.shape[1])
        for low in range(rows.start, rows.stop, step):
            part = slice(low, min(low + step, rows.stop))
            X = data.X[part]
            shares = problem.reference_shares[:, part.start - rows.start : part.stop - rows.start]
            P = residuals(X @ flat, self.labels[part])
            by_column = shares.T[:, problem.fold[columns]] * weights
            P.reshape(len(P), self.outputs, -1)[:] *= by_column[:, None, :].astype(P.dtype)
            sums[: len(W)] += X.T @ P
            sums[len(W) :] += self.labels[part].T @ P
        return sums.reshape(len(sums), self.outputs, -1)


def _outputs_first(W: FloatArray) -> FloatArray:
    """Lay points of shape (n_features, n_columns, n_outputs) side by side, columns fastest."""
    return np.ascontiguousarray(W.swapaxes(1, 2)).reshape(len(W), -1)


def _weigh(sums: FloatArray, weights: FloatArray) -> FloatArray:
    if len(sums) == 1:
        return np.asarray(sums[0] * weights[0].astype(sums.dtype))
    return np.asarray(np.einsum("sekp,sp->ekp", sums, weights.astype(sums.dtype)))


def source_sums(data: SourceData, W: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Ask every source about some models of two classes.

    Parameters
    ----------
    data : SourceData
    W : array of shape (n_features, n_points, 1)

    Returns
    -------
    sums : array of shape (n_sources, n_features + 1, n_points, 1)
        Share-weighted sums over the rows of (x, label) times residual: gradients of the sources'
        mean losses, and how much probability the labels did not get.
    losses : array of shape (n_sources, n_points)
        Mean log-losses.
    """
    labels = (2.0 * data.y - 1.0).astype(data.X.dtype)[:, None]
    d, n_points, _ = W.shape
    flat = np.ascontiguousarray(W).reshape(d, n_points)
    sums = np.empty((data.n_sources, d + 1, n_points, 1), dtype=W.dtype)
    losses = np.empty((data.n_sources, n_points))
    for i, rows in enumerate(data.slices()):
        X, sign, shares = data.X[rows], labels[rows], data.row_shares[rows]
        scores = X @ flat
        P = residuals(scores, sign)
        losses[i] = shares @ np.logaddexp(0.0, -sign * scores)
        P *= shares[:, None].astype(P.dtype)
        sums[i, :d, :, 0] = X.T @ P
        sums[i, d:, :, 0] = sign.T @ P
    return sums, losses


def merge_alike(problem: GridProblem) -> GridProblem:
    """Join neighbouring sources whose rows count the same in every column.

    Where all rows are pooled that leaves the reference and one long source, and few large products
    in the place of many small ones.
    """
    data, counts = problem.data, problem.data.row_counts
    per_row = problem.weights / counts[:, None]
    alike = (per_row[1:] == per_row[:-1]).all(axis=1)
    equal = np.array([_equal_shares(data, i) for i in range(data.n_sources)])
    joins = alike & equal[1:] & equal[:-1]
    for k in (data.reference - 1, data.reference):
        if 0 <= k < len(joins):
            joins[k] = False
    if not joins.any():
        return problem
    first = np.flatnonzero(np.concatenate([[True], ~joins]))
    starts = np.append(data.starts[first], data.starts[-1])
    merged = np.diff(starts)
    rows = SourceData(
        data.X,
        data.y,
        starts,
        int(np.searchsorted(first, data.reference)),
        np.where(
            np.repeat(merged == counts[first], merged),
            data.row_shares,
            np.repeat(1 / merged, merged),
        ),
        data.n_classes,
    )
    return replace(problem, data=rows, weights=np.add.reduceat(problem.weights, first, axis=0))


def group_sources(data: SourceData, rows: int = GROUP_ROWS) -> list[SourceGroup]:
    """Group sources of like size, about so many rows together; the reference is left out."""
    counts = data.row_counts
    equal = np.array([_equal_shares(data, i) for i in range(data.n_sources)])
    groups: list[SourceGroup] = []
    rest: list[int] = []
    run: list[int] = []
    for i in range(data.n_sources):
        if run and (i == data.reference or counts[i] != counts[run[0]] or not equal[i]):
            _close_run(data, run, groups, rest, rows)
            run = []
        if i == data.reference:
            continue
        if equal[i]:
            run.append(i)
        else:
            rest.append(i)
    _close_run(data, run, groups, rest, rows)
    order = np.array(sorted(rest, key=lambda i: counts[i]), dtype=np.intp)
    begin = 0
    for end in range(1, len(order) + 1):
        if (
            end == len(order)
            or counts[order[end]] > PADDING * counts[order[begin]]
            or (end + 1 - begin) * counts[order[end]] > rows
        ):
            groups.append(_padded(data, order[begin:end]))
            begin = end
    return groups


def _equal_shares(data: SourceData, source: int) -> bool:
    shares = data.row_shares[data.rows(source)]
    return bool((shares == shares[0]).all())


def _close_run(
    data: SourceData, run: list[int], groups: list[SourceGroup], rest: list[int], rows: int
) -> None:
    """Turn neighbours of equal size into groups that need no copy, if they have rows enough."""
    if not run:
        return
    m = int(data.row_counts[run[0]])
    if len(run) * m < rows:
        rest.extend(run)
        return
    # Small groups: a column in which none of a group's sources counts skips its rows.
    many = max(1, rows // m)
    for low in range(0, len(run), many):
        part = run[low : low + many]
        taken = slice(int(data.starts[part[0]]), int(data.starts[part[-1] + 1]))
        groups.append(SourceGroup(np.array(part), taken, None))


def _padded(data: SourceData, sources: IntArray) -> SourceGroup:
    counts = data.row_counts[sources]
    position = np.arange(counts.max())
    rows = data.starts[sources, None] + np.minimum(position, counts[:, None] - 1)
    shares = np.where(position < counts[:, None], data.row_shares[rows], 0.0)
    return SourceGroup(sources, rows, shares)


def residuals(scores: FloatArray, labels: FloatArray) -> FloatArray:
    """Probability minus indicator, from scores of shape (n_rows, n_outputs * n_columns).

    Exponentials are taken in single precision, where they are several times faster. Residuals are
    right to about 1e-6 *relative* to themselves, also where they vanish because the label is all
    but certain: they are computed from the probability that the label did not get, never as a
    difference from 1. Sums, products and solutions keep the precision of ``scores``.

    Parameters
    ----------
    scores : array
    labels : array of shape (n_rows, n_outputs)
        +1 or -1 for one output, the indicator for more.
    """
    outputs = labels.shape[1]
    if outputs == 1:
        sign = labels.astype(np.float32)
        narrow = scores.astype(np.float32)
        narrow *= sign
        with np.errstate(over="ignore"):  # exp(89) is infinite in single precision, 1 / it is 0
            np.exp(narrow, out=narrow)
        narrow += 1.0
        np.divide(-sign, narrow, out=narrow)
        return np.asarray(narrow, dtype=scores.dtype)
    narrow = scores.astype(np.float32).reshape(len(scores), outputs, -1)
    narrow -= narrow.max(axis=1, keepdims=True)
    np.exp(narrow, out=narrow)
    label = np.arange(len(scores)), labels.argmax(axis=1)
    total = narrow[label]
    narrow[label] = 0.0
    missed = narrow.sum(axis=1)
    total += missed
    narrow /= total[:, None, :]
    narrow[label] = -missed / total
    return np.asarray(narrow.reshape(scores.shape), dtype=scores.dtype)
