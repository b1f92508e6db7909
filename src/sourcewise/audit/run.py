"""One table, audited: fit, compare, diagnose."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from sourcewise.audit.diagnosis import QUESTIONS, Side, SourceCard, diagnose
from sourcewise.audit.expected_errors import (
    ErrorComparison,
    HeldOut,
    compare_errors,
    held_out_errors,
)
from sourcewise.estimators import SourceWeightedClassifier, SourceWeightedRegressor
from sourcewise.report.source_report import SourceReport
from sourcewise.report.verdict import Verdict, evidence_in_words, verdict
from sourcewise.tables.model import TableModel
from sourcewise.tables.training import TrainingTable

MOST_CARDS = 60


@dataclass(frozen=True)
class Settings:
    """How to fit; see :class:`sourcewise.SourceWeightedClassifier`."""

    discrepancy: str = "combined"
    trade_off: str | float = "cv"
    protocol: str | None = None
    seed: int = 0
    n_jobs: int | None = None


@dataclass(frozen=True)
class Audit:
    """All that the page shows.

    Attributes
    ----------
    report : SourceReport
    comparison : ErrorComparison
    cards : tuple of SourceCard
        Of sources that disagree with the reference, the largest discrepancy first.
    columns : tuple of (column, what was done to it)
    left_out : dict
        Sources with too few rows to be looked at.
    facts : dict
        Versions, seed, command line: what it takes to do this again.
    """

    report: SourceReport
    comparison: ErrorComparison
    cards: tuple[SourceCard, ...]
    columns: tuple[tuple[str, str], ...]
    left_out: dict[str, int]
    facts: dict[str, str] = field(default_factory=dict)

    @property
    def verdict(self) -> Verdict:
        """The result in a sentence."""
        return verdict(self.report)

    def to_dict(self) -> dict[str, Any]:
        """Return plain Python values; an infinite number stays one."""
        context = self.report.context
        assert context is not None
        bound, found = context.bound, self.verdict
        return {
            "verdict": {**asdict(found), "sentence": str(found)},
            "errors": asdict(self.comparison),
            **self.report.to_dict(),
            "set_aside": self._cards_of(found.set_aside),
            "doubted": self._cards_of(found.doubted),
            "reference": {**asdict(context.adequacy), "sentence": str(context.adequacy)},
            "bound": {
                "discrepancy": bound.discrepancy_term,
                "complexity": bound.complexity_term,
                "deviation": bound.deviation_term,
                "total": bound.total,
                "delta": bound.delta,
            },
            "columns": [{"column": name, "treatment": what} for name, what in self.columns],
            "left_out": self.left_out,
            "made_by": self.facts,
        }

    def _cards_of(self, positions: list[int]) -> list[dict[str, Any]]:
        names = {str(self.report.sources[i].source) for i in positions}
        return [asdict(card) for card in self.cards if card.source in names]


def fit_table(
    training: TrainingTable, settings: Settings, *, label: str, source: str
) -> TableModel:
    """Fit a model to a table that has been read."""
    model = _make_model(training, settings)
    model.fit(training.X, training.y, sources=_name_of_row(training))
    return TableModel(training.preprocessor, model, label=label, source=source)


def run_audit(
    training: TrainingTable, settings: Settings, *, label: str, source: str, facts: dict[str, str]
) -> tuple[Audit, TableModel]:
    """Fit, estimate the errors, and look closer at sources that disagree."""
    fitted = fit_table(training, settings, label=label, source=source)
    report = fitted.report()
    found = held_out_errors(
        training, lambda: _make_model(training, settings), _name_of_row(training), settings.seed
    )
    cards = _cards(training, fitted.model, report, found)
    columns = tuple((rule.name, str(rule)) for rule in training.preprocessor.rules_)
    return (
        Audit(
            report,
            compare_errors(found, training.classification),
            cards,
            columns,
            training.left_out,
            facts,
        ),
        fitted,
    )


def _make_model(training: TrainingTable, settings: Settings) -> Any:
    kind = SourceWeightedClassifier if training.classification else SourceWeightedRegressor
    return kind(
        reference=training.names[0],
        discrepancy=settings.discrepancy,
        trade_off=settings.trade_off,
        protocol=settings.protocol,
        n_jobs=settings.n_jobs,
        random_state=settings.seed,
    )


def _name_of_row(training: TrainingTable) -> np.ndarray:
    """Names as objects: rows share them, however long they are."""
    names = np.empty(len(training.names), dtype=object)
    names[:] = training.names
    return np.asarray(names[training.codes])


def _cards(
    training: TrainingTable, model: Any, report: SourceReport, found: HeldOut
) -> tuple[SourceCard, ...]:
    result = verdict(report)
    chosen = sorted(
        [*result.set_aside, *result.doubted], key=lambda i: -report.sources[i].discrepancy
    )
    if not chosen:
        return ()
    alone = model.at_trade_off(0.0)
    features = training.preprocessor.get_feature_names_out()
    own = training.rows(0)
    reference = Side(training.X[own], training.y[own], found.predictions)
    cards = []
    for i in chosen[:MOST_CARDS]:
        rows, line = training.rows(i), report.sources[i]
        side = Side(training.X[rows], training.y[rows], alone.predict(training.X[rows]))
        facts = diagnose(side, reference, features)
        assert report.context is not None
        cards.append(
            SourceCard(
                source=str(line.source),
                weight=line.weight,
                rows=line.rows,
                evidence=evidence_in_words(report.context.witnesses[i]),
                question=QUESTIONS[facts["kind"]].format(source=_short(line.source)),
                **facts,
            )
        )
    return tuple(cards)


def _short(name: Any) -> str:
    text = str(name)
    return text if len(text) <= 60 else text[:59] + "…"
