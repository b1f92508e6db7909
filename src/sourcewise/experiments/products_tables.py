"""Mean errors in the products studies: table 1 of the paper, and figure 1 as numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from sourcewise.experiments.layout import Line, Sheet, Table
from sourcewise.experiments.names import METHODS
from sourcewise.experiments.paper_numbers import products_numbers, products_ranges
from sourcewise.experiments.study_errors import StudyErrors
from sourcewise.experiments.summaries import Summary, summarise

PLUS_MINUS = "Mean error on the test rows ± its standard error."
CUT_OFF = "Digits are cut off, not rounded, as in the paper's table."
NOT_ALL = "Runs left out because some methods lack them: {left_out}."


def all_products_sheet(study: StudyErrors, remarks: list[str], *, published: bool) -> Sheet:
    """Take every product in turn as the target, all others as sources (table 1)."""
    summary = summarise(study.values.reshape(len(study.methods), -1))
    best = _best(summary)
    printed = products_numbers() if published else {}
    lines, records = [], []
    for k, method in enumerate(study.methods):
        paper = printed.get(method)
        cells = [_cell(summary, k, cut)]
        if published:
            cells += [f"{paper.error:.3f} ± {paper.standard_error:.4f}" if paper else "–"]
        bold = frozenset({0}) if k == best else frozenset()
        lines.append(Line(METHODS.get(method, method), cells, bold))
        records.append(
            _record(method, summary, k)
            | {
                "paper_error": paper.error if paper else "",
                "paper_standard_error": paper.standard_error if paper else "",
            }
        )
    table = Table(
        f"Mean classification error (products: {len(study.targets)}, runs: {summary.runs})",
        "Algorithm",
        ["Error", "In the paper"] if published else ["Error"],
        lines,
        [CUT_OFF, *_left_out(summary.left_out)],
    )
    title = "Products: each product as the target, all others as sources"
    return Sheet("products", title, [PLUS_MINUS, *remarks], [table], records)


def books_sheet(study: StudyErrors, remarks: list[str], *, published: bool) -> Sheet:
    """Take a book as the target, n non-books among ten sources (figure 1)."""
    summaries = [
        summarise(study.values[:, :, :, k].reshape(len(study.methods), -1))
        for k in range(len(study.numbers))
    ]
    best = [_best(summary) for summary in summaries]
    lines = [
        Line(
            METHODS.get(method, method),
            [_cell(summary, m, np.round) for summary in summaries],
            frozenset(k for k, which in enumerate(best) if which == m),
        )
        for m, method in enumerate(study.methods)
    ]
    records = [
        {"n": number} | _record(method, summary, m)
        for number, summary in zip(study.numbers, summaries, strict=True)
        for m, method in enumerate(study.methods)
    ]
    notes = _left_out(sum(summary.left_out for summary in summaries))
    if published:
        notes += [
            f"In the paper, {METHODS[method]} ranges from {low:.3f} to {high:.3f}."
            for method, (low, high) in products_ranges().items()
        ]
    runs = sorted({summary.runs for summary in summaries})
    shown = str(runs[0]) if len(runs) == 1 else f"{runs[0]} to {runs[-1]}"
    table = Table(
        f"Mean classification error against the number n of non-books (runs for each: {shown})",
        "Algorithm",
        [f"n = {number}" for number in study.numbers],
        lines,
        notes,
    )
    title = "Products: a book as the target, books and n non-books as sources"
    return Sheet("products-by-n", title, [PLUS_MINUS, *remarks], [table], records)


def cut(value: float, digits: int) -> float:
    """Drop digits, as the paper's table does.

    Examples
    --------
    >>> cut(0.28979, 3), cut(0.29, 2)
    (0.289, 0.29)
    """
    # A float just below the decimal it stands for (0.29 * 100 = 28.999...) must not lose a digit.
    return float(np.floor(value * 10**digits + 1e-9) / 10**digits)


def _cell(summary: Summary, method: int, shorten: Any) -> str:
    error, spread = summary.mean[method], summary.standard_error[method]
    if np.isnan(error):
        return "–"
    spread_shown = "–" if np.isnan(spread) else f"{shorten(spread, 4):.4f}"
    return f"{shorten(error, 3):.3f} ± {spread_shown}"


def _best(summary: Summary) -> int | None:
    return None if np.isnan(summary.mean).all() else int(np.nanargmin(summary.mean))


def _record(method: str, summary: Summary, k: int) -> dict[str, Any]:
    return {
        "method": method,
        "error": _number(summary.mean[k]),
        "standard_error": _number(summary.standard_error[k]),
        "standard_deviation": _number(summary.deviation[k]),
        "runs": summary.runs,
    }


def _number(value: float) -> float | str:
    return "" if np.isnan(value) else float(value)


def _left_out(number: int) -> list[str]:
    return [NOT_ALL.format(left_out=number)] if number else []
