"""A table on a cluster: the same model as of one in memory."""

from __future__ import annotations

from typing import Any

from sourcewise.audit.run import Settings
from sourcewise.estimators import SourceWeightedClassifier, SourceWeightedRegressor
from sourcewise.tables.model import TableModel
from sourcewise.tables.on_cluster import TableSources


def fit_on_cluster(sources: TableSources, settings: Settings) -> TableModel:
    """Fit a model to a table whose rows are on a cluster."""
    sources.trusted(sources.reference)
    model = make_model(sources, settings).fit_sources(sources)
    table_model = TableModel(sources.label, sources.source, sources.reference)
    return table_model.take(sources.reader.preprocessor, model)


def make_model(sources: TableSources, settings: Settings) -> Any:
    """Return an estimator for the labels that the reference has."""
    kind = SourceWeightedClassifier if sources.classification else SourceWeightedRegressor
    return kind(
        reference=sources.reference,
        discrepancy=settings.discrepancy,
        trade_off=settings.trade_off,
        protocol=settings.protocol,
        random_state=settings.seed,
    )
