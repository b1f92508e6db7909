"""The paper's tables from results, the paper's own numbers beside them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from sourcewise.experiments.layout import Line, Sheet, Table
from sourcewise.experiments.names import ALL_PRODUCTS, ANIMALS, CORRUPTIONS, METHODS, PRODUCTS
from sourcewise.experiments.paper_numbers import (
    Printed,
    notebook_products,
    notebook_products_by_n,
    on_published_data,
    products_numbers,
    products_ranges,
)
from sourcewise.experiments.significance_tables import significance_sheets
from sourcewise.experiments.study_errors import Studies, StudyErrors, Summary, span, summarise

EMPTY = "The results are empty: no run is finished yet; let 'sourcewise reproduce' go on."
UNKNOWN_STUDIES = "The results hold no study with tables; they hold {studies}."
MADE_BY = "Made by sourcewise {sourcewise}, seed {seed}, data: {data}."
STAND_IN = "The data stand in for the paper's, so its numbers are not shown."
PLUS_MINUS = "Mean error on the test rows ± its standard error."
NOT_ALL = "Runs left out because some methods lack them: {left_out}."
NOTEBOOK = "Lines 'in the paper' are what the authors' notebook prints; the paper has their range."
CUT_OFF = "Digits are cut off, not rounded, as in the paper's table."
OVER_TARGETS = (
    "Means over targets and repeats. Targets of one repeat share their rows, so the standard error "
    "is that of the repeats' means over targets."
)


def build_sheets(studies: Studies) -> list[Sheet]:
    """Make every table that the results have the numbers for."""
    check_not_empty(studies)
    published, errors = on_published_data(studies.settings), studies.errors
    sheets = []
    if ALL_PRODUCTS in errors:
        sheets.append(_all_products_sheet(errors[ALL_PRODUCTS], published=published))
    if PRODUCTS in errors:
        sheets.append(_books_sheet(errors[PRODUCTS], published=published))
    if ANIMALS in errors:
        animals = errors[ANIMALS]
        sheets += significance_sheets(animals, published=published)
        sheets += [_animals_sheet(animals.at_share(share)) for share in animals.shares]
    if not sheets:
        raise ValueError(UNKNOWN_STUDIES.format(studies=studies_in_words(studies)))
    told = {k: studies.settings.get(k, "not recorded") for k in ("sourcewise", "seed", "data")}
    provenance = [MADE_BY.format(**told), *([] if published else [STAND_IN])]
    return [replace(sheet, remarks=[*sheet.remarks, *provenance]) for sheet in sheets]


def check_not_empty(studies: Studies) -> None:
    """Refuse results without a row."""
    if not studies.errors:
        raise ValueError(EMPTY)


def studies_in_words(studies: Studies) -> str:
    """Name the studies there are."""
    return ", ".join(map(repr, sorted(studies.errors)))


def _all_products_sheet(study: StudyErrors, *, published: bool) -> Sheet:
    """Take every product in turn as the target, all others as sources (table 1)."""
    summary = summarise(study.values)
    table = Table(
        f"Mean classification error (products: {len(study.targets)}, runs: {summary.runs})",
        "Algorithm",
        ["Error"],
        _mean_lines(study.methods, [summary], cut),
        [CUT_OFF, *_left_out_notes(summary.left_out)],
    )
    records = _mean_records(study.methods, summary)
    sides = [("paper", "In the paper", products_numbers(), 3)]
    sides += [("notebook", "Authors' notebook", notebook_products(), 5)]
    for name, title, numbers, digits in sides:
        for method, line, record in zip(study.methods, table.lines, records, strict=True):
            found = numbers.get(method) if published else None
            record[f"{name}_error"], record[f"{name}_standard_error"] = found or ("", "")
            if published:
                line.cells.append(_as_printed(found, digits))
        if published:
            table.columns.append(title)
    title = "Products: each product as the target, all others as sources"
    return Sheet("products", title, [PLUS_MINUS], [table], records)


def _as_printed(number: Printed | None, digits: int) -> str:
    """Write a number as it was printed: an error to so many digits, its spread to one more."""
    if number is None:
        return "–"
    return f"{number.error:.{digits}f} ± {number.standard_error:.{min(digits + 1, 5)}f}"


def _books_sheet(study: StudyErrors, *, published: bool) -> Sheet:
    """Take a book as the target, n non-books among ten sources (figure 1)."""
    summaries = [summarise(study.values[:, :, :, k]) for k in range(len(study.numbers))]
    notes = _left_out_notes(sum(summary.left_out for summary in summaries))
    if published:
        notes += [
            f"In the paper, {METHODS[method]} ranges from {low:.3f} to {high:.3f}."
            for method, (low, high) in products_ranges().items()
        ]
    title = (
        "Mean classification error against the number n of non-books "
        f"(runs for each: {span(summaries)})"
    )
    table, records = _by_number(study, summaries, title, notes)
    if published:
        table = _with_notebook(study, table, records)
    title = "Products: a book as the target, books and n non-books as sources"
    return Sheet("products-by-n", title, [PLUS_MINUS], [table], records)


def _with_notebook(study: StudyErrors, table: Table, records: list[dict[str, Any]]) -> Table:
    """Put the errors of the authors' notebook below ours, for the methods it has them for."""
    known = notebook_products_by_n()
    for record in records:
        errors = known.get(record["method"], [])
        record["notebook_error"] = errors[record["n"]] if record["n"] < len(errors) else ""
    lines = []
    for method, line in zip(study.methods, table.lines, strict=True):
        lines.append(line)
        errors = known.get(method, [])
        if errors:
            cells = [f"{errors[n]:.4f}" if n < len(errors) else "" for n in study.numbers]
            lines.append(Line("", cells, printed=True))
    notes = [*table.notes, NOTEBOOK] if len(lines) > len(table.lines) else table.notes
    return replace(table, lines=lines, notes=notes)


def _animals_sheet(study: StudyErrors) -> Sheet:
    """Mean error of every method, a table for each corruption; all runs of one p."""
    (share,) = study.shares
    tables, records = [], []
    for c, corruption in enumerate(study.corruptions):
        errors = study.values[:, 0, c]  # (methods, numbers, targets, repeats)
        # A repeat that lacks a target would average over others than the rest.
        summaries = [summarise(errors[:, k].mean(axis=1)) for k in range(len(study.numbers))]
        title = (
            f"Mean classification error, p = {share:g}, {CORRUPTIONS.get(corruption, corruption)} "
            f"(targets: {len(study.targets)}, repeats: {span(summaries)})"
        )
        there = ~np.isnan(errors)
        missing = int((there.any(axis=0) & ~there.all(axis=0)).sum())
        about = {"p": share, "corruption": corruption}
        table, lines = _by_number(study, summaries, title, _left_out_notes(missing), about)
        tables.append(table)
        records += lines
    title = f"Animals: mean errors, p = {share:g}"
    return Sheet(f"animals-errors-p{share:g}", title, [PLUS_MINUS, OVER_TARGETS], tables, records)


def _by_number(
    study: StudyErrors,
    summaries: list[Summary],
    title: str,
    notes: list[str],
    about: dict[str, Any] | None = None,
) -> tuple[Table, list[dict[str, Any]]]:
    """Make a table with a column for every n, and its records."""
    columns = [f"n = {number}" for number in study.numbers]
    records = [
        (about or {}) | {"n": number} | record
        for number, summary in zip(study.numbers, summaries, strict=True)
        for record in _mean_records(study.methods, summary)
    ]
    return Table(title, "Algorithm", columns, _mean_lines(study.methods, summaries), notes), records


def _mean_lines(
    methods: list[str], summaries: list[Summary], shorten: Callable[..., Any] = np.round
) -> list[Line]:
    """Return a line for every method, a cell for every summary, the lowest mean of each in bold."""

    def cell(summary: Summary, m: int) -> str:
        error, spread = summary.mean[m], summary.standard_error[m]
        if np.isnan(error):
            return "–"
        return f"{shorten(error, 3):.3f} ± " + (
            "–" if np.isnan(spread) else f"{shorten(spread, 4):.4f}"
        )

    best = [None if np.isnan(s.mean).all() else int(np.nanargmin(s.mean)) for s in summaries]
    return [
        Line(
            METHODS.get(method, method),
            [cell(summary, m) for summary in summaries],
            frozenset(k for k, which in enumerate(best) if which == m),
        )
        for m, method in enumerate(methods)
    ]


def _mean_records(methods: list[str], summary: Summary) -> list[dict[str, Any]]:
    """Return the same numbers, not rounded; nothing for NaN."""
    names = ("error", "standard_error", "standard_deviation")
    columns = zip(summary.mean, summary.standard_error, summary.deviation, strict=True)
    return [
        {
            "method": method,
            **{n: "" if np.isnan(v) else float(v) for n, v in zip(names, values, strict=True)},
            "runs": summary.runs,
        }
        for method, values in zip(methods, columns, strict=True)
    ]


def _left_out_notes(number: int) -> list[str]:
    return [NOT_ALL.format(left_out=number)] if number else []


def cut(value: float, digits: int) -> float:
    """Drop digits, as the paper's table does.

    Examples
    --------
    >>> cut(0.28979, 3), cut(0.29, 2)
    (0.289, 0.29)
    """
    # A float just below the decimal it stands for (0.29 * 100 = 28.999...) must not lose a digit.
    return float(np.floor(value * 10**digits + 1e-9) / 10**digits)
