"""What weighted sources gain, in cross-validated error."""

from __future__ import annotations

import math
from typing import Any

from sourcewise.report.html.parts import nice_ceiling, number, percent, words

LEADS = {
    "reference only": "train on your trusted rows alone",
    "everything": "train on all rows alike",
    "sourcewise": "weigh the sources first",
}


def errors(comparison: Any) -> str:
    """Lay out the errors of the three ways to train."""
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
<section aria-labelledby="gain"><h2 id="gain">What you gain</h2>
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
