"""What a fit may ask of untrusted sources, wherever their rows are.

The reference's rows are the server's own. Untrusted rows are touched in one place, an *engine*,
which answers the calls below. A new place for rows (a cluster, the owners' own machines) is a new
engine; the method does not change, and neither do its results: an engine's answers depend on the
sources alone, not on how they are batched or in which order they come.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from sourcewise.core.data import FloatArray, IntArray, SourceData
from sourcewise.core.row_space import RowSpace
from sourcewise.core.source_weights import SourceWeights

# Arrays by name whose last axis runs over sources: what they answer, and what is found out by it.
Arrays = dict[str, Any]


@dataclass(frozen=True)
class Message:
    """What travels to the sources.

    Attributes
    ----------
    answered_by : callable
        ``answered_by(sources, names, **sent)`` answers for some sources, where their rows are. No
        answer depends on another source. Whoever gets a message from afar compares what was sent
        with the annotations of its keywords.
    sent : dict
        Arrays, numbers, texts and learners by name.
    rows_beside : int
        Further rows that the work on each source holds beside the source's own.
    """

    answered_by: Callable[..., Arrays]
    sent: dict[str, Any]
    rows_beside: int = 0

    def answer(self, sources: SourceData, names: Sequence[Any]) -> Arrays:
        """Answer for some sources."""
        return self.answered_by(sources, names, **self.sent)


@dataclass(frozen=True)
class Question:
    """Something to find out about every source by itself.

    Attributes
    ----------
    message : Message
    judged_by : callable
        ``judged_by(answer, **known)`` turns an answer into findings; runs where the reference is,
        or at a trusted worker.
    known : dict
    """

    message: Message
    judged_by: Callable[..., Arrays]
    known: dict[str, Any]

    def judge(self, answer: Arrays) -> Arrays:
        """Turn an answer into findings."""
        return self.judged_by(answer, **self.known)


class WeightedSums(Protocol):
    """Sums over sources under given weights; the reference is not among them.

    ``columns`` are positions among the columns of the weights. Points have the shape
    (n_features, n_points, n_outputs); column ``columns[q]`` stands at point ``at[q]``, or at point
    ``q`` where ``at`` is None.
    """

    def gradients(
        self, points: FloatArray, columns: IntArray, at: IntArray | None = None
    ) -> FloatArray:
        """Return sums of (x, label) times residual: (n_features + 1, n_outputs, columns).

        See :class:`sourcewise.core.source_gradients.SourceGradients`.
        """

    def curvature(
        self,
        points: FloatArray,
        columns: IntArray,
        at: IntArray,
        basis: FloatArray | None = None,
        every: int = 1,
    ) -> tuple[FloatArray, FloatArray]:
        """Curvature for preconditioners.

        In coordinates of the basis and the constant for each output, and what a direction outside
        the basis has in the mean, (n_columns, n_outputs). See
        :func:`sourcewise.core.source_curvature.weighted_curvature`.
        """

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
    ) -> Iterator[tuple[IntArray, Arrays]]:
        """Ask some sources (by default all); yields positions and findings, in any order."""

    def weighted(self, weights: SourceWeights) -> WeightedSums:
        """Get ready to answer for sums under these weights."""

    def spread(self, directions: FloatArray) -> FloatArray:
        """Sum over all rows of ``x (x' q)`` for some directions, the constant left out.

        Directions have the shape (n_features - 1, n_directions), and so has the answer.
        """

    def in_row_space(self, reference: FloatArray) -> tuple[Engine, RowSpace] | None:
        """Return the sources in coordinates of the span of all rows, if that saves any.

        The span includes that of the reference's rows, whose coordinates are in the row space.
        None where the rows have to stay as they are.
        """


@dataclass(frozen=True)
class TrustedRows:
    """The reference's rows, as a user would hand them to ``fit``.

    Attributes
    ----------
    X : array or frame of shape (n_rows, n_features)
        The names of a frame's columns become the model's.
    y : array of shape (n_rows,)
        Labels as they are.
    sample_weight : array of shape (n_rows,), optional
    """

    X: Any
    y: Any
    sample_weight: Any = None


class RowRules(Protocol):
    """How rows become numbers; learnt from the reference, and sent to where the rows are.

    The one there is, :class:`sourcewise.estimators.row_rules.RowRules`, holds numbers and names
    only.
    """

    @property
    def n_classes(self) -> int:
        """Number of classes, 0 for regression."""

    @property
    def copies(self) -> Any:
        """What leaves copies of trusted rows out; None where nothing does."""

    def __call__(
        self,
        X: Any,
        y: Any,
        codes: IntArray,
        names: Sequence[Any],
        sample_weight: FloatArray | None = None,
    ) -> SourceData:
        """Check and map the rows of some sources; ``codes`` are positions among their names."""


class SourcesChanged(ValueError):
    """Some sources can no longer be used: open them again to go on with the others."""


@dataclass(frozen=True)
class OpenSources:
    """Untrusted sources that are ready to be asked.

    Attributes
    ----------
    engine : Engine
    names : sequence
        Of the untrusted sources, in the engine's order.
    position : int
        Where the reference stands among all sources.
    learner : callable, optional
        Puts a learner in the place of another that would ask too often.
    copies : int array, optional
        Rows of each source that repeat trusted ones and were left out, as the rules' answers say
        (`SourceData.copies`); None where nobody looked.
    """

    engine: Engine
    names: Sequence[Any]
    position: int = 0
    learner: Callable[[Any], Any] | None = None
    copies: IntArray | None = None


class SourcesElsewhere(Protocol):
    """What ``fit_sources`` takes: rows that stay where they are, and the reference's rows.

    ``trusted`` is called first, and all that depends on the reference alone is learnt from its
    rows. Then ``open`` takes the rules to where the other rows are. Sources that are a context
    manager are entered for the time of the fit. Where the sources are one's own, an attribute
    ``trusted_rows_may_travel`` that is true lets the rules hold the trusted rows, so that copies of
    them can be left out; whoever else runs a source must not see them.
    """

    def trusted(self, reference: Any) -> TrustedRows:
        """Return the rows of the source of this name, or say in a sentence that there are none."""

    def open(self, rules: RowRules) -> OpenSources:
        """Let the rules be applied to all other rows, and get ready to answer."""
