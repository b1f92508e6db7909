"""Mean errors in the products studies: table 1 of the paper, and figure 1 as numbers."""

from __future__ import annotations

import numpy as np

from sourcewise.experiments.layout import Line, Sheet, Table
from sourcewise.experiments.means import (
    PLUS_MINUS,
    best_method,
    left_out_notes,
    mean_cell,
    mean_lines,
    mean_record,
)
from sourcewise.experiments.names import METHODS
from sourcewise.experiments.paper_numbers import products_numbers, products_ranges
from sourcewise.experiments.study_errors import StudyErrors
from sourcewise.experiments.summaries import summarise

CUT_OFF = "Digits are cut off, not rounded, as in the paper's table."


def all_products_sheet(study: StudyErrors, remarks: list[str], *, published: bool) -> Sheet:
    """Take every product in turn as the target, all others as sources (table 1)."""
    summary = summarise(study.values.reshape(len(study.methods), -1))
    best = best_method(summary)
    printed = products_numbers() if published else {}
    lines, records = [], []
    for k, method in enumerate(study.methods):
        paper = printed.get(method)
        cells = [mean_cell(summary, k, cut)]
        if published:
            cells += [f"{paper.error:.3f} ± {paper.standard_error:.4f}" if paper else "–"]
        bold = frozenset({0}) if k == best else frozenset()
        lines.append(Line(METHODS.get(method, method), cells, bold))
        records.append(
            mean_record(method, summary, k)
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
        [CUT_OFF, *left_out_notes(summary.left_out)],
    )
    title = "Products: each product as the target, all others as sources"
    return Sheet("products", title, [PLUS_MINUS, *remarks], [table], records)


def books_sheet(study: StudyErrors, remarks: list[str], *, published: bool) -> Sheet:
    """Take a book as the target, n non-books among ten sources (figure 1)."""
    summaries = [
        summarise(study.values[:, :, :, k].reshape(len(study.methods), -1))
        for k in range(len(study.numbers))
    ]
    lines = mean_lines(study.methods, summaries)
    records = [
        {"n": number} | mean_record(method, summary, m)
        for number, summary in zip(study.numbers, summaries, strict=True)
        for m, method in enumerate(study.methods)
    ]
    notes = left_out_notes(sum(summary.left_out for summary in summaries))
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
