"""What is known about each source that disagrees: data, which the page's script lays out."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from sourcewise.report.html.numbers import in_unit, part, percent
from sourcewise.report.source_report import SourceReport
from sourcewise.safe_text import shortened

MOST_LABELS = 6
# What the label rates of numbers are called.
MOMENTS = ("mean", "standard deviation")


@dataclass
class Texts:
    """Texts that cards have in common, each written once."""

    all: list[str] = field(default_factory=list)
    where: dict[str, int] = field(default_factory=dict)

    def of(self, value: Any) -> int:
        """Return the number of a text."""
        text = shortened(value)
        if text not in self.where:
            self.where[text] = len(self.all)
            self.all.append(text)
        return self.where[text]


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
    return {"texts": texts.all, "cards": data}


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
    lines = [
        [
            texts.of(rate.label),
            texts.of(shown(rate.source)),
            part(abs(rate.source), top),
            texts.of(shown(rate.reference)),
            part(abs(rate.reference), top),
        ]
        for rate in listed
    ]
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
