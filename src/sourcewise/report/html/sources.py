"""The sources in their groups, the worst first, and cards of those that disagree."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from sourcewise.report.html.numbers import count, in_unit, nice_ceiling, part, percent
from sourcewise.report.reasons import AGREES, REFERENCE
from sourcewise.report.source_report import SourceReport, SourceRow
from sourcewise.report.verdict import Verdict
from sourcewise.safe_text import shortened

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
MOST_LABELS = 6
# What the label rates of numbers are called.
MOMENTS = ("mean", "standard deviation")

# -- groups -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Group:
    """A group of sources; never shown by colour alone.

    ``style`` is the class of its elements and its name in filters, ``one`` what one source of it is
    called, ``told`` the reason that says no more than that, and ``titles`` head its table, for one
    source and for several.
    """

    style: str
    sign: str
    name: str
    one: str
    told: str = ""
    titles: tuple[str, str] = ("", "")


OWN = Group("own", "★", "your reference", "your reference", REFERENCE)
_CANNOT = "cannot be told"
_ASIDE = ("was set aside", "were set aside, worst first")
_DOUBTED = ("differs a little and counts for less", "differ a little and count for less")
_AGREE = ("agrees with your reference", "agree with your reference")
# As the page has them, from top to bottom.
GROUPS = {
    group.style: group
    for group in (
        Group("aside", "✕", "set aside", "set aside", titles=_ASIDE),
        Group("doubted", "≈", "differ a little", "counts for less", titles=_DOUBTED),
        Group("small", "?", _CANNOT, _CANNOT, titles=(_CANNOT, _CANNOT)),
        Group("agree", "✓", "agree", "agrees", AGREES, _AGREE),
    )
}
STYLES = {"own": OWN, **GROUPS}


def group_sources(report: SourceReport, found: Verdict) -> list[str]:
    """Style of the group of every source of the report."""
    groups = ["own" if row.reason == REFERENCE else "agree" for row in report.sources]
    for name, which in (
        ("aside", found.set_aside),
        ("doubted", found.doubted),
        ("small", [*found.too_small, *found.untold]),
    ):
        for i in which:
            groups[i] = name
    return groups


# -- tables -----------------------------------------------------------------------------------


def sources(
    report: SourceReport, groups: list[str], unused: list[int], cards: dict[int, Any]
) -> dict[str, Any]:
    """Put the sources into their tables.

    ``unused`` are positions of sources that agree and hardly count. A table's size counts its
    sources that are not shown too; all that are not are ``hidden``.
    """
    heaviest = max(row.weight for row in report.sources)
    longest = max(row.rows for row in report.sources)
    ends = (v for row in report.sources for v in (row.discrepancy, interval(row)[1]))
    farthest = nice_ceiling(max((v for v in ends if math.isfinite(v)), default=1.0))

    def line(i: int) -> dict[str, Any]:
        row, card = report.sources[i], cards.get(i)
        group = STYLES[groups[i]]
        label = "agrees, but hardly counts" if i in unused else group.one
        if row.reason == AGREES and (row.missed or 0.0) > MUCH:
            label = NOTHING_FOUND
        told = row.reason == group.told
        low, high = (part(v, farthest) for v in interval(row))
        return {
            "at": i,
            "row": row,
            "label": label if card is None else card.kind,
            "why": card.why if card is not None else _missed(row) if told else row.reason,
            # Shares of bars, in percent.
            "rows": part(row.rows, longest),
            "weight": part(row.weight, heaviest),
            "difference": part(row.discrepancy, farthest),
            "low": low,
            "high": high,
        }

    tables: list[dict[str, Any]] = []
    left = MOST_OTHERS
    for style, group in GROUPS.items():
        against = style in ("aside", "doubted")
        found = [i for i, name in enumerate(groups) if name == style]
        found.sort(key=lambda i: (-_finite(report.sources[i].discrepancy), i))
        shown = found[: MOST_AGAINST if against else left]
        left -= 0 if against else len(shown)
        if found:
            size = len(found)
            table = {"group": group, "size": size, "lines": [line(i) for i in shown]}
            table["title"] = f"{count(size)} {group.titles[size != 1]}"
            table["folded"] = not against and size > MOST_OPEN
            table["capped"] = len(shown) > MOST_SEEN + 2
            tables.append(table)
    total = sum(table["size"] for table in tables)
    hidden = total - sum(len(table["lines"]) for table in tables)
    return {"tables": tables, "total": total, "hidden": hidden, "searched": total >= SEARCHED}


def _missed(row: SourceRow) -> str:
    """Say what would have gone unnoticed."""
    if row.missed is None or row.reason != AGREES:
        return ""
    return f"Up to about {percent(row.missed, 0)} random labels could be missed."


def interval(row: SourceRow) -> tuple[float, float]:
    """Return the ends of the 95 % interval of a discrepancy."""
    half = Z * row.standard_error
    return max(row.discrepancy - half, 0.0), row.discrepancy + half


def _finite(value: float) -> float:
    return value if math.isfinite(value) else math.inf


# -- cards: data, which the page's script lays out --------------------------------------------


class Texts(dict[str, int]):
    """Texts that cards have in common, each written once, and the number of each."""

    def of(self, value: Any) -> int:
        """Return the number of a text."""
        return self.setdefault(shortened(value), len(self))


def cards_by_position(report: SourceReport, audit: Any, groups: list[str]) -> dict[int, Any]:
    """Find the card of each source that disagrees."""
    if audit is None:
        return {}
    found = {card.source: card for card in audit.cards}
    against = (i for i, group in enumerate(groups) if group in ("aside", "doubted"))
    names = ((i, str(report.sources[i].source)) for i in against)
    return {i: found[name] for i, name in names if name in found}


def cards_data(shown: list[int], cards: dict[int, Any], strips: dict[str, Any]) -> dict[str, Any]:
    """Return plain data: the texts, and of each card what refers to them by number."""
    texts = Texts()
    data = {str(i): _card(cards[i], strips, texts) for i in shown if i in cards}
    return {"texts": list(texts), "cards": data}


def _card(card: Any, strips: dict[str, Any], texts: Texts) -> dict[str, Any]:
    labels, more = _rates(card.labels, texts)
    found = {
        "evidence": texts.of(card.evidence),
        "question": texts.of(card.question),
        "labels": labels,
        "more": more,
        "shifts": [
            [texts.of(s.feature), texts.of(_difference(s.difference)), texts.of(_spread(s.spread))]
            for s in card.shifts
        ],
    }
    pictures = [
        [each.uri, texts.of(each.name), texts.of(each.label)]
        for each in strips.get(card.source) or ()
    ]
    return {**found, "pictures": pictures} if pictures else found


def _rates(rates: Any, texts: Texts) -> tuple[list[list[Any]], int]:
    """Name, share here and its bar, share in the reference and its bar; and how many more."""
    both = [abs(v) for rate in rates for v in (rate.source, rate.reference)]
    shares = not any(rate.label in MOMENTS for rate in rates) and all(v <= 1 for v in both)
    top = 1.0 if shares else max((v for v in both if math.isfinite(v)), default=1.0)
    listed = sorted(rates, key=lambda r: -abs(r.source - r.reference))[:MOST_LABELS]
    shown = (lambda v: percent(v, 0)) if shares else in_unit(both)
    lines: list[list[Any]] = []
    for rate in listed:
        lines.append([texts.of(rate.label)])
        for value in (rate.source, rate.reference):
            lines[-1] += [texts.of(shown(value)), part(abs(value), top)]
    return lines, len(rates) - len(listed)


def _difference(value: float) -> str:
    if abs(value) < 0.05:
        return "same mean"
    return f"{abs(value):.1f} spreads {'higher' if value > 0 else 'lower'}"


def _spread(value: float) -> str:
    if value == 0:
        return "never changes"
    if math.isinf(value):
        return "yours never changes"
    return f"{value:.2g} × as wide" if not 0.8 < value < 1.25 else "as wide as yours"
