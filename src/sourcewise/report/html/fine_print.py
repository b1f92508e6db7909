"""What a reader can do without: statistics, trade-offs, the guarantee, how the page was made."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from sourcewise.core.weights import WeightProblem
from sourcewise.report.html.numbers import nice_ceiling, number, percent
from sourcewise.report.html.sources import STYLES, interval
from sourcewise.report.source_report import SourceReport

MOST_NAMED, MOST_STATISTICS = 50, 500
TERMS = (
    ("Discrepancy: the price of data from elsewhere", "discrepancy_term"),
    ("Complexity: what the class of models can fit by chance", "complexity_term"),
    ("Deviation: the chance in drawing rows", "deviation_term"),
)
STEPS = 1000  # of the slider
# A few lines stay readable; hundreds would make the page heavy.
MOST_LINES = 40
POINTS = 80
LONGEST = 200


def fine_print(
    report: SourceReport, audit: Any, groups: list[str], shown: list[int]
) -> dict[str, Any]:
    """Gather it; ``shown`` are the sources of the tables above, in their order."""
    context = report.context
    left_out = {} if audit is None else audit.left_out
    facts = {} if context is None else dict(context.parameters)
    title = "The model's parameters"
    if audit is not None:
        facts, title = dict(audit.facts), "How this page was made"
    own = [i for i, group in enumerate(groups) if group == "own"]
    statistics = []
    for i in [*own, *shown][:MOST_STATISTICS]:
        low, high = interval(report.sources[i])
        statistics.append({"row": report.sources[i], "group": groups[i], "low": low, "high": high})
    alone = context is None or len(report.sources) < 2
    return {
        "statistics": statistics,
        "not_listed": max(len(report.sources) - MOST_STATISTICS, 0),
        "rule": _rule(report),
        "path": None if alone else trust_path(report, groups),
        "chosen": _chosen(report),
        "adequacy": "" if context is None else str(context.adequacy),
        "bound": None if context is None else _bound(context.bound),
        "columns": [] if audit is None else list(audit.columns),
        "left_out": list(left_out.items())[:MOST_NAMED],
        "left_out_total": len(left_out),
        "facts_title": title,
        "facts": facts,
    }


def _rule(report: SourceReport) -> list[str]:
    """Say which sources count, so that it is true of the weights beside it."""
    trade_off, cutoff = number(report.trade_off, 2), number(report.cutoff)
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


def _chosen(report: SourceReport) -> str:
    """Say what the slider says before it is moved."""
    verb = "counts most" if report.averaged else "was chosen"
    if math.isinf(report.trade_off):
        return f"λ = ∞ {verb}. With it every row counts the same, whatever its source."
    return (
        f"λ = {number(report.trade_off, 2)} {verb}. With it alone a source counts only if its "
        f"discrepancy is below {number(report.cutoff)} (μ)."
    )


def _bound(bound: Any) -> dict[str, Any]:
    """Put the guarantee into words."""
    unknown = bound.complexity_method == "given by the caller"
    return {
        "sure": percent(1 - bound.delta, 0),
        "terms": [(what, number(getattr(bound, name))) for what, name in TERMS],
        "total": number(bound.total),
        "method": "The complexity of this learner is not known and counts as 0 here."
        if unknown
        else f"Complexity: {bound.complexity_method}.",
        "vacuous": f"No loss exceeds {bound.loss_bound:.3g}, so the bound promises nothing yet: it "
        "is a worst case, and worst cases need many rows."
        if bound.vacuous
        else "",
    }


# -- the trust path: weights against the trade-off, and a slider that recomputes them ----------


def trust_path(report: SourceReport, groups: list[str]) -> dict[str, Any]:
    """Compute lines, axes, where the slider stands, and what it needs to recompute weights."""
    assert report.context is not None
    names = [str(row.source) for row in report.sources]
    discrepancies = np.array([row.discrepancy for row in report.sources])
    sizes = np.array(report.context.sizes)
    problem = WeightProblem.from_sources(discrepancies, sizes)
    low, high = _span(problem, report.trade_off)
    at = np.concatenate([[0.0], np.geomspace(low, high, POINTS), [np.inf]])
    weights = np.stack([problem.weights(t) for t in at])
    # At 0 the reference may have all the weight, and hardly any just beside: that cannot be drawn.
    top = nice_ceiling(min(1.0, float(weights[1:].max())))
    x = [position(t, low, high) for t in at]
    important = np.argsort(-weights.max(axis=0), kind="stable")[:MOST_LINES]
    return {
        "legend": [group for style, group in STYLES.items() if style in groups],
        "lines": [  # the most important last, so that it lies on top
            {
                "style": groups[i],
                "name": names[i][:80],
                "points": _points(x, weights[:, i] / top),
            }
            for i in important[::-1]
        ],
        "labels": [percent(top * share, 0) for share in (1, 0.75, 0.5, 0.25, 0)],
        "ticks": [_tick(low * (high / low) ** share) for share in (0.25, 0.5, 0.75)],
        "chosen": round(position(report.trade_off, low, high), 1),
        "steps": STEPS,
        "data": {
            "names": [name[:LONGEST] for name in names],
            "groups": groups,
            "d": [float(f"{d:.12g}") for d in discrepancies],
            "m": [float(f"{m:.12g}") for m in sizes],
            "chosen": None if math.isinf(report.trade_off) else report.trade_off,
            "low": low,
            "high": high,
        },
    }


def _span(problem: WeightProblem, trade_off: float) -> tuple[float, float]:
    """Return lambdas between which something happens, the chosen one among them."""
    entries = problem.breakpoints
    entries = entries[entries > 0]
    low, high = (entries.min() / 3, entries.max() * 6) if len(entries) else (0.1, 100.0)
    # More than four decades would squeeze what matters into a corner.
    low = max(low, high * 1e-4)
    if 0 < trade_off < math.inf:
        low, high = min(low, trade_off / 2), max(high, trade_off * 2)
    return float(low), float(high)


def position(trade_off: float, low: float, high: float) -> float:
    """Where a lambda lies on the axis of 0 to 1000, whose ends are 0 and infinity."""
    if trade_off <= 0:
        return 0.0
    if math.isinf(trade_off):
        return 1000.0
    step = 1 + math.log(trade_off / low) / math.log(high / low) * (STEPS - 2)
    return 1000.0 * min(max(step, 1.0), STEPS - 1.0) / STEPS


def _points(x: list[float], shares: np.ndarray) -> str:
    """Write a line, without the points in the middle of a level stretch."""
    y = [round(200 * (1 - min(share, 1.0)), 1) for share in shares.tolist()]
    kept = [k for k in range(len(y)) if not (0 < k < len(y) - 1 and y[k - 1] == y[k] == y[k + 1])]
    return " ".join(f"{x[k]:.0f},{y[k]:g}" for k in kept)


def _tick(value: float) -> str:
    return f"{value:.2g}" if 0.001 <= value < 1e5 else f"{value:.0e}"
