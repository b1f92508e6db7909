"""What weighted sources gain, in cross-validated error, and whether the reference is enough."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from sourcewise.core.mixture import DEFAULT_LEARNER, TOLD
from sourcewise.report.html.numbers import count, counted, in_unit, nice_ceiling, percent
from sourcewise.report.source_report import SourceReport

LEADS = {
    "reference only": "train on your trusted rows alone",
    "everything": "train on all rows alike",
    "sourcewise": "weigh the sources first",
    TOLD: "train on all rows, and tell the learner their sources",
    DEFAULT_LEARNER: "weigh the sources for a linear model",
}
SAME = "the same as"
THAN = {
    "reference only": "with your reference alone",
    "everything": "with all rows alike",
    TOLD: "with the source as a feature",
    DEFAULT_LEARNER: "with the linear default",
}
ENDS = ("reference only", "everything")


def gain(comparison: Any) -> dict[str, Any]:
    """Gather the errors of the ways to train; ``versus`` are the two ends, ``further`` the rest."""
    share = comparison.measure == "error rate"
    shown = percent if share else in_unit(m.error for m in comparison.methods)
    highest = [v for m in comparison.methods for v in (m.high, m.error) if math.isfinite(v)]
    top = nice_ceiling(max(highest))
    top = min(top, 1.0) if share else top
    best = min(m.error for m in comparison.methods)
    methods = {m.name: m for m in comparison.methods}
    ours = methods["sourcewise"]
    versus = {
        d.name: _versus(d, ours, methods[d.name], shown, share) for d in comparison.differences
    }
    ends = [versus[name] for name in ENDS]
    return {
        "ours": shown(ours.error),
        "versus": ends,
        "further": [against for name, against in versus.items() if name not in ENDS],
        "alike": len({against["word"] for against in ends}) == 1,
        "ways": [
            {
                "name": m.name.capitalize(),
                "lead": LEADS[m.name],
                **{what: shown(getattr(m, what)) for what in ("error", "low", "high")},
                # On an axis of 0 to 1000.
                "at": [
                    round(1000.0 * min(max(v / top, 0.0), 1.0), 1) for v in (m.low, m.error, m.high)
                ],
                "ours": m.name == "sourcewise",
                "best": m.error == best,
            }
            for m in comparison.methods
        ],
        "top": percent(top, 0) if share else in_unit([top], 1)(top),
        "share": share,
        "rows": comparison.rows,
        "folds": comparison.folds,
    }


def _versus(
    difference: Any, ours: Any, other: Any, shown: Callable[[float], str], share: bool
) -> dict[str, Any]:
    """Put weighted sources against another way, on the same rows, into words."""
    same = math.isclose(other.error, ours.error)
    word = SAME if same else "better than" if difference.error < 0 else "worse than"
    sign = -1.0 if difference.error < 0 else 1.0
    low, high = sorted((sign * difference.low, sign * difference.high))
    points: Callable[[float], str] = (lambda v: f"{100 * v:.1f}") if share else shown
    return {
        "word": f"clearly {word}" if difference.clear else word,
        "sure": difference.clear,
        "within": not difference.clear and not same,  # the errors differ, and that may be chance
        "than": THAN[difference.name],
        "other": shown(other.error),
        "by": points(abs(difference.error)) + (" percentage points" if share else ""),
        "low": points(low),
        "high": points(high),
        "lower": difference.error < 0,
        "overlap": ours.low <= other.high and other.low <= ours.high,
    }


def enough(report: SourceReport) -> dict[str, Any]:
    """Say what so many trusted rows can and cannot find."""
    assert report.context is not None
    found = report.context.adequacy
    rows, typical = counted(found.rows, "trusted row"), counted(found.source_rows, "row")
    tiles = [
        (count(found.rows), "trusted row" if round(found.rows) == 1 else "trusted rows"),
        (count(found.source_rows), "rows of a typical source"),
    ]
    if math.isnan(found.power_of_random):
        opinion, note = f"There are {rows}.", "How few wrong labels they find is not known here."
    elif not math.isfinite(found.detectable_discrepancy):
        opinion = "Bad sources may still go unnoticed: more trusted rows would help."
        note = (
            f"With {rows}, a typical source of {typical} may go unnoticed even if all of its "
            f"labels are random; it is found {percent(found.power_of_random, 0)} of the time."
        )
    else:
        share = percent(found.detectable_share, 0)
        tiles.append((share, "of a source's labels must be random to be proven so"))
        limited = not math.isfinite(found.rows_to_halve)
        why = "many have too few rows of their own" if limited else "more trusted rows would help"
        opinion = (
            "It is large enough to find those sources that would do harm."
            if found.detectable_discrepancy <= report.cutoff
            else f"Sources that are bad enough to be set aside may still go unnoticed: {why}."
        )
        note = (
            f"With {rows}, a typical source of {typical} is proven to differ four times "
            f"out of five if {share} of its labels are random."
        )
        if not limited:
            tiles.append((count(found.rows_to_halve), "more trusted rows would halve that"))
        else:
            note += " No number of trusted rows would halve that: the sources are too small."
    return {"opinion": opinion, "note": note, "tiles": tiles}
