"""One table, audited: fit, compare, diagnose."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)

from sourcewise.audit.diagnosis import Side, SourceCard, diagnose
from sourcewise.audit.expected_errors import (
    ErrorComparison,
    HeldOut,
    compare_errors,
    held_out_errors,
)
from sourcewise.audit.leaks import leaks
from sourcewise.audit.wording import QUESTIONS
from sourcewise.report.source_report import SourceReport
from sourcewise.report.verdict import Verdict, evidence_in_words, verdict
from sourcewise.safe_text import cut
from sourcewise.tables.bad_rows import SkippedRows
from sourcewise.tables.model import TableModel
from sourcewise.tables.training import TrainingTable

MOST_CARDS = 5000
# Of sparse rows.
MOST_COLUMNS = 300

LINEAR = "linear"
# Learners that an audit can be asked about, for classes and for numbers, as scikit-learn sets them.
LEARNERS = {
    "boosting": (HistGradientBoostingClassifier, HistGradientBoostingRegressor),
    "forest": (RandomForestClassifier, RandomForestRegressor),
}
NAMES = (LINEAR, *LEARNERS)
NO_TEXT = "boosting takes no sparse rows, which words of free text become; take forest or linear."


@dataclass(frozen=True)
class Settings:
    """How to fit; see :class:`sourcewise.SourceWeightedClassifier`."""

    discrepancy: str = "combined"
    trade_off: str | float = "cv"
    protocol: str | None = None
    scaling: str = "auto"
    seed: int = 0
    n_jobs: int | None = None
    learner: str = "linear"

    def options(self) -> dict[str, Any]:
        """Return what an estimator takes, wherever the rows are."""
        names = ("discrepancy", "trade_off", "protocol", "scaling")
        return {"random_state": self.seed, **{name: getattr(self, name) for name in names}}


@dataclass(frozen=True)
class Audit:
    """All that the page shows."""

    report: SourceReport
    comparison: ErrorComparison
    # Of sources that disagree with the reference, the largest discrepancy first.
    cards: tuple[SourceCard, ...]
    columns: tuple[tuple[str, str], ...]  # (column, what was done to it)
    left_out: dict[str, int]  # sources with too few rows to be looked at
    # Versions, seed, command line: what it takes to do this again.
    facts: dict[str, str] = field(default_factory=dict)
    # Thumbnails by source, of tables of pictures, if asked for.
    strips: dict[str, Any] = field(default_factory=dict)
    skipped: tuple[SkippedRows, ...] = ()  # rows that could not be used
    leaks: tuple[str, ...] = ()  # sentences on columns that give the label away

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
            "verdict": {
                **{group: self._names(which) for group, which in asdict(found).items()},
                "sentence": str(found),
            },
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
            "skipped": [asdict(item) for item in self.skipped],
            "leaks": list(self.leaks),
            "made_by": self.facts,
        }

    def _names(self, positions: list[int]) -> list[Any]:
        return [self.report.sources[i].source for i in positions]

    def _cards_of(self, positions: list[int]) -> list[dict[str, Any]]:
        names = {str(self.report.sources[i].source) for i in positions}
        return [asdict(card) for card in self.cards if card.source in names]


def fit_table(
    training: TrainingTable, settings: Settings, *, label: str, source: str
) -> TableModel:
    """Fit a model to a table that has been read."""
    model = TableModel(
        label,
        source,
        training.names[0],
        estimator=learner_of(settings.learner, training),
        n_jobs=settings.n_jobs,
        **settings.options(),
    )
    return model.fit_training(training)


def learner_of(name: str, training: TrainingTable) -> Any:
    """Return an unfitted learner for a table, or None for the default one."""
    if name == LINEAR:
        return None
    if name not in LEARNERS:
        raise ValueError(f"learner must be one of {', '.join(NAMES)}; got {name!r}.")
    if name == "boosting" and scipy.sparse.issparse(training.X):
        raise ValueError(NO_TEXT)
    return LEARNERS[name][not training.classification]()


def run_audit(
    training: TrainingTable, settings: Settings, *, label: str, source: str, facts: dict[str, str]
) -> tuple[Audit, TableModel]:
    """Fit, estimate the errors, and look closer at sources that disagree."""
    fitted = fit_table(training, settings, label=label, source=source)
    found = held_out_errors(
        training, lambda: fitted.make_model(training), training.name_of_row, settings.seed
    )
    audit = audit_of(
        fitted,
        found,
        facts,
        rows_of=lambda which: (
            (training.X[rows], training.y[rows]) for rows in map(training.rows, which)
        ),
        leaks=tuple(leaks(training)),
        left_out=training.left_out,
        skipped=training.skipped,
        columns=columns_to_compare(training.X, training.X[training.rows(0)]),
    )
    return audit, fitted


def audit_of(
    fitted: TableModel,
    found: HeldOut,
    facts: dict[str, str],
    *,
    rows_of: Callable[[Sequence[int]], Iterable[tuple[Any, np.ndarray]]],
    leaks: tuple[str, ...],
    left_out: dict[str, int],
    skipped: tuple[SkippedRows, ...] = (),
    columns: Any = slice(None),
) -> Audit:
    """Put an audit together, with a closer look at sources that disagree, wherever rows are.

    Parameters
    ----------
    rows_of : callable
        Takes positions of sources, yields the rows (X, y) of each; the reference is at 0.
    columns : slice or int array
        Features that are looked at one by one.
    """
    report = fitted.report()
    return Audit(
        report,
        compare_errors(found, fitted.is_classifier),
        _cards(fitted, found, report, rows_of, columns),
        tuple((rule.name, str(rule)) for rule in fitted.preprocessor_.rules_),
        left_out,
        facts,
        skipped=skipped,
        leaks=leaks,
    )


def _cards(
    fitted: TableModel, found: HeldOut, report: SourceReport, rows_of: Any, columns: Any
) -> tuple[SourceCard, ...]:
    result, model = verdict(report), fitted.model_
    chosen = sorted(
        [*result.set_aside, *result.doubted], key=lambda i: -report.sources[i].discrepancy
    )[:MOST_CARDS]
    if not chosen:
        return ()
    ((X_own, y_own),) = rows_of([0])
    features = fitted.preprocessor_.get_feature_names_out()[columns]
    classes = model.classes_ if fitted.is_classifier else None
    look = model.predict if classes is None else model.predict_proba
    reference = Side(few_columns(X_own, columns), y_own, found.scores)
    cards = []
    for i, (X, y) in zip(chosen, rows_of(chosen), strict=True):
        line = report.sources[i]
        side = Side(few_columns(X, columns), y, look(X))
        again = None if scipy.sparse.issparse(X) else look
        said = diagnose(side, reference, features, classes, again)
        assert report.context is not None
        cards.append(
            SourceCard(
                source=str(line.source),
                weight=line.weight,
                rows=line.rows,
                evidence=evidence_in_words(report.context.witnesses[i]),
                question=QUESTIONS[said["kind"]].format(source=cut(str(line.source), 60)),
                **said,
            )
        )
    return tuple(cards)


def columns_to_compare(X: Any, own: Any) -> Any:
    """Which columns are looked at one by one: of sparse rows, those that most rows use."""
    if not scipy.sparse.issparse(X):
        return slice(None)
    uses = np.bincount(own.indices, minlength=X.shape[1]) / own.shape[0]
    uses += np.bincount(X.indices, minlength=X.shape[1]) / X.shape[0]
    most = np.argsort(-uses, kind="stable")[:MOST_COLUMNS]
    return np.sort(most[uses[most] > 0])


def few_columns(X: Any, columns: Any) -> np.ndarray:
    """Return some columns as an array."""
    return np.asarray(X[:, columns].toarray() if scipy.sparse.issparse(X) else X[:, columns])
