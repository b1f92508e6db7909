"""The page, top to bottom."""

from __future__ import annotations

import base64
import hashlib
import math
from importlib.resources import files
from typing import Any

import numpy as np

from sourcewise.report.html.parts import (
    bar,
    count,
    interval_bar,
    nice_ceiling,
    number,
    p_value,
    percent,
    text,
    words,
)
from sourcewise.report.html.trust_path import TrustPath, data_block, drawing
from sourcewise.report.reasons import REFERENCE
from sourcewise.report.source_report import SourceReport
from sourcewise.report.verdict import NO_WEIGHT, Verdict, verdict

MOST_ROWS, MOST_CARDS = 500, 60
Z = 1.959964
# Style, sign and name of each group of sources: never told by colour alone.
GROUPS = {
    "own": ("★", "your reference"),
    "agree": ("✓", "agree with it"),
    "doubted": ("≈", "differ a little"),
    "aside": ("✕", "set aside"),
    "small": ("?", "too small to tell"),
}
# The same for one source; where the reason says no more than that, it is left out.
ONE = {
    "own": ("your reference", False),
    "agree": ("agrees with the reference", False),
    "doubted": ("counts for less", True),
    "aside": ("set aside", True),
    "small": ("too few rows to tell", False),
}
LEADS = {
    "reference only": "train on your trusted rows alone",
    "everything": "train on all rows alike",
    "sourcewise": "weigh the sources first",
}


def render(result: Any) -> str:
    """Lay out an audit, or the part of it that a fitted model knows by itself."""
    report: SourceReport = getattr(result, "report", result)
    audit = result if result is not report else None
    found = verdict(report)
    groups = _groups(report, found)
    body = [_sources(report, groups)]
    path = _path(report, groups)
    if path is not None:
        body.append(_trust_path(path, report))
    if audit is not None and audit.cards:
        body.append(_cards(audit, len(found.set_aside) + len(found.doubted)))
    if report.context is not None:
        body += [_adequacy(report), _fine_print(report, audit)]
    if audit is not None:
        body.insert(0, _errors(audit.comparison))
    style, script = (
        files(__package__).joinpath(name).read_text(encoding="utf-8")
        for name in ("style.css", "page.js")
    )
    policy = (
        f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>Source audit: {words(found)}</title>
<link rel="icon" href="data:,">
<style>{style}</style>
</head>
<body>
{_header(report, audit, found, groups)}
<main>
{"".join(body)}
</main>
<footer>Made by sourcewise. This page is complete in itself and asks nothing of any server.</footer>
{"" if path is None else data_block(path)}
<script>{script}</script>
</body>
</html>
"""


def _hash(content: str) -> str:
    digest = hashlib.sha256(content.encode()).digest()
    return "sha256-" + base64.b64encode(digest).decode()


def _groups(report: SourceReport, found: Verdict) -> list[str]:
    groups = ["own" if row.reason == REFERENCE else "agree" for row in report.sources]
    for name, which in (
        ("aside", found.set_aside),
        ("doubted", found.doubted),
        ("small", found.too_small),
    ):
        for i in which:
            groups[i] = name
    return groups


def _chip(group: str, label: str | None = None) -> str:
    return f'<span class="chip {group}">{GROUPS[group][0]} {words(label or ONE[group][0])}</span>'


# -- 1. the verdict --------------------------------------------------------------------------


def _header(report: SourceReport, audit: Any, found: Verdict, groups: list[str]) -> str:
    reference = next((row for row in report.sources if row.reason == REFERENCE), None)
    rows = sum(row.rows for row in report.sources)
    about = ""
    if reference is not None:
        about = (
            f"{count(rows)} rows from {count(len(report.sources))} sources, judged against the "
            f"{count(reference.rows)} rows of {text(reference.source)} that you trust."
        )
    if audit is not None and audit.left_out:
        few = len(audit.left_out)
        about += (
            f" {few} more {'source was' if few == 1 else 'sources were'} left out: too few rows."
        )
    sizes = {g: groups.count(g) for g in ("agree", "doubted", "aside", "small")}
    total = max(sum(sizes.values()), 1)
    pieces, left = [], 0.0
    for group, size in sizes.items():
        if size:
            width = 100 * size / total
            pieces.append(
                f'<rect class="fill {group}" x="{left:.3f}" width="{max(width - 0.35, 0.2):.3f}" '
                'height="14"/>'
            )
            left += width
    legend = "".join(
        f'<li class="{g}"><b>{GROUPS[g][0]} {size}</b> {GROUPS[g][1]}</li>'
        for g, size in sizes.items()
        if size
    )
    return f"""<header>
<p class="brand">sourcewise · source audit</p>
<h1>{words(found)}</h1>
<p class="lead">{about}</p>
<div class="split"><svg viewBox="0 0 100 14" preserveAspectRatio="none" aria-hidden="true">
{"".join(pieces)}</svg></div>
<ul class="legend">{legend}</ul>
</header>"""


def _errors(comparison: Any) -> str:
    share = comparison.measure == "error rate"

    def shown(value: float) -> str:
        return percent(value) if share else number(value)

    top = nice_ceiling(max(m.high for m in comparison.methods))
    top = min(top, 1.0) if share else top
    best = min(m.error for m in comparison.methods)
    rows = []
    for method in comparison.methods:
        low, mid, high = (1000 * v / top for v in (method.low, method.error, method.high))
        tone = "agree" if method.name == "sourcewise" else "small"
        emphasis = " best" if method.error == best else ""
        rows.append(f"""
<div class="row">
<div class="who">{words(method.name.capitalize())}<small>{LEADS[method.name]}</small></div>
<svg viewBox="0 0 1000 26" preserveAspectRatio="none" class="{tone}" aria-hidden="true">
<line class="rule" x1="0" x2="1000" y1="13" y2="13"/>
<line class="range" x1="{low:.1f}" x2="{high:.1f}" y1="13" y2="13"/>
<line class="dot" x1="{mid:.1f}" x2="{mid:.1f}" y1="13" y2="13"/></svg>
<div class="value{emphasis}">{shown(method.error)}
<small>{shown(method.low)} to {shown(method.high)}</small></div></div>""")
    what = (
        "Share of rows that would be predicted wrongly"
        if share
        else "How far predictions would be off on average, in units of the label"
    )
    return f"""
<section aria-labelledby="buys"><h2 id="buys">What it buys you</h2>
<p class="lead">{_gain(comparison, shown)}</p>
<div class="errors">{"".join(rows)}
<div class="scale" aria-hidden="true"><span>0</span><span>{shown(top)}</span></div></div>
<p class="note">{what}, found on {comparison.rows} trusted rows that the model in question had not
seen ({comparison.folds}-fold cross-validation, every choice repeated within each fold). Bands are
95 % intervals.</p>
</section>"""


def _gain(comparison: Any, shown: Any) -> str:
    errors = {m.name: m for m in comparison.methods}
    ours = errors["sourcewise"].error
    names = {"reference only": "your reference alone", "everything": "all rows alike"}
    parts = []
    for difference in comparison.differences:
        other = errors[difference.name].error
        after = ""
        if difference.high < 0 or difference.low > 0:
            word = "clearly better than" if difference.high < 0 else "clearly worse than"
        elif math.isclose(other, ours):
            word = "the same as"
        else:
            word = "better than" if difference.error < 0 else "worse than"
            after = ", though within the margin of error"
        parts.append(f"{word} with {names[difference.name]} ({shown(other)}){after}")
    return (
        f"With weighted sources the expected error is <b>{shown(ours)}</b>. That is {parts[0]}; "
        f"and {parts[1]}."
    )


# -- 2. the sources --------------------------------------------------------------------------


def _sources(report: SourceReport, groups: list[str]) -> str:
    order = sorted(
        range(len(report.sources)),
        key=lambda i: (-report.sources[i].weight, report.sources[i].discrepancy),
    )
    heaviest = max(row.weight for row in report.sources)
    longest = max(row.rows for row in report.sources)
    finite = [r.discrepancy + Z * r.standard_error for r in report.sources]
    farthest = nice_ceiling(max(v for v in finite if np.isfinite(v)))
    lines = []
    for i in order[:MOST_ROWS]:
        row, group = report.sources[i], groups[i]
        own = group == "own"
        low = max(row.discrepancy - Z * row.standard_error, 0.0)
        high = row.discrepancy + Z * row.standard_error
        between = "" if own else f'<span class="of">{low:.2f} to {high:.2f}</span>'
        mark = report.cutoff / farthest if math.isfinite(report.cutoff) else None
        gauge = interval_bar(row.discrepancy / farthest, low / farthest, high / farthest, mark)
        unused = group == "agree" and row.weight <= NO_WEIGHT
        chip = _chip(group, "agrees, but is beyond the cut-off" if unused else None)
        because = f" <span>{words(row.reason)}</span>" if ONE[group][1] else ""
        p = -1.0 if math.isnan(row.p_value) else row.p_value
        lines.append(f"""
<tr class="{group}">
<th scope="row" data-value="{words(row.source)}">{text(row.source)}</th>
<td class="number" data-label="Weight" data-value="{row.weight!r}"><span class="value">\
{percent(row.weight)}</span>{bar(row.weight / heaviest)}</td>
<td class="number" data-label="Discrepancy" data-value="{row.discrepancy!r}"><span class="value">\
{number(row.discrepancy)}</span> {between}{gauge}</td>
<td data-label="p-value" data-value="{p!r}">{"" if own else p_value(row.p_value)}</td>
<td class="number" data-label="Rows" data-value="{row.rows}">{count(row.rows)}\
{bar(row.rows / longest, tone="ours-fill")}</td>
<td class="reason" data-value="{group} {words(row.reason)}">{chip}{because}</td>
</tr>""")
    heads = [
        ("Source", "text"),
        ("Weight", "number"),
        ("Discrepancy", "number"),
        ("p-value", "number"),
        ("Rows", "number"),
        ("Reason", "text"),
    ]
    head = "".join(
        f'<th scope="col" data-kind="{kind}"{" aria-sort=descending" * (name == "Weight")}>'
        f'<button type="button">{name}</button></th>'
        for name, kind in heads
    )
    more = len(report.sources) - MOST_ROWS
    cut = f" The {more} sources of least weight are not shown." if more > 0 else ""
    line = "" if math.isinf(report.cutoff) else " The upright line is the cut-off μ."
    return f"""
<section aria-labelledby="ranked"><h2 id="ranked">The sources, ranked</h2>
<p class="lead">The <b>weight</b> is a source's share in training. The <b>discrepancy</b> says how
differently models behave on its rows and on yours: 0 is the same, 1 the opposite. A small
<b>p-value</b> means that chance alone would hardly produce it.</p>
<div class="scroll"><table class="sources"><colgroup>{"<col>" * 6}</colgroup>
<thead><tr>{head}</tr></thead>
<tbody>{"".join(lines)}</tbody></table></div>
<p class="note">Lines across the bars are 95 % intervals.{line}{cut}</p>
</section>"""


# -- 3. the trust path -----------------------------------------------------------------------


def _path(report: SourceReport, groups: list[str]) -> TrustPath | None:
    if report.context is None or len(report.sources) < 2:
        return None
    return TrustPath(
        [str(row.source) for row in report.sources],
        groups,
        np.array([row.discrepancy for row in report.sources]),
        np.array(report.context.sizes),
        report.trade_off,
    )


def _trust_path(path: TrustPath, report: SourceReport) -> str:
    present = [g for g in GROUPS if g in path.groups]
    legend = "".join(f'<li class="{g}"><b>{GROUPS[g][0]}</b> {GROUPS[g][1]}</li>' for g in present)
    if math.isinf(report.trade_off):
        chosen = "<b>λ = ∞ was chosen:</b> every row counts the same, whatever its source."
    else:
        used = sum(row.weight > 1e-9 for row in report.sources)
        chosen = (
            f"<b>λ = {number(report.trade_off, 2)} was chosen.</b> A source counts only if its "
            f"discrepancy is below {number(report.cutoff)} (μ): {used} of {len(report.sources)} "
            f"source{'s do' if used != 1 else ' does'}, the reference included."
        )
    return f"""
<section aria-labelledby="path"><h2 id="path">The trust path</h2>
<p class="lead">One number, λ, says how much closeness to your reference is worth against more
rows. To the left only your reference counts; to the right every row does. Each line is a source.
The dotted upright marks the λ that was chosen; move the slider to see what another would do.</p>
<ul class="legend">{legend}</ul>
{drawing(path)}
<div class="now-box"><div><output class="mu" id="mu-words" for="lambda" aria-live="polite">{chosen}
</output></div><ol id="weights-now"></ol></div>
</section>"""


# -- 4. a card for every source set aside ----------------------------------------------------


def _cards(audit: Any, total: int) -> str:
    shown = audit.cards[:MOST_CARDS]
    cut = ""
    if total > len(shown):
        cut = f' <p class="note">The {len(shown)} largest discrepancies of {total}.</p>'
    return f"""
<section aria-labelledby="aside"><h2 id="aside">Sources that disagree</h2>
<p class="lead">What gave each of them away, a guess at what went wrong, and what to ask. A guess is
a guess: look at some rows before you write the letter.</p>
<div class="cards">{"".join(_card(card) for card in shown)}</div>{cut}
</section>"""


def _card(card: Any) -> str:
    group = "aside" if card.weight <= 1e-9 else "doubted"
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
<div class="head"><h3>{text(card.source)}</h3>{_chip(group, card.kind)}</div>
<p class="meta">{count(card.rows)} rows · weight {percent(card.weight)}</p>
<p>{words(card.evidence)} {words(card.why)}</p>
<div><h4>Labels: this source, and <span>your reference</span></h4>{_rates(card.labels)}</div>
{table}
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


# -- 5. the reference ------------------------------------------------------------------------


def _adequacy(report: SourceReport) -> str:
    assert report.context is not None
    found = report.context.adequacy
    enough = math.isinf(report.cutoff) or found.detectable_discrepancy <= report.cutoff
    opinion = (
        "It can tell apart sources well within the cut-off."
        if enough
        else "Sources that differ by more than the cut-off may still go unnoticed: more trusted "
        "rows would help."
    )
    tiles = [
        (count(found.rows), "trusted rows"),
        (count(found.source_rows), "rows of the median source"),
        (number(found.detectable_discrepancy), "smallest discrepancy found with power 0.8"),
        (
            "–" if math.isinf(found.rows_to_halve) else count(found.rows_to_halve),
            "more trusted rows to halve that"
            if math.isfinite(found.rows_to_halve)
            else "no number of trusted rows halves that: the sources are too small",
        ),
    ]
    shown = "".join(f"<div><dt>{what}</dt><dd>{value}</dd></div>" for value, what in tiles)
    return f"""
<section aria-labelledby="enough"><h2 id="enough">Is your reference large enough?</h2>
<p class="lead">{words(opinion)}</p>
<dl class="tiles">{shown}</dl>
<p class="note">{words(found)}</p>
</section>"""


# -- 6. the bound, and how to do this again --------------------------------------------------


def _fine_print(report: SourceReport, audit: Any) -> str:
    context = report.context
    assert context is not None
    parts = [_bound(context.bound)]
    facts = dict(context.parameters)
    title = "The model's parameters"
    if audit is not None:
        columns = "".join(
            f"<tr><td>{text(name)}</td><td>{words(what)}</td></tr>" for name, what in audit.columns
        )
        parts.append(
            f"<details><summary>What was done to each column ({len(audit.columns)})</summary>"
            f'<table class="plain-table words"><tbody>{columns}</tbody></table></details>'
        )
        if audit.left_out:
            names = ", ".join(
                f"{text(n)} ({rows})" for n, rows in list(audit.left_out.items())[:50]
            )
            parts.append(
                f"<details><summary>Sources left out for too few rows ({len(audit.left_out)})"
                f"</summary><p>{names}</p></details>"
            )
        facts, title = dict(audit.facts), "How this page was made"
    listed = "".join(
        f"<dt>{words(k)}</dt><dd{' class=mono' if k == 'command' else ''}>{text(v)}</dd>"
        for k, v in facts.items()
    )
    parts.append(
        f'<details open><summary>{title}</summary><dl class="facts">{listed}</dl></details>'
    )
    return f"""
<section aria-labelledby="fine"><h2 id="fine">For those who want it</h2>
{"".join(parts)}
</section>"""


def _bound(bound: Any) -> str:
    rows = [
        ("Discrepancy: the price of data from elsewhere", bound.discrepancy_term),
        ("Complexity: what the class of models can make up", bound.complexity_term),
        ("Deviation: the luck of the draw", bound.deviation_term),
    ]
    lines = "".join(f"<tr><td>{what}</td><td>{number(value)}</td></tr>" for what, value in rows)
    unknown = bound.complexity_method == "given by the caller"
    method = (
        "The complexity of this learner is not known and counts as 0 here."
        if unknown
        else f"Complexity: {bound.complexity_method}."
    )
    vacuous = (
        f" No loss exceeds {bound.loss_bound:.3g}, so the bound promises nothing yet: it is a "
        "worst case, and worst cases need many rows."
        if bound.vacuous
        else ""
    )
    return f"""<details><summary>The guarantee, term by term</summary>
<p>With probability {percent(1 - bound.delta, 0)}, the model's loss on cases like your reference
exceeds that of the best model of its class by at most this much (Konstantinov and Lampert, ICML
2019, Theorem 1).</p>
<table class="plain-table"><tbody>{lines}
<tr class="total"><td>Together</td><td>{number(bound.total)}</td></tr></tbody></table>
<p class="note">{words(method)} Discrepancies are estimates: their own error is not included.\
{vacuous}</p></details>"""
