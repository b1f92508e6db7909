"""Linear discrepancies of sparse rows: each source in the span of its own rows and the reference's.

The separating models are combinations of the rows they are fitted to, so that nothing is lost. But
coordinates in a span mean something only where its rows are: the reference's rows travel to the
source, as for the pull, and source and reference are compared there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from sourcewise.core.data import SourceData
from sourcewise.core.discrepancy.cross_fit import CrossFitQuestion
from sourcewise.core.discrepancy.findings import concat_findings
from sourcewise.core.discrepancy.plug_in import PlugInQuestion
from sourcewise.core.discrepancy.separation import SeparationFindings
from sourcewise.core.row_space import RowSpace
from sourcewise.core.sparse_rows import stack_rows


@dataclass(frozen=True)
class OwnSpanMessage:
    """What a source is told: the whole question, with the reference's rows.

    Attributes
    ----------
    question : PlugInQuestion or CrossFitQuestion
        Its reference's features are `SparseRows`.
    """

    question: PlugInQuestion | CrossFitQuestion

    @property
    def rows_beside(self) -> int:
        """Rows of the reference, which stand beside those of every source."""
        return len(self.question.reference.y)

    def answer(self, sources: SourceData, names: Sequence[Any]) -> SeparationFindings:
        """Ask every source by itself, in coordinates."""
        parts = []
        for i, name in enumerate(names):
            source, reference = sources.some(i, i + 1), self.question.reference
            space = RowSpace.of(stack_rows([reference.X, source.X]))
            n = len(reference.y)
            question = replace(self.question, reference=reference.with_features(space.X[:n]))
            answer = question.message.answer(source.with_features(space.X[n:]), [name])
            parts.append(question.judge(answer))  # type: ignore[arg-type]
        found: SeparationFindings = concat_findings(parts)
        return found


@dataclass(frozen=True)
class OwnSpanQuestion:
    """A linear discrepancy of sparse rows; nothing is left for the server to judge."""

    question: PlugInQuestion | CrossFitQuestion

    @cached_property
    def message(self) -> OwnSpanMessage:
        """What has to be sent to the sources."""
        return OwnSpanMessage(self.question)

    def judge(self, answer: SeparationFindings) -> SeparationFindings:
        """Nothing is left to do."""
        return answer
