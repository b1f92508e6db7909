"""The page, top to bottom."""

from __future__ import annotations

import base64
import hashlib
import math
from collections.abc import Callable
from importlib.resources import files
from typing import Any

import numpy as np

from sourcewise.report.html.cards import cards
from sourcewise.report.html.errors import errors
from sourcewise.report.html.groups import GROUPS, ONE, chip, group_sources
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
from sourcewise.report.verdict import Verdict, verdict

MOST_ROWS = 500
Z = 1.959964


def render(result: Any) -> str:
    """Lay out an audit, or the part of it that a fitted model knows by itself."""
    report: SourceReport = getattr(result, "report", result)
    audit = result if result is not report else None
    found = verdict(report)
    groups = group_sources(report, found)
    body = [_sources(report, groups, found.unused)]
    path = _path(report, groups)
    if path is not None:
        body.append(_trust_path(path, report))
    if audit is not None and audit.cards:
        disagree = [*found.set_aside, *found.doubted]
        body.append(cards(audit, {str(report.sources[i].source): groups[i] for i in disagree}))
    if report.context is not None:
        body += [_adequacy(report), _fine_print(report, audit)]
    if report.notes:
        body.insert(0, _notes(report.notes))
    if audit is not None:
        body.insert(0, errors(audit.comparison))
        body.insert(0, _beforehand(audit))
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


def _notes(notes: tuple[str, ...]) -> str:
    lines = "".join(f"<li>{words(note)}</li>" for note in notes)
    return f"<section><h2>Before you rely on this</h2><ul>{lines}</ul></section>"


def _hash(content: str) -> str:
    digest = hashlib.sha256(content.encode()).digest()
    return "sha256-" + base64.b64encode(digest).decode()


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


# -- 2. the sources --------------------------------------------------------------------------


def _sources(report: SourceReport, groups: list[str], unused: list[int]) -> str:
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
        label = chip(group, "agrees, but hardly counts" if i in unused else None)
        told = row.reason in (REFERENCE, ONE[group])
        because = "" if told else f" <span>{words(row.reason)}</span>"
        p = -1.0 if math.isnan(row.p_value) else row.p_value
        lines.append(f"""
<tr class="{group}">
<th scope="row" data-value="{words(row.source)}">{text(row.source)}</th>
<td class="number" data-label="Weight" data-value="{row.weight!r}"><span class="value">\
{percent(row.weight)}</span>{bar(row.weight / heaviest)}</td>
<td class="number" data-label="Discrepancy" data-value="{row.discrepancy!r}"><span class="value">\
{row.discrepancy:.3f}</span> {between}{gauge}</td>
<td data-label="p-value" data-value="{p!r}">{"" if own else p_value(row.p_value)}</td>
<td class="number" data-label="Rows" data-value="{row.rows}">{count(row.rows)}\
{bar(row.rows / longest, tone="ours-fill")}</td>
<td class="reason" data-value="{group} {words(row.reason)}">{label}{because}</td>
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
    line = "" if report.cutoff > farthest else " The upright line is the cut-off μ."
    return f"""
<section aria-labelledby="ranked"><h2 id="ranked">The sources, ranked</h2>
<p class="lead">The <b>weight</b> is a source's share in training. The <b>discrepancy</b> says how
differently models behave on its rows and on yours: 0 is the same, 1 the most there can be. A small
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
    verb, mark = "was chosen", "The dotted upright marks the λ that was chosen"
    if report.averaged:
        verb = "counts most"
        mark = (
            f"The weights above are an average over {len(report.shares)} values of λ, by how well "
            "each does on your reference; the dotted upright marks the one with the largest share"
        )
    if math.isinf(report.trade_off):
        chosen = f"<b>λ = ∞ {verb}.</b> With it every row counts the same, whatever its source."
    else:
        chosen = (
            f"<b>λ = {number(report.trade_off, 2)} {verb}.</b> With it a source counts only if its "
            f"discrepancy is below {number(report.cutoff)} (μ)."
        )
    return f"""
<section aria-labelledby="path"><h2 id="path">The trust path</h2>
<p class="lead">One number, λ, says how much closeness to your reference is worth against more
rows. To the left only your reference counts; to the right every row does. Each line is a source.
{mark};
move the slider to see what one λ alone would do.</p>
<ul class="legend">{legend}</ul>
{drawing(path)}
<div class="now-box"><div><output class="mu" id="mu-words" for="lambda" aria-live="polite">{chosen}
</output></div><ol id="weights-now"></ol></div>
</section>"""


# -- before anything else ----------------------------------------------------------------------


def _beforehand(audit: Any) -> str:
    """Say what makes results worthless, and which rows could not be used."""
    parts = [f"<p>{words(sentence)}</p>" for sentence in audit.leaks]
    if audit.skipped:
        lines = "".join(f"<li>{words(item)}</li>" for item in audit.skipped[:MOST_ROWS])
        rows = count(sum(item.rows for item in audit.skipped))
        parts.append(
            f"<details><summary>Rows that could not be used ({rows})</summary>"
            f"<ul>{lines}</ul></details>"
        )
    if not parts:
        return ""
    return f"""
<section aria-labelledby="first"><h2 id="first">Before you read on</h2>
{"".join(parts)}
</section>"""


# -- 5. the reference ------------------------------------------------------------------------


def _or_none(value: float, shown: Callable[[float], str]) -> str:
    return shown(value) if math.isfinite(value) else "–"


def _adequacy(report: SourceReport) -> str:
    assert report.context is not None
    found = report.context.adequacy
    enough = math.isinf(report.cutoff) or found.detectable_discrepancy <= report.cutoff
    opinion = (
        "It is large enough to find differences smaller than the cut-off."
        if enough
        else "Sources that differ by more than the cut-off may still go unnoticed: more trusted "
        "rows would help."
    )
    tiles = [
        (count(found.rows), "trusted rows"),
        (count(found.source_rows), "rows of the median source"),
        (_or_none(found.detectable_share, percent), "random labels found with power 0.8"),
        (_or_none(found.detectable_discrepancy, number), "discrepancy of such a source"),
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
        ("Complexity: what the class of models can fit by chance", bound.complexity_term),
        ("Deviation: the chance in drawing rows", bound.deviation_term),
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
