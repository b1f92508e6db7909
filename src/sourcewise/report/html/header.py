"""The verdict, and what it is about."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sourcewise.report.html.groups import GROUPS, Group
from sourcewise.report.reasons import REFERENCE
from sourcewise.report.source_report import SourceReport


@dataclass(frozen=True)
class Slice:
    """A group's part of the bar under the verdict, in percent."""

    group: Group
    size: int
    left: float
    width: float


@dataclass(frozen=True)
class Header:
    """What the top of the page says.

    Attributes
    ----------
    verdict : str
    rows, sources : int
        Rows altogether, and sources besides the reference.
    reference : SourceRow, optional
    left_out : int
        Sources with too few rows to be looked at.
    slices : list of Slice
    """

    verdict: str
    rows: int
    sources: int
    reference: Any
    left_out: int
    slices: list[Slice]


def header(report: SourceReport, audit: Any, verdict: str, groups: list[str]) -> Header:
    """Gather what the top of the page says."""
    reference = next((row for row in report.sources if row.reason == REFERENCE), None)
    return Header(
        verdict,
        sum(row.rows for row in report.sources),
        len(report.sources) - (reference is not None),
        reference,
        0 if audit is None else len(audit.left_out),
        _slices(groups),
    )


def _slices(groups: list[str]) -> list[Slice]:
    sizes = [(GROUPS[style], groups.count(style)) for style in reversed(GROUPS)]
    total = max(sum(size for _, size in sizes), 1)
    found, left = [], 0.0
    for group, size in sizes:
        if size:
            width = 100.0 * size / total
            found.append(Slice(group, size, round(left, 3), round(max(width - 0.35, 0.2), 3)))
            left += width
    return found
