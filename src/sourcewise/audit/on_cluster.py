"""A table on a cluster: the same model, and the same audit, as of one in memory.

What looks at rows one by one needs them here: trusted rows, rows of the sources that disagree (some
sources at a time), and a sample of all others in search of columns that give the label away.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sourcewise.audit.expected_errors import SOURCEWISE, HeldOut, hold_out, with_ends
from sourcewise.audit.leaks import leaks
from sourcewise.audit.run import Audit, Settings, audit_of
from sourcewise.core.engine import OpenSources, RowRules, TrustedRows
from sourcewise.engines.dask.table_sources import TableSources
from sourcewise.estimators import SourceWeightedClassifier, SourceWeightedRegressor
from sourcewise.tables.model import TableModel
from sourcewise.tables.training import TrainingTable

# Rows of a source beyond these say nothing new of what is wrong with it.
MOST_ROWS = 10_000
# Rows of other sources among which columns that give the label away are looked for.
SAMPLE = 20_000
OF_A_SAMPLE = " (Of {others:,} rows of other sources, {seen:,} were looked at.)"


def fit_on_cluster(sources: TableSources, settings: Settings) -> TableModel:
    """Fit a model to a table whose rows are on a cluster."""
    sources.trusted(sources.reference)
    model = make_model(sources, settings).fit_sources(sources)
    table_model = TableModel(sources.label, sources.source, sources.reference)
    return table_model.take(sources.reader.preprocessor, model)


def make_model(sources: TableSources, settings: Settings) -> Any:
    """Return an estimator for the labels that the reference has."""
    kind = SourceWeightedClassifier if sources.classification else SourceWeightedRegressor
    return kind(reference=sources.reference, **settings.options())


def audit_on_cluster(
    sources: TableSources, settings: Settings, facts: dict[str, str]
) -> tuple[Audit, TableModel]:
    """Fit, estimate the errors, and look closer at sources that disagree."""
    fitted = fit_on_cluster(sources, settings)
    rows = sample(sources)
    others, seen = int(sources.untrusted.counts.sum()), len(rows.y) - int(rows.counts[0])
    more = "" if seen == others else OF_A_SAMPLE.format(seen=seen, others=others)
    found = audit_of(
        fitted,
        held_out_errors(sources, settings),
        facts,
        rows_of=lambda which: rows_of(sources, which),
        leaks=tuple(sentence + more for sentence in leaks(rows)),
        left_out=sources.left_out,
    )
    return found, fitted


# -- errors on held-out rows ------------------------------------------------------------------


@dataclass(frozen=True)
class WithoutFold:
    """The sources of a table, and some of its trusted rows."""

    sources: TableSources
    kept: np.ndarray

    trusted_rows_may_travel = True  # to workers of one's own

    def trusted(self, reference: Any) -> TrustedRows:
        """Return the trusted rows that are kept."""
        rows = self.sources.trusted(reference)
        return TrustedRows(rows.X[self.kept], rows.y[self.kept])

    def open(self, rules: RowRules) -> OpenSources:
        """Have the untrusted rows mapped by rules that were learnt from the kept ones."""
        return self.sources.open(rules)


def held_out_errors(sources: TableSources, settings: Settings) -> HeldOut:
    """Fit all three ways without each fold of the reference, and look at that fold."""
    rows = sources.trusted(sources.reference)

    def fit_without(out: np.ndarray) -> dict[str, Any]:
        sources.release()  # what the fold before has left on the workers
        model = make_model(sources, settings).fit_sources(WithoutFold(sources, ~out))
        return with_ends({SOURCEWISE: model})

    return hold_out(rows.X, rows.y, sources.classification, fit_without, settings.seed)


# -- rows that are looked at here -------------------------------------------------------------


def rows_of(sources: TableSources, which: Sequence[int]) -> Iterator[tuple[Any, np.ndarray]]:
    """Rows of some sources in turn; the reference is at 0."""
    if list(which) == [0]:
        rows = sources.trusted(sources.reference)
        yield rows.X, rows.y
        return
    for table in sources.rows_of([i - 1 for i in which], MOST_ROWS):
        yield sources.reader.features(table), sources.labels_of(table)


def sample(sources: TableSources) -> TrainingTable:
    """Trusted rows, and rows of sources spread over the table: all rows where these are few."""
    trusted = sources.trusted(sources.reference)
    counts = sources.untrusted.counts
    every = -(-int(counts.sum()) // SAMPLE)
    found = list(rows_of(sources, range(1, len(counts) + 1, every)))
    X = np.concatenate([trusted.X, *(X for X, _ in found)])
    y = np.concatenate([trusted.y, *(y for _, y in found)])
    sizes = np.array([len(trusted.y), *(len(y) for _, y in found)])
    names = [sources.reference, *sources.untrusted.names[::every]]
    return TrainingTable(
        X, y, names, sizes, sources.reader.preprocessor, sources.classification, sources.left_out
    )
