"""Sources whose rows are in this process's memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from sourcewise.core.data import FloatArray, IntArray, SourceData
from sourcewise.core.engine import Arrays, Message, Question
from sourcewise.core.row_space import RowSpace, saves_coordinates
from sourcewise.core.source_curvature import (
    spread_rows,
    weighted_curvature,
    weighted_moments,
)
from sourcewise.core.source_gradients import SourceGradients
from sourcewise.core.source_weights import SourceWeights
from sourcewise.core.sparse_gradients import SparseGradients
from sourcewise.core.sparse_rows import SparseRows, stack_rows
from sourcewise.core.sparse_span import MOST_ROWS

MANY_ROWS = 1000  # beyond, products of all pairs of rows are dear
BLOCK_ROWS = 4096  # rows that a question is asked of at a time, or one source
MODEL_ENTRIES = 16_000_000  # rows times features of sparse rows asked at a time, or one source


@dataclass(frozen=True)
class MemorySources:
    """The untrusted sources of a pool whose rows are all here."""

    data: SourceData  # rows of all sources; the reference may be among them, and is passed over
    names: Sequence[Any]  # of the untrusted sources

    @cached_property
    def sizes(self) -> FloatArray:
        """Effective rows of every source."""
        return self.data.sizes[self.data.untrusted]

    @cached_property
    def row_counts(self) -> IntArray:
        """Rows of every source."""
        return self.data.row_counts[self.data.untrusted]

    @property
    def n_classes(self) -> int:
        """Number of classes, 0 for regression."""
        return self.data.n_classes

    def ask(
        self, question: Question, sources: Sequence[int] | None = None
    ) -> Iterator[tuple[IntArray, Arrays]]:
        """Ask some sources (by default all); yields positions and findings."""
        asked = np.arange(len(self.names)) if sources is None else np.asarray(sources, np.intp)
        message = question.message
        for some in self._blocks(asked, message.rows_beside):
            yield some, question.judge(self._answer(message, some))

    def _answer(self, message: Message, some: IntArray) -> Arrays:
        first, last = self.data.untrusted[some[[0, -1]]]
        names = [self.names[k] for k in some]
        return message.answer(self.data.some(int(first), int(last) + 1), names)

    def _blocks(self, asked: IntArray, rows_beside: int) -> Iterator[IntArray]:
        """Split sources into neighbours of at most `BLOCK_ROWS` rows together, or one source."""
        positions = self.data.untrusted[asked]
        start, rows = 0, 0
        most = BLOCK_ROWS
        if isinstance(self.data.X, SparseRows):  # whose models are larger than the rows
            most = min(most, MODEL_ENTRIES // self.data.X.shape[1])
        for k, count in enumerate(self.row_counts[asked] + rows_beside):
            apart = k > 0 and positions[k] != positions[k - 1] + 1
            if rows and (apart or rows + count > most):
                yield asked[start:k]
                start, rows = k, 0
            rows += int(count)
        if rows:
            yield asked[start:]

    def weighted(self, weights: SourceWeights) -> MemorySums:
        """Get ready to answer for sums under these weights."""
        return MemorySums(self.data, weights)

    def spread(self, directions: FloatArray) -> FloatArray:
        """Sum over all rows of ``x (x' q)`` for some directions, the constant left out."""
        return spread_rows(self.data, directions)

    def in_row_space(self, reference: FloatArray) -> tuple[MemorySources, RowSpace] | None:
        """Return the sources in coordinates of the span of all rows, if that saves any."""
        if not worth_row_space(len(reference) + int(self.row_counts.sum()), reference):
            return None
        data = self.data.select(self.data.untrusted.tolist())
        space = RowSpace.of(stack_rows([reference, data.X]))
        rows = data.with_features(space.X[len(reference) :])
        return MemorySources(rows, self.names), RowSpace(space.X[: len(reference)], space.basis)


def worth_row_space(n_rows: int, reference: FloatArray | SparseRows) -> bool:
    """Whether coordinates of the span of so many rows, the reference's among them, save work."""
    sparse = isinstance(reference, SparseRows)
    if n_rows > MOST_ROWS if sparse else not saves_coordinates(n_rows, reference.shape[1]):
        return False
    # Else products of all pairs of rows would cost more than is saved.
    return n_rows <= MANY_ROWS or reference.shape[1] >= 2 * n_rows


class MemorySums:
    """Sums over the sources under given weights."""

    def __init__(self, data: SourceData, weights: SourceWeights):
        self._data, self._weights = data, weights

    @cached_property
    def gradients(self) -> SourceGradients | SparseGradients:
        """Sums of (x, label) times residual."""
        sparse = isinstance(self._data.X, SparseRows)
        return (SparseGradients if sparse else SourceGradients)(self._data, self._weights)

    def curvature(
        self,
        points: FloatArray,
        columns: IntArray,
        at: IntArray,
        basis: FloatArray | None = None,
        every: int = 1,
    ) -> tuple[FloatArray, FloatArray]:
        """Curvature for preconditioners, in coordinates of a basis."""
        return weighted_curvature(self._data, self._weights, points, columns, at, basis, every)

    def moments(self, columns: IntArray) -> tuple[FloatArray, FloatArray]:
        """Second moments, and those with the target."""
        return weighted_moments(self._data, self._weights, columns)
