"""What a fit may ask of untrusted sources, wherever their rows are.

The reference's rows are the server's own. Untrusted rows are touched in one place, an *engine*,
which answers the calls below. A new place for rows (a cluster, the owners' own machines) is a new
engine; the method does not change, and neither do its results: an engine's answers depend on the
sources alone, not on how they are batched or in which order they come.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import numpy as np

from sourcewise.core.data import FloatArray, IntArray, SourceData
from sourcewise.core.row_space import RowSpace
from sourcewise.core.source_weights import SourceWeights


class Message(Protocol):
    """What travels to the sources."""

    @property
    def rows_beside(self) -> int:
        """Further rows that the work on each source holds beside the source's own."""

    def answer(self, sources: SourceData, names: Sequence[Any]) -> Any:
        """Answer for some sources; runs where their rows are."""


class Question(Protocol):
    """Something to find out about every source by itself: no answer depends on another source."""

    @property
    def message(self) -> Message:
        """What has to be sent to the sources."""

    def judge(self, answer: Any) -> Any:
        """Turn an answer into findings; runs where the reference is, or at a trusted worker.

        Findings are dataclasses of arrays whose last axis runs over the sources.
        """


class WeightedSums(Protocol):
    """Sums over sources under given weights; the reference is not among them.

    ``columns`` are positions among the columns of the weights. Points have the shape
    (n_features, n_points, n_outputs); column ``columns[q]`` stands at point ``at[q]``, or at point
    ``q`` where ``at`` is None.
    """

    def gradients(
        self, points: FloatArray, columns: IntArray, at: IntArray | None = None
    ) -> FloatArray:
        """Return sums of (x, labels) times residual: (n_features + n_outputs, n_outputs, columns).

        See :class:`sourcewise.core.source_gradients.SourceGradients`.
        """

    def curvature(
        self, points: FloatArray, columns: IntArray, at: IntArray
    ) -> tuple[FloatArray, FloatArray]:
        """Curvature of single precision, mean over outputs, and its sum in each output.

        Of the shapes (n_columns, n_features, n_features) and (n_columns, n_outputs).
        """

    def hessians(self, points: FloatArray, columns: IntArray) -> FloatArray:
        """Exact curvature, output by output: (n_columns, n_outputs, n_features, n_features)."""

    def moments(self, columns: IntArray) -> tuple[FloatArray, FloatArray]:
        """Second moments (n_columns, n_features, n_features) and those with the target."""


class Engine(Protocol):
    """Where the untrusted sources are."""

    @property
    def sizes(self) -> FloatArray:
        """Effective rows of every source, ``m_i``."""

    @property
    def row_counts(self) -> IntArray:
        """Rows of every source."""

    @property
    def n_classes(self) -> int:
        """Number of classes, 0 for regression."""

    def ask(
        self, question: Question, sources: Sequence[int] | None = None
    ) -> Iterator[tuple[IntArray, Any]]:
        """Ask some sources (by default all); yields positions and findings, in any order."""

    def weighted(self, weights: SourceWeights) -> WeightedSums:
        """Get ready to answer for sums under these weights."""

    def as_type(self, dtype: np.dtype[Any] | type) -> Engine:
        """Return the same sources with features of another precision."""

    def in_row_space(self, reference: FloatArray) -> tuple[Engine, RowSpace] | None:
        """Return the sources in coordinates of the span of all rows, if that saves any.

        The span includes that of the reference's rows, whose coordinates are in the row space.
        None where the rows have to stay as they are.
        """
