"""The page: what its templates are given, and how that is escaped: automatically, all of it."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from sourcewise.extras import import_extra
from sourcewise.report.html import numbers
from sourcewise.report.html.fine_print import fine_print
from sourcewise.report.html.gain import enough, gain
from sourcewise.report.html.sources import (
    GROUPS,
    cards_by_position,
    cards_data,
    group_sources,
    sources,
)
from sourcewise.report.reasons import REFERENCE
from sourcewise.report.source_report import SourceReport
from sourcewise.report.verdict import verdict
from sourcewise.safe_text import embedded, shortened, visible

if TYPE_CHECKING:
    from jinja2 import Environment

JINJA_MISSING = "A page needs jinja2: {how}."
MOST_SKIPPED = 500


def render(result: Any) -> str:
    """Lay out an audit, or the part of it that a fitted model knows by itself."""
    template = environment().get_template("page.html")
    style, script = (
        files(__package__).joinpath(name).read_text(encoding="utf-8")
        for name in ("style.css", "page.js")
    )
    return template.render(
        style=_as_it_is(style),
        script=_as_it_is(script),
        style_hash=_hash(style),
        script_hash=_hash(script),
        **_content(result),
    )


@cache
def environment() -> Environment:
    """Return the templates' environment; the only place where jinja2 is asked for."""
    jinja2 = import_extra("jinja2", "cli", JINJA_MISSING)
    made: Environment = jinja2.Environment(
        loader=jinja2.PackageLoader("sourcewise.report.html"),
        autoescape=True,
        finalize=_shown,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    for name in ("count", "counted", "number", "percent", "p_value", "weight"):
        made.filters[name] = getattr(numbers, name)
    made.filters.update(shortened=shortened, embedded=lambda found: _as_it_is(embedded(found)))
    return made


def _shown(value: Any) -> Any:
    """Make any text visible before it is escaped; what a template made is done already."""
    if hasattr(value, "__html__"):
        return value
    return visible(value) if isinstance(value, str) else value


def _as_it_is(text: str) -> Any:
    """Mark a text of ours that needs no escaping: the style, the script, data for it."""
    from markupsafe import Markup

    return Markup(text)


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
    shown = [line["at"] for table in tables["tables"] for line in table["lines"]]
    return {
        "averaged": report.averaged,
        "header": _header(report, audit, str(found), groups),
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


def _header(report: SourceReport, audit: Any, said: str, groups: list[str]) -> dict[str, Any]:
    """Gather what the top of the page says; its sources are those besides the reference."""
    reference = next((row for row in report.sources if row.reason == REFERENCE), None)
    sizes = [(GROUPS[style], groups.count(style)) for style in reversed(GROUPS)]
    total = max(sum(size for _, size in sizes), 1)
    slices, left = [], 0.0  # of the bar under the verdict, in percent
    for group, size in sizes:
        if size:
            width = 100.0 * size / total
            part = {"left": round(left, 3), "width": round(max(width - 0.35, 0.2), 3)}
            slices.append({"group": group, "size": size, **part})
            left += width
    return {
        "verdict": said,
        "rows": sum(row.rows for row in report.sources),
        "sources": len(report.sources) - (reference is not None),
        "reference": reference,
        "left_out": 0 if audit is None else len(audit.left_out),
        "slices": slices,
    }
