r"""Sources known by their mean losses to second order around some points, and by nothing else.

A source that keeps its rows can say what its mean loss :math:`\ell_i` does near a point :math:`p`:

.. math:: \ell_i(w) \approx \ell_i(p) + g_i^\top (w - p) + \tfrac12 (w - p)^\top H_i (w - p).

Sums of such losses are what training asks of an engine (:mod:`sourcewise.core.engine`), so that the
same solver serves. Its numbers do not grow with the source's rows. Half the squared error is
quadratic: around zero, its derivatives are the source's second moments, and nothing is lost.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sourcewise.core.data import FloatArray, IntArray, SourceData
from sourcewise.core.discrepancy.moments import Moments
from sourcewise.core.engine import Engine, Question
from sourcewise.core.row_space import RowSpace
from sourcewise.core.source_curvature import weighted_curvature
from sourcewise.core.source_gradients import SourceGradients
from sourcewise.core.source_weights import GivenWeights, SourceWeights

NOTHING_TO_ASK = "Sources that are known to second order only cannot be asked questions."


@dataclass(frozen=True)
class Derivatives:
    """First and second derivatives of sources' mean losses at some points."""

    # Sums over rows of (x, label) times residual, as in :mod:`sourcewise.core.source_gradients`:
    # (n_sources, n_points, n_features + 1, n_outputs).
    gradients: FloatArray
    # (n_sources, n_points, n_outputs * n_features, the same); outputs come before features.
    hessians: FloatArray

    def at(self, points: slice) -> Derivatives:
        """Return those at some of the points."""
        return Derivatives(self.gradients[:, points], self.hessians[:, points])


def derivatives(data: SourceData, points: FloatArray, curvature: bool = True) -> Derivatives:
    """Return derivatives of every source at points of shape (n_points, n_outputs, n_features).

    Without ``curvature`` there are no points in the second ones.
    """
    at = np.ascontiguousarray(points.transpose(2, 0, 1))
    which = np.arange(len(points))
    gradients, hessians = [], []
    for i in data.untrusted:
        one = data.some(int(i), int(i) + 1)
        alone = GivenWeights(np.ones((1, len(points))))
        gradients.append(SourceGradients(one, alone)(at, which).transpose(2, 0, 1))
        curved = which if curvature else which[:0]
        hessians.append(weighted_curvature(one, alone, at, curved, curved)[0])
    return Derivatives(np.stack(gradients), np.stack(hessians))


@dataclass(frozen=True)
class QuadraticSources:
    """An engine of sources whose losses are taken as quadratic around some points."""

    points: FloatArray  # (n_points, n_outputs, n_features); of a regression zero, and nothing else
    known: Derivatives  # of every source at every point
    sizes: FloatArray
    row_counts: IntArray
    n_classes: int
    around: IntArray | int = 0  # point around which each column of the weights takes the losses

    @classmethod
    def of_moments(
        cls, moments: Moments, sizes: FloatArray, row_counts: IntArray
    ) -> QuadraticSources:
        """Take regressions' losses around zero, where moments tell everything."""
        gram, cross, square = moments.gram, moments.cross, moments.square[:, :, None]
        # Of numbers with noise, what no rows could have is left out.
        rows = rows_of_moments(np.block([[gram, cross], [cross.swapaxes(1, 2), square]]))
        whole = rows.swapaxes(1, 2) @ rows / rows.shape[1]
        known = Derivatives(-whole[:, None, :, -1:], whole[:, None, :-1, :-1])
        return cls(np.zeros((1, 1, gram.shape[1])), known, sizes, row_counts, n_classes=0)

    @property
    def exact(self) -> bool:
        """Whether the losses are quadratic: then it does not matter around which point."""
        return not self.n_classes

    def near(self, around: IntArray | int) -> QuadraticSources:
        """Return the same sources with other points for the columns."""
        return self if self.exact else replace(self, around=around)

    def and_at(self, points: FloatArray, known: Derivatives) -> QuadraticSources:
        """Return the same sources known at further points, which come behind the others."""
        both = Derivatives(
            np.concatenate([self.known.gradients, known.gradients], axis=1),
            np.concatenate([self.known.hessians, known.hessians], axis=1),
        )
        return replace(self, points=np.concatenate([self.points, points]), known=both)

    def some(self, chosen: Sequence[int]) -> QuadraticSources:
        """Return some of the sources."""
        known = Derivatives(self.known.gradients[chosen], self.known.hessians[chosen])
        return replace(
            self, known=known, sizes=self.sizes[chosen], row_counts=self.row_counts[chosen]
        )

    def ask(
        self, question: Question, sources: Sequence[int] | None = None
    ) -> Iterator[tuple[IntArray, Any]]:
        """Refuse: there are no rows to answer from."""
        raise AssertionError(NOTHING_TO_ASK)

    def weighted(self, weights: SourceWeights) -> QuadraticSums:
        """Get ready for sums under these weights."""
        return QuadraticSums(self, weights)

    def spread(self, directions: FloatArray) -> FloatArray:
        """Curvature times directions: rows that curve the loss are those that spread."""
        d = self.points.shape[2]
        own = self.known.hessians[:, 0, : d - 1, : d - 1]
        return np.asarray(np.einsum("i,ief,fr->er", self.row_counts, own, directions))

    def in_row_space(self, reference: FloatArray) -> tuple[Engine, RowSpace] | None:
        """Stay as they are."""
        return None


class QuadraticSums:
    """Sums over quadratic losses."""

    def __init__(self, sources: QuadraticSources, weights: SourceWeights):
        self.sources, self.weights = sources, weights
        self.around = np.broadcast_to(sources.around, weights.n_columns)

    def gradients(
        self, points: FloatArray, columns: IntArray, at: IntArray | None = None
    ) -> FloatArray:
        """Sum (x, label) times residual; classes' labels keep that of the points."""
        W = points if at is None else points[:, at]
        d, n_columns, k = W.shape
        known = self.sources.known
        total = np.zeros((d + 1, k, n_columns), dtype=W.dtype)
        for p, mine, used, weights in self._by_point(columns):
            off = W[:, mine].transpose(2, 0, 1) - self.sources.points[p][:, :, None]
            off = off.reshape(k * d, -1)
            bent = (known.hessians[used, p].reshape(-1, k * d) @ off).reshape(len(used), k, d, -1)
            total[..., mine] = np.einsum("iek,iq->ekq", known.gradients[used, p], weights)
            if self.sources.exact:  # of (x, label) at zero, the residual is minus the label
                total[d, 0, mine] -= np.einsum("eq,eq->q", total[:d, 0, mine], off)
            total[:d, :, mine] += np.einsum("ikdq,iq->dkq", bent, weights)
        return total

    def curvature(
        self,
        points: FloatArray,
        columns: IntArray,
        at: IntArray,
        basis: FloatArray | None = None,
        every: int = 1,
    ) -> tuple[FloatArray, FloatArray]:
        """Curvature, the same wherever a column stands."""
        d, _, k = points.shape
        whole = np.zeros((len(columns), k * d, k * d))
        for p, mine, used, weights in self._by_point(columns):
            flat = self.sources.known.hessians[used, p].reshape(len(used), -1)
            whole[mine] = (weights.T @ flat).reshape(-1, k * d, k * d)
        if basis is None:
            return whole, np.zeros((len(columns), k))
        rank = basis.shape[1]
        into = np.zeros((d, rank + 1))
        into[:-1, :-1], into[-1, -1] = basis, 1.0
        blocks = whole.reshape(-1, k, d, k, d)
        inside = np.einsum("qodpe,dr,es->qorps", blocks, into, into, optimize=True)
        own = np.einsum("qodod->qod", blocks)[..., :-1].sum(axis=2)
        own -= np.einsum("qoror->qor", inside)[..., :-1].sum(axis=2)
        size = k * (rank + 1)
        return inside.reshape(-1, size, size), np.maximum(own, 0.0) / max(d - 1 - rank, 1)

    def moments(self, columns: IntArray) -> tuple[FloatArray, FloatArray]:
        """Second moments, and those with the target: the derivatives of a regression at zero."""
        assert self.sources.exact
        zero = np.zeros((self.sources.points.shape[2], len(columns), 1))
        gram, _ = self.curvature(zero, columns, columns)
        return gram, -self.gradients(zero, columns)[:-1, 0].T

    def _by_point(self, columns: IntArray) -> Iterator[tuple[int, IntArray, IntArray, FloatArray]]:
        """Yield a point, its columns, the sources that count in any of them and their weights."""
        around = self.around[columns]
        for p in np.unique(around):
            mine = np.flatnonzero(around == p)
            weights = self.weights.of(slice(None), columns[mine])
            used = np.flatnonzero(weights.any(axis=1))
            if len(used):
                yield int(p), mine, used, weights[used]


def rows_of_moments(moments: FloatArray) -> FloatArray:
    """Rows whose mean outer product is a positive semi-definite matrix, as many as it has.

    Any square root of the matrix will do: they have nothing else in common with a source's own.
    """
    values, vectors = np.linalg.eigh(moments)
    roots = np.sqrt(np.maximum(values, 0.0) * values.shape[-1])
    return np.asarray(roots[..., :, None] * vectors.swapaxes(-1, -2))
