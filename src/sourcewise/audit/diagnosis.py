"""A guess at what is wrong with a source, or that there is none to be made.

Three kinds of evidence: what the columns alone show (`column_kinds`), which of a few explicit kinds
of mistakes makes the labels likely, and whether these follow the source's own columns by another
rule (`label_kinds`). A guess is made where one kind is clearly ahead of all others and fits about
as well as anything could; otherwise the answer is that it cannot be told.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sourcewise.audit import column_kinds, label_kinds
from sourcewise.audit.column_kinds import ColumnFinding, FeatureShift, compare_features
from sourcewise.audit.common_rows import common_rows
from sourcewise.audit.label_kinds import Hypothesis, OwnRule, centred_correlation, own_rule
from sourcewise.audit.wording import CANNOT_TELL, why

N_SHIFTS = 5
# Fewer rows are no ground for a guess (`python -m benchmarks.diagnosis` shows where that begins).
LEAST_ROWS = 30
# How much less often than it is right on trusted rows a model may be wrong on flipped labels.
SLACK = 0.1
# By how much, in log-likelihood, a guess must be ahead of the next (odds of 50 to 1), and how far
# it may be behind a table of confusion that is free.
AHEAD, BEHIND = 4.0, 4.0
# Rows beyond these make no kind likelier: what the model says is only known so well.
COUNTED = 400
SURE, UNSURE = 5.0, 3.0
ALIKE = 0.4
# Kinds that others, with more parameters, say again.
SPECIAL = {
    "shuffled labels": ("labels unrelated",),
    "one label for all": ("labels unrelated", "label bias"),
}


@dataclass(frozen=True)
class LabelRate:
    """Share of a label among a source's rows and among the reference's."""

    label: Any
    source: float
    reference: float


@dataclass(frozen=True)
class SourceCard:
    """What is known about a source that disagrees."""

    source: str
    weight: float
    rows: int
    evidence: str  # which model showed the discrepancy
    kind: str  # guess: a key of ``QUESTIONS``
    # What the guess rests on, and what to ask the vendor.
    why: str
    question: str
    labels: tuple[LabelRate, ...]
    shifts: tuple[FeatureShift, ...]  # largest first
    # Share of labels that the model predicts, here and on held-out trusted rows; for numbers, the
    # correlation of label and prediction.
    agreement: float
    reference_agreement: float


@dataclass(frozen=True)
class Side:
    """Rows of one side: the reference, or a source."""

    X: np.ndarray
    y: np.ndarray
    scores: np.ndarray  # a model's that has not seen them: a probability of each class, or a number


Scores = Callable[[np.ndarray], np.ndarray]


def diagnose(
    source: Side,
    reference: Side,
    features: np.ndarray,
    classes: np.ndarray | None,
    look: Scores | None = None,
) -> dict[str, Any]:
    """Guess what is wrong: the keys of `SourceCard` that come from rows.

    ``look`` says what the model makes of other rows; without it no repair of columns is tried, and
    rows that both have in common are not looked for. Columns that are constant in the reference
    are no evidence: no model uses them.
    """
    common = None
    if look is not None:
        both = (source.X, source.y, reference.X, reference.y)
        common = common_rows(*both, numbers=classes is None)
    source, reference, features, look = _without_constants(source, reference, features, look)
    shifts, scales = compare_features(source.X, reference.X, features)
    study = (
        _Classes(source, reference, classes) if classes is not None else _Numbers(source, reference)
    )
    kind, best, found, own = _guess(study, source, reference, look)
    rates = study.rates()
    words = why(
        kind,
        best,
        found,
        own,
        features=features,
        numbers=classes is None,
        rows=len(source.y),
        rates=rates,
        agreement=study.agreement,
    )
    return {
        "kind": kind,
        "why": words if common is None else f"{common} {words}",
        "labels": tuple(LabelRate(*rate) for rate in rates),
        "shifts": tuple((scales if kind == "other units" else shifts)[:N_SHIFTS]),
        "agreement": study.agreement[0],
        "reference_agreement": study.agreement[1],
    }


def _without_constants(
    source: Side, reference: Side, features: np.ndarray, look: Scores | None
) -> tuple[Side, Side, np.ndarray, Scores | None]:
    """Leave out columns that never vary in the reference, and let ``look`` do without them."""
    varies = np.ptp(reference.X, axis=0) > 0
    if varies.all() or not varies.any():
        return source, reference, features, look
    whole, again = source.X, look

    def look_at(X: np.ndarray) -> np.ndarray:
        assert again is not None
        rows = whole.astype(np.result_type(whole, X))
        rows[:, varies] = X
        return again(rows)

    return (
        replace(source, X=source.X[:, varies]),
        replace(reference, X=reference.X[:, varies]),
        features[varies],
        None if look is None else look_at,
    )


def _guess(
    study: Any, source: Side, reference: Side, look: Scores | None
) -> tuple[str, Hypothesis, ColumnFinding | None, OwnRule | None]:
    """Kind, the likeliest hypothesis for the labels, what the columns show, and the own rule."""
    fitted = study.hypotheses(source.scores)
    best, clear = _leader(fitted, study.saturated(source.scores), len(source.y))
    if len(source.y) < LEAST_ROWS:
        return CANNOT_TELL, best, None, None
    own = study.own_rule(best, source.scores)
    found = _columns(study, source, reference, look, best)
    reverse = clear and best.kind == "flipped labels" and _reversed(study.agreement)
    if found is not None and not (reverse and found.repaired is None):
        kind = found.kind
        if kind == "other population" and not (best.kind == "clean" and clear):
            kind = CANNOT_TELL
        return kind, best, found, own
    told = (
        clear
        and best.kind not in ("clean", "labels unrelated")
        and not (own.sureness > SURE and own.likeness < ALIKE)
        and (best.kind != "shuffled labels" or _would_show(study, own))
    )
    return best.kind if told else CANNOT_TELL, best, None, own


def _reversed(agreement: tuple[float, float]) -> bool:
    """Whether a model is nearly as often wrong there as it is right here: no other rows do that."""
    there, here = agreement
    return there <= 1.0 - here + SLACK


def _leader(fitted: list[Hypothesis], free: float, rows: int) -> tuple[Hypothesis, bool]:
    """Return the likeliest kind, and whether nothing else is nearly as likely."""
    ranked = sorted(fitted, key=lambda h: -h.fit)
    best = ranked[0]
    same = (best.kind, *SPECIAL.get(best.kind, ()))
    others = [h for h in ranked if h.kind not in same]
    tempering = min(1.0, COUNTED / rows)
    ahead = (best.fit - others[0].fit) * tempering >= AHEAD
    behind = (free - best.fit) * tempering <= BEHIND
    return best, ahead and behind


def _would_show(study: Any, own: OwnRule) -> bool:
    """Whether labels still attached to these rows would have shown."""
    usual = study.usual_rule()
    seen = np.arctanh(min(usual.correlation, 0.999)) * np.sqrt(own.rows)
    enough = own.rows >= usual.rows / 2
    return bool(own.sureness < UNSURE and enough and seen > SURE)


def _columns(
    study: Any, source: Side, reference: Side, look: Scores | None, best: Hypothesis
) -> ColumnFinding | None:
    """Return what the columns show, if undoing it makes sense of the labels."""
    X, own = source.X, reference.X
    if look is not None:
        for find in (column_kinds.permuted, column_kinds.other_units):
            for found in find(X, own):
                assert found.repaired is not None
                scores = look(found.repaired)
                free = study.saturated(scores)
                again, clear = _leader(study.hypotheses(scores), free, len(source.y))
                better = again.fit > best.fit + AHEAD or best.kind == "clean"
                if again.kind == "clean" and (better or clear):
                    return found
    noisier = column_kinds.noisier(X, own)
    if noisier is not None and best.kind in ("clean", "noisy labels", "shuffled labels"):
        return noisier
    return column_kinds.elsewhere(X, own)


class _Classes:
    """A source of classes beside the reference."""

    def __init__(self, source: Side, reference: Side, classes: np.ndarray):
        self.classes = classes
        self.X = source.X
        self.y = np.searchsorted(classes, source.y)
        known = np.isfinite(reference.scores).all(axis=1)
        self.held_out = reference.scores[known].astype(np.float64)
        self.own_X = reference.X[known]
        self.own_y = np.searchsorted(classes, reference.y)[known]
        k = len(classes)
        self.usual = np.bincount(self.own_y, minlength=k)
        self.agreement = (
            float(np.mean(source.scores.argmax(axis=1) == self.y)),
            float(np.mean(self.held_out.argmax(axis=1) == self.own_y)),
        )

    def _likely(self, scores: np.ndarray) -> np.ndarray:
        return label_kinds.calibrated(self.held_out, self.own_y, scores)

    def hypotheses(self, scores: np.ndarray) -> list[Hypothesis]:
        return label_kinds.hypotheses(self._likely(scores), self.y, self.usual)

    def saturated(self, scores: np.ndarray) -> float:
        return label_kinds.saturated(self._likely(scores), self.y)[0]

    def own_rule(self, best: Hypothesis, scores: np.ndarray) -> OwnRule:
        table = label_kinds.saturated(self._likely(scores), self.y)[1]
        return own_rule(self.X, np.eye(len(self.classes))[self.y], scores @ table)

    def usual_rule(self) -> OwnRule:
        targets = np.eye(len(self.classes))[self.own_y]
        return own_rule(self.own_X, targets, self.held_out)

    def rates(self) -> list[tuple[Any, float, float]]:
        k = len(self.classes)
        here = np.bincount(self.y, minlength=k) / len(self.y)
        there = np.bincount(self.own_y, minlength=k) / len(self.own_y)
        return list(zip(self.classes.tolist(), here.tolist(), there.tolist(), strict=True))


class _Numbers:
    """A source of numbers beside the reference."""

    def __init__(self, source: Side, reference: Side):
        known = np.isfinite(reference.scores)
        self.X, self.y = source.X, source.y
        self.own_X, self.own_y = reference.X[known], reference.y[known]
        self.held_out = reference.scores[known]
        self.scale = label_kinds.spread_around(self.own_y - self.held_out)
        self.agreement = (
            centred_correlation(source.scores, self.y),
            centred_correlation(self.held_out, self.own_y),
        )

    def hypotheses(self, scores: np.ndarray) -> list[Hypothesis]:
        return label_kinds.number_hypotheses(scores, self.y, self.scale, self.own_y)

    def saturated(self, scores: np.ndarray) -> float:
        return label_kinds.number_saturated(scores, self.y)

    def own_rule(self, best: Hypothesis, scores: np.ndarray) -> OwnRule:
        sign = -1.0 if best.kind == "flipped sign" else 1.0
        return own_rule(self.X, self.y[:, None], sign * scores[:, None])

    def usual_rule(self) -> OwnRule:
        return own_rule(self.own_X, self.own_y[:, None], self.held_out[:, None])

    def rates(self) -> list[tuple[Any, float, float]]:
        return [
            ("mean", float(self.y.mean()), float(self.own_y.mean())),
            ("standard deviation", float(self.y.std()), float(self.own_y.std())),
        ]
