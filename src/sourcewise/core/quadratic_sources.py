r"""Sources known by their mean losses to second order around some points, and by nothing else.

A source that keeps its rows can say what its mean loss :math:`\ell_i` does near a point :math:`p`:

.. math:: \ell_i(w) \approx \ell_i(p) + g_i^\top (w - p) + \tfrac12 (w - p)^\top H_i (w - p).

Sums of such losses are what training asks of an engine (:mod:`sourcewise.core.engine`), so that the
same solver serves. Its numbers do not grow with the source's rows. Half the squared error is
quadratic, and then nothing is lost.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sourcewise.core.data import FloatArray, IntArray, SourceData
from sourcewise.core.engine import Engine, Question
from sourcewise.core.row_space import RowSpace
from sourcewise.core.source_curvature import weighted_curvature
from sourcewise.core.source_gradients import SourceGradients
from sourcewise.core.source_weights import GivenWeights, SourceWeights

NOTHING_TO_ASK = "Sources that are known to second order only cannot be asked questions."


@dataclass(frozen=True)
class Derivatives:
    """First and second derivatives of sources' mean losses at some points.

    Attributes
    ----------
    gradients : array of shape (n_sources, n_points, n_features + 1, n_outputs)
        Sums over rows of (x, label) times residual, as
        :class:`sourcewise.core.source_gradients.SourceGradients` defines them.
    hessians : array of shape (n_sources, n_points, n_outputs * n_features, the same)
        Outputs come before features.
    """

    gradients: FloatArray
    hessians: FloatArray


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
    """An engine of sources whose losses are taken as quadratic around some points.

    Attributes
    ----------
    points : array of shape (n_points, n_outputs, n_features)
    known : Derivatives
        Of every source at every point.
    sizes : array of shape (n_sources,)
    row_counts : int array of shape (n_sources,)
    n_classes : int
    around : int array of shape (n_columns,), or int
        Point around which each column of the weights takes the losses.
    """

    points: FloatArray
    known: Derivatives
    sizes: FloatArray
    row_counts: IntArray
    n_classes: int
    around: IntArray | int = 0

    def near(self, around: IntArray | int) -> QuadraticSources:
        """Return the same sources with other points for the columns."""
        return replace(self, around=around)

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
        """Sum (x, label) times residual; what goes with labels is as at the points."""
        W = points if at is None else points[:, at]
        d, n_columns, k = W.shape
        known = self.sources.known
        total = np.zeros((d + 1, k, n_columns), dtype=W.dtype)
        for p, mine, used, weights in self._by_point(columns):
            off = W[:, mine].transpose(2, 0, 1) - self.sources.points[p][:, :, None]
            off = off.reshape(k * d, -1)
            bent = (known.hessians[used, p].reshape(-1, k * d) @ off).reshape(len(used), k, d, -1)
            total[..., mine] = np.einsum("iek,iq->ekq", known.gradients[used, p], weights)
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
        """Refuse: second moments are not known."""
        raise AssertionError(NOTHING_TO_ASK)

    def _by_point(self, columns: IntArray) -> Iterator[tuple[int, IntArray, IntArray, FloatArray]]:
        """Yield a point, its columns, the sources that count in any of them and their weights."""
        around = self.around[columns]
        for p in np.unique(around):
            mine = np.flatnonzero(around == p)
            weights = self.weights.of(slice(None), columns[mine])
            used = np.flatnonzero(weights.any(axis=1))
            if len(used):
                yield int(p), mine, used, weights[used]
