"""The page: what its templates are given."""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files
from typing import Any

from sourcewise.report.html.cards import cards_by_position, cards_data
from sourcewise.report.html.enough import enough
from sourcewise.report.html.fine_print import fine_print
from sourcewise.report.html.gain import gain
from sourcewise.report.html.groups import group_sources
from sourcewise.report.html.header import header
from sourcewise.report.html.sources import sources
from sourcewise.report.html.templating import as_it_is, environment
from sourcewise.report.source_report import SourceReport
from sourcewise.report.verdict import verdict

MOST_SKIPPED = 500


def render(result: Any) -> str:
    """Lay out an audit, or the part of it that a fitted model knows by itself."""
    template = environment().get_template("page.html")
    style, script = (
        files(__package__).joinpath(name).read_text(encoding="utf-8")
        for name in ("style.css", "page.js")
    )
    return template.render(
        style=as_it_is(style),
        script=as_it_is(script),
        style_hash=_hash(style),
        script_hash=_hash(script),
        **_content(result),
    )


def _hash(content: str) -> str:
    digest = hashlib.sha256(content.encode()).digest()
    return "sha256-" + base64.b64encode(digest).decode()


def _content(result: Any) -> dict[str, Any]:
    """Gather what each section says; None where there is nothing to say."""
    report: SourceReport = getattr(result, "report", result)
    audit = result if result is not report else None
    found = verdict(report)
    groups = group_sources(report, found)
    cards = cards_by_position(report, audit, groups)
    tables = sources(report, groups, found.unused, cards)
    shown = [line.at for table in tables.tables for line in table.lines]
    return {
        "averaged": report.averaged,
        "header": header(report, audit, str(found), groups),
        "notes": report.notes,
        "leaks": () if audit is None else audit.leaks,
        "skipped": () if audit is None else audit.skipped[:MOST_SKIPPED],
        "skipped_rows": 0 if audit is None else sum(item.rows for item in audit.skipped),
        "gain": None if audit is None else gain(audit.comparison),
        "sources": tables,
        "cards": cards_data(shown, cards, getattr(audit, "strips", {})) if cards else None,
        "enough": None if report.context is None else enough(report),
        "fine": fine_print(report, audit, groups, shown),
    }
