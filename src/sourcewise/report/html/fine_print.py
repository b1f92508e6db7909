"""What a reader can do without: statistics, trade-offs, the guarantee, how the page was made."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from sourcewise.report.html.numbers import number, percent
from sourcewise.report.html.sources import Z
from sourcewise.report.html.trust_path import Drawing, TrustPath, drawing
from sourcewise.report.source_report import SourceReport, SourceRow

MOST_NAMED, MOST_STATISTICS = 50, 500
TERMS = (
    ("Discrepancy: the price of data from elsewhere", "discrepancy_term"),
    ("Complexity: what the class of models can fit by chance", "complexity_term"),
    ("Deviation: the chance in drawing rows", "deviation_term"),
)


@dataclass(frozen=True)
class Statistics:
    """A source's numbers."""

    row: SourceRow
    group: str
    low: float
    high: float


@dataclass(frozen=True)
class Bound:
    """The guarantee in words."""

    sure: str
    terms: list[tuple[str, str]]
    total: str
    method: str
    vacuous: str


@dataclass(frozen=True)
class FinePrint:
    """All that the section says.

    Attributes
    ----------
    statistics : list of Statistics
    not_listed : int
        Sources of which they are not shown.
    rule : list of str
        Which sources count.
    path : Drawing, optional
    chosen : str
        What the slider says before it is moved.
    adequacy : str
    bound : Bound, optional
    columns : list of (column, what was done to it)
    left_out : list of (source, rows)
    left_out_total : int
    facts_title : str
    facts : dict
    """

    statistics: list[Statistics]
    not_listed: int
    rule: list[str]
    path: Drawing | None
    chosen: str
    adequacy: str
    bound: Bound | None
    columns: list[tuple[str, str]]
    left_out: list[tuple[str, int]]
    left_out_total: int
    facts_title: str
    facts: dict[str, str]


def fine_print(report: SourceReport, audit: Any, groups: list[str], shown: list[int]) -> FinePrint:
    """Gather it; ``shown`` are the sources of the tables above, in their order."""
    context = report.context
    left_out = {} if audit is None else audit.left_out
    facts = {} if context is None else dict(context.parameters)
    title = "The model's parameters"
    if audit is not None:
        facts, title = dict(audit.facts), "How this page was made"
    own = [i for i, group in enumerate(groups) if group == "own"]
    return FinePrint(
        [_statistics(report.sources[i], groups[i]) for i in [*own, *shown][:MOST_STATISTICS]],
        max(len(report.sources) - MOST_STATISTICS, 0),
        _rule(report),
        _path(report, groups),
        _chosen(report),
        "" if context is None else str(context.adequacy),
        None if context is None else _bound(context.bound),
        [] if audit is None else list(audit.columns),
        list(left_out.items())[:MOST_NAMED],
        len(left_out),
        title,
        facts,
    )


def _statistics(row: SourceRow, group: str) -> Statistics:
    half = Z * row.standard_error
    return Statistics(row, group, max(row.discrepancy - half, 0.0), row.discrepancy + half)


def _rule(report: SourceReport) -> list[str]:
    """Say which sources count, so that it is true of the weights beside it."""
    trade_off, cutoff = _trade_off(report), number(report.cutoff)
    if math.isinf(report.trade_off):
        alone = "every row counts the same, whatever its source"
    elif report.trade_off == 0:
        alone = "only what is closest to your reference counts"
    else:
        alone = f"a source counts only if its discrepancy is below {cutoff} (the cut-off μ)"
    if not report.averaged:
        return [f"The trade-off λ = {trade_off} was chosen: {alone}."]
    lines = [
        f"The weights are an average over {len(report.shares)} values of λ, by how well each "
        f"does on your reference. λ = {trade_off} counts most: alone, {alone}."
    ]
    above = sum(row.weight > 0 and row.discrepancy >= report.cutoff for row in report.sources)
    if above:
        has = "1 source above it keeps" if above == 1 else f"{above:,} sources above it keep"
        lines.append(f"Some of the others have a higher cut-off, so {has} some weight.")
    return lines


def _trade_off(report: SourceReport) -> str:
    return number(report.trade_off, 2)


def _chosen(report: SourceReport) -> str:
    verb = "counts most" if report.averaged else "was chosen"
    if math.isinf(report.trade_off):
        return f"λ = ∞ {verb}. With it every row counts the same, whatever its source."
    return (
        f"λ = {_trade_off(report)} {verb}. With it alone a source counts only if its discrepancy "
        f"is below {number(report.cutoff)} (μ)."
    )


def _path(report: SourceReport, groups: list[str]) -> Drawing | None:
    if report.context is None or len(report.sources) < 2:
        return None
    return drawing(TrustPath.from_report(report, groups))


def _bound(bound: Any) -> Bound:
    unknown = bound.complexity_method == "given by the caller"
    return Bound(
        percent(1 - bound.delta, 0),
        [(what, number(getattr(bound, name))) for what, name in TERMS],
        number(bound.total),
        "The complexity of this learner is not known and counts as 0 here."
        if unknown
        else f"Complexity: {bound.complexity_method}.",
        f"No loss exceeds {bound.loss_bound:.3g}, so the bound promises nothing yet: it is a "
        "worst case, and worst cases need many rows."
        if bound.vacuous
        else "",
    )
