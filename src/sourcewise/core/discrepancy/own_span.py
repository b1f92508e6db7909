"""Linear discrepancies of sparse rows: each source in the span of its own rows and the reference's.

The separating models are combinations of the rows they are fitted to, so that nothing is lost. But
coordinates in a span mean something only where its rows are: the reference's rows travel to the
source, as for the pull, and source and reference are compared there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sourcewise.core.data import ReferenceRows, SourceData
from sourcewise.core.discrepancy.findings import concat_findings
from sourcewise.core.discrepancy.permutation import as_answered
from sourcewise.core.engine import Arrays, Message, Question
from sourcewise.core.row_space import RowSpace
from sourcewise.core.sparse_rows import stack_rows


def own_span_question(
    asking: Callable[..., Question], reference: ReferenceRows, options: dict[str, Any]
) -> Question:
    """Ask a linear discrepancy of sparse rows; nothing is left for the server to judge.

    ``asking`` makes the question of the reference's rows in coordinates.
    """
    sent = {"asking": asking, "reference": reference, "options": options}
    return Question(Message(answer_in_own_span, sent, len(reference.y)), as_answered, {})


def answer_in_own_span(
    sources: SourceData,
    names: Sequence[Any],
    *,
    asking: Callable[..., Question],
    reference: ReferenceRows,
    options: dict[str, Any],
) -> Arrays:
    """Ask every source by itself, in coordinates."""
    parts, n = [], len(reference.y)
    for i, name in enumerate(names):
        source = sources.some(i, i + 1)
        space = RowSpace.of(stack_rows([reference.X, source.X]))
        question = asking(reference.with_features(space.X[:n]), **options)
        answer = question.message.answer(source.with_features(space.X[n:]), [name])
        parts.append(question.judge(answer))
    return concat_findings(parts)
