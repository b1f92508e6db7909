"""The sources in their groups, the worst first."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from sourcewise.report.html.groups import GROUPS, STYLES, Group
from sourcewise.report.html.numbers import nice_ceiling, part, percent
from sourcewise.report.reasons import AGREES
from sourcewise.report.source_report import SourceReport, SourceRow

# Of the sources that disagree, and of all others: more would make the page too large.
MOST_AGAINST, MOST_OTHERS = 2000, 500
# Of one group, so many are seen before somebody asks for the others; a longer one that says
# nothing against its sources is folded.
MOST_SEEN, MOST_OPEN = 10, 10
# From so many sources on it is worth searching.
SEARCHED = 6
Z = 1.959964
# A source in which so large a share of random labels would be missed is not said to agree.
MUCH, NOTHING_FOUND = 0.5, "no difference found"


@dataclass(frozen=True)
class Line:
    """One source's line of the table.

    Attributes
    ----------
    at : int
        Position in the report.
    row : SourceRow
    label : str
        What it is called: the guess at what is wrong with it, or its group.
    why : str
        What the guess rests on, or the reason; empty where the label says it all.
    guessed : bool
        Whether there is a card with more.
    rows, weight, difference, low, high : float
        Shares of their bars, in percent.
    """

    at: int
    row: SourceRow
    label: str
    why: str
    guessed: bool
    rows: float
    weight: float
    difference: float
    low: float
    high: float


@dataclass(frozen=True)
class Table:
    """The sources of one group.

    Attributes
    ----------
    group : Group
    size : int
        Sources in it, those included that are not shown.
    lines : list of Line
    folded, capped : bool
        Whether nothing is seen of them before somebody asks, or only the first few.
    """

    group: Group
    size: int
    lines: list[Line]
    folded: bool
    capped: bool


@dataclass(frozen=True)
class Sources:
    """All tables.

    Attributes
    ----------
    tables : list of Table
    total, hidden : int
        Sources besides the reference, and how many of them are not shown.
    searched : bool
        Whether there are enough for a search.
    seen : int
        How many lines of a table are seen at first.
    """

    tables: list[Table]
    total: int
    hidden: int
    searched: bool
    seen: int


def sources(report: SourceReport, groups: list[str], unused: list[int], cards: Any) -> Sources:
    """Put the sources into their tables.

    Parameters
    ----------
    report : SourceReport
    groups : list of str
        Of each source.
    unused : list of int
        Sources that agree and hardly count.
    cards : dict
        The card of a source, by its position.
    """
    heaviest = max(row.weight for row in report.sources)
    longest = max(row.rows for row in report.sources)
    farthest = nice_ceiling(max((v for row in report.sources for v in _ends(row)), default=1.0))

    def line(i: int) -> Line:
        row, card = report.sources[i], cards.get(i)
        group = STYLES[groups[i]]
        label = "agrees, but hardly counts" if i in unused else group.one
        if row.reason == AGREES and (row.missed or 0.0) > MUCH:
            label = NOTHING_FOUND
        told = row.reason == group.told
        low, high = (part(v, farthest) for v in _interval(row))
        return Line(
            i,
            row,
            label if card is None else card.kind,
            card.why if card is not None else _missed(row) if told else row.reason,
            card is not None,
            part(row.rows, longest),
            part(row.weight, heaviest),
            part(row.discrepancy, farthest),
            low,
            high,
        )

    tables, left = [], MOST_OTHERS
    for style, group in GROUPS.items():
        against = style in ("aside", "doubted")
        found = [i for i, name in enumerate(groups) if name == style]
        found.sort(key=lambda i: (-_finite(report.sources[i].discrepancy), i))
        shown = found[: MOST_AGAINST if against else left]
        left -= 0 if against else len(shown)
        if found:
            capped = len(shown) > MOST_SEEN + 2
            folded = not against and len(found) > MOST_OPEN
            tables.append(Table(group, len(found), [line(i) for i in shown], folded, capped))
    total = sum(table.size for table in tables)
    hidden = total - sum(len(table.lines) for table in tables)
    return Sources(tables, total, hidden, total >= SEARCHED, MOST_SEEN)


def _missed(row: SourceRow) -> str:
    """Say what would have gone unnoticed."""
    if row.missed is None or row.reason != AGREES:
        return ""
    return f"Up to about {percent(row.missed, 0)} random labels could be missed."


def _interval(row: SourceRow) -> tuple[float, float]:
    half = Z * row.standard_error
    return max(row.discrepancy - half, 0.0), row.discrepancy + half


def _ends(row: SourceRow) -> list[float]:
    return [v for v in (row.discrepancy, _interval(row)[1]) if math.isfinite(v)]


def _finite(value: float) -> float:
    return value if math.isfinite(value) else math.inf
