"""A card for every source set aside."""

from __future__ import annotations

import math
from typing import Any

from sourcewise.report.html.groups import chip
from sourcewise.report.html.parts import bar, count, number, percent, text, words
from sourcewise.report.html.strip import strip

MOST_CARDS = 60


def cards(audit: Any, groups: dict[Any, str]) -> str:
    """Lay out the cards, those of the largest discrepancies where they are too many.

    ``groups`` has the group of every source that disagrees.
    """
    shown = audit.cards[:MOST_CARDS]
    strips = getattr(audit, "strips", {})
    pieces = "".join(
        _card(card, groups[card.source], strip(strips.get(card.source))) for card in shown
    )
    cut = ""
    if len(groups) > len(shown):
        cut = f' <p class="note">The {len(shown)} largest discrepancies of {len(groups)}.</p>'
    return f"""
<section aria-labelledby="aside"><h2 id="aside">Sources that disagree</h2>
<p class="lead">How each of them was found, a guess at what went wrong, and what to ask. It is only
a guess: look at some rows before you write to the source.</p>
<div class="cards">{pieces}</div>{cut}
</section>"""


def _card(card: Any, group: str, pictures: str) -> str:
    shifts = "".join(
        f'<tr><th scope="row">{text(s.feature)}</th><td>{_difference(s.difference)}</td>'
        f"<td>{_spread(s.spread)}</td></tr>"
        for s in card.shifts
    )
    table = (
        f'<div><h4>Columns that differ most</h4><table class="shifts">{shifts}</table></div>'
        if shifts
        else '<p class="meta">No column stands out: its rows look like yours.</p>'
    )
    return f"""
<article class="card {group}">
<div class="head"><h3>{text(card.source)}</h3>{chip(group, card.kind)}</div>
<p class="meta">{count(card.rows)} rows · weight {percent(card.weight)}</p>
<p>{words(card.evidence)} {words(card.why)}</p>
<div><h4>Labels: this source, and <span>your reference</span></h4>{_rates(card.labels)}</div>
{table}
{pictures}
<p class="ask"><b>What to ask</b>{words(card.question)}</p>
</article>"""


def _rates(rates: Any) -> str:
    shares = all(0 <= v <= 1 for rate in rates for v in (rate.source, rate.reference))
    shares = shares and not any(rate.label in ("mean", "standard deviation") for rate in rates)
    top = 1.0 if shares else max(max(abs(r.source), abs(r.reference)) for r in rates) or 1.0
    listed = sorted(rates, key=lambda r: -abs(r.source - r.reference))[:6]
    lines = "".join(
        f'<span class="name">{text(r.label)}</span>'
        f'{bar(abs(r.source) / top)}<span class="theirs">{_share(r.source, shares)}</span>'
        f"{bar(abs(r.reference) / top, tone='ours-fill')}"
        f'<span class="ours">{_share(r.reference, shares)} yours</span>'
        for r in listed
    )
    more = len(rates) - len(listed)
    note = f'<p class="meta">and {more} more labels</p>' if more > 0 else ""
    return f'<div class="rates">{lines}</div>{note}'


def _share(value: float, share: bool) -> str:
    return percent(value, 0) if share else number(value, 2)


def _difference(value: float) -> str:
    if abs(value) < 0.05:
        return "same mean"
    return f"{abs(value):.1f} SD {'higher' if value > 0 else 'lower'}"


def _spread(value: float) -> str:
    if value == 0:
        return "never changes"
    if math.isinf(value):
        return "constant in yours"
    return f"{value:.2g} × the spread" if not 0.8 < value < 1.25 else "same spread"
