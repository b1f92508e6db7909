"""What a page calls a source: its group, and the sign and colour of that."""

from __future__ import annotations

from sourcewise.report.html.parts import words
from sourcewise.report.reasons import AGREES, REFERENCE, TOO_FEW
from sourcewise.report.source_report import SourceReport
from sourcewise.report.verdict import Verdict

# Style, sign and name of each group of sources: never shown by colour alone.
GROUPS = {
    "own": ("★", "your reference"),
    "agree": ("✓", "agree with it"),
    "doubted": ("≈", "differ a little"),
    "aside": ("✕", "set aside"),
    "small": ("?", "too small to tell"),
}
# The same for one source; where the reason says no more than that, it is left out.
ONE = {
    "own": "your reference",
    "agree": AGREES,
    "doubted": "counts for less",
    "aside": "set aside",
    "small": TOO_FEW,
}


def group_sources(report: SourceReport, found: Verdict) -> list[str]:
    """Group of every source of the report."""
    groups = ["own" if row.reason == REFERENCE else "agree" for row in report.sources]
    for name, which in (
        ("aside", found.set_aside),
        ("doubted", found.doubted),
        ("small", found.too_small),
    ):
        for i in which:
            groups[i] = name
    return groups


def chip(group: str, label: str | None = None) -> str:
    """Label in the colour and with the sign of a group."""
    return f'<span class="chip {group}">{GROUPS[group][0]} {words(label or ONE[group])}</span>'
