"""What weighted sources gain, in cross-validated error."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sourcewise.report.html.numbers import in_unit, nice_ceiling, percent
from sourcewise.report.notes import LINEAR, TOLD

LEADS = {
    "reference only": "train on your trusted rows alone",
    "everything": "train on all rows alike",
    "sourcewise": "weigh the sources first",
    TOLD: "train on all rows, and tell the learner their sources",
    LINEAR: "weigh the sources for a linear model",
}
SAME = "the same as"
THAN = {
    "reference only": "with your reference alone",
    "everything": "with all rows alike",
    TOLD: "with the source as a feature",
    LINEAR: "with the linear default",
}
ENDS = ("reference only", "everything")


@dataclass(frozen=True)
class Way:
    """One way to train.

    Attributes
    ----------
    name, lead : str
    error, low, high : str
        Expected error and its interval, in words.
    at : tuple of float
        The same three on an axis of 0 to 1000: low, error, high.
    ours, best : bool
    """

    name: str
    lead: str
    error: str
    low: str
    high: str
    at: tuple[float, float, float]
    ours: bool
    best: bool


@dataclass(frozen=True)
class Versus:
    """Weighted sources against another way, on the same rows.

    Attributes
    ----------
    word : str
        "clearly better than" and the like.
    clear : bool
        Whether the difference is far on one side of 0.
    than, other : str
        The other way, and its error.
    by, low, high : str
        The size of the difference and its interval.
    lower : bool
        Whether our error is the lower one.
    overlap : bool
        Whether the intervals of the two errors overlap.
    """

    word: str
    clear: bool
    than: str
    other: str
    by: str
    low: str
    high: str
    lower: bool
    overlap: bool

    @property
    def within(self) -> bool:
        """Whether the errors differ, and that may be chance."""
        return not self.clear and self.word != SAME


@dataclass(frozen=True)
class Gain:
    """All that the section says.

    Attributes
    ----------
    versus : list of Versus
        Against the reference alone and all rows alike.
    further : list of Versus
        Against the other ways of a learner that is not the default one.
    """

    ours: str
    versus: list[Versus]
    further: list[Versus]
    ways: list[Way]
    top: str
    share: bool
    rows: int
    folds: int

    @property
    def alike(self) -> bool:
        """Whether the same words are true of both comparisons."""
        return len({versus.word for versus in self.versus}) == 1


def gain(comparison: Any) -> Gain:
    """Gather the errors of the ways to train."""
    share = comparison.measure == "error rate"
    shown = percent if share else in_unit(m.error for m in comparison.methods)
    highest = [v for m in comparison.methods for v in (m.high, m.error) if math.isfinite(v)]
    top = nice_ceiling(max(highest))
    top = min(top, 1.0) if share else top
    best = min(m.error for m in comparison.methods)
    ours = next(m for m in comparison.methods if m.name == "sourcewise")
    others = {m.name: m for m in comparison.methods}
    versus = {
        d.name: _versus(d, ours, others[d.name], shown, share) for d in comparison.differences
    }
    return Gain(
        shown(ours.error),
        [versus[name] for name in ENDS],
        [against for name, against in versus.items() if name not in ENDS],
        [
            Way(
                m.name.capitalize(),
                LEADS[m.name],
                shown(m.error),
                shown(m.low),
                shown(m.high),
                _places((m.low, m.error, m.high), top),
                m.name == "sourcewise",
                m.error == best,
            )
            for m in comparison.methods
        ],
        percent(top, 0) if share else in_unit([top], 1)(top),
        share,
        comparison.rows,
        comparison.folds,
    )


def _places(values: tuple[float, float, float], top: float) -> tuple[float, float, float]:
    low, mid, high = (round(1000.0 * min(max(v / top, 0.0), 1.0), 1) for v in values)
    return low, mid, high


def _versus(
    difference: Any, ours: Any, other: Any, shown: Callable[[float], str], share: bool
) -> Versus:
    clear = difference.clear
    if math.isclose(other.error, ours.error):
        word = SAME
    else:
        word = "better than" if difference.error < 0 else "worse than"
    if clear:
        word = f"clearly {word}"
    sign = -1.0 if difference.error < 0 else 1.0
    low, high = sorted((sign * difference.low, sign * difference.high))
    points: Callable[[float], str] = (lambda v: f"{100 * v:.1f}") if share else shown
    return Versus(
        word,
        clear,
        THAN[difference.name],
        shown(other.error),
        points(abs(difference.error)) + (" percentage points" if share else ""),
        points(low),
        points(high),
        difference.error < 0,
        ours.low <= other.high and other.low <= ours.high,
    )
