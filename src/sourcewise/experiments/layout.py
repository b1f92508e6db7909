"""Tables as text, Markdown, CSV and LaTeX."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

from sourcewise.safe_text import csv_text, one_line

WIDTH = 80
LATEX_WIDTH = 100  # characters of cells that go on a page, besides the first column
IN_PAPER = "in the paper"


@dataclass(frozen=True)
class Line:
    """A row of a table."""

    label: str
    cells: list[str]
    bold: frozenset[int] = frozenset()  # columns whose cell stands out
    printed: bool = False  # whether these are the paper's own numbers, for the row above


@dataclass(frozen=True)
class Table:
    """A table as a reader sees it."""

    title: str
    corner: str
    columns: list[str]
    lines: list[Line]
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Sheet:
    """Tables that belong together: one file in each format."""

    name: str  # of the files, without what says the format
    title: str
    remarks: list[str]  # sentences to be read before the tables
    tables: list[Table]
    records: list[dict[str, Any]]  # the same numbers, not rounded, one line each


def _passed(sheet: Sheet, guard: Callable[[str], str]) -> Sheet:
    """Pass every text through a guard: names come from a file that anybody may have made."""
    tables = [
        Table(
            guard(table.title),
            guard(table.corner),
            [*map(guard, table.columns)],
            [
                replace(line, label=guard(line.label), cells=[*map(guard, line.cells)])
                for line in table.lines
            ],
            [*map(guard, table.notes)],
        )
        for table in sheet.tables
    ]
    return replace(
        sheet, title=guard(sheet.title), remarks=[*map(guard, sheet.remarks)], tables=tables
    )


def as_text(sheet: Sheet) -> str:
    """Lay out for a terminal of 80 columns; a wide table becomes several, one below the other."""
    sheet = _passed(sheet, one_line)
    parts = [*_filled(sheet.title), "=" * min(len(sheet.title), WIDTH), *_filled(*sheet.remarks)]
    for table in sheet.tables:
        parts += ["", *_filled(table.title), *_text_blocks(table), *_filled(*table.notes)]
    return "\n".join(parts) + "\n"


def as_markdown(sheet: Sheet) -> str:
    """Lay out as Markdown (GitHub's tables)."""
    sheet = _passed(sheet, _markdown)
    parts = [f"# {sheet.title}", *sheet.remarks]
    for table in sheet.tables:
        parts.append(f"## {table.title}")
        rows = [_pipes([table.corner, *table.columns])]
        rows.append(_pipes(["---", *["---:"] * len(table.columns)]))
        for line in table.lines:
            cells = [f"**{c}**" if k in line.bold else c for k, c in enumerate(line.cells)]
            if line.printed:
                cells = [f"*{cell}*" if cell else "" for cell in cells]
            rows.append(_pipes([f"*{IN_PAPER}*" if line.printed else line.label, *cells]))
        parts.append("\n".join(rows))
        parts += table.notes
    return "\n\n".join(parts) + "\n"


def as_csv(sheet: Sheet) -> str:
    """Write the numbers behind the tables, one line each."""
    return csv_text(sheet.records)


def as_latex(sheet: Sheet) -> str:
    r"""Write tables to be read in with ``\input``; they need no package."""
    sheet = _passed(sheet, one_line)
    parts = [f"% {sentence}" for sentence in [sheet.title, *sheet.remarks]]
    for table in sheet.tables:
        parts += [
            "",
            r"\begin{table*}",
            r"\centering\small\setlength{\tabcolsep}{3pt}",
            rf"\caption{{{' '.join(map(_latex, [f'{table.title}.', *table.notes]))}}}",
        ]
        for block in _blocks(_widths(table), LATEX_WIDTH):
            parts += [
                *([] if block.start == 0 else [r"\par\medskip"]),
                rf"\begin{{tabular}}{{| l || {' | '.join('c' * len(block))} |}}",
                r"\hline",
                _ampersands(map(_latex, [table.corner, *(table.columns[k] for k in block)])),
                r"\hline\hline",
                *(_latex_row(line, block) for line in table.lines),
                r"\hline",
                r"\end{tabular}",
            ]
        parts.append(r"\end{table*}")
    return "\n".join(parts) + "\n"


def _latex_row(line: Line, block: range) -> str:
    cells = [
        rf"\textbf{{{_latex(line.cells[k])}}}" if k in line.bold else _latex(line.cells[k])
        for k in block
    ]
    label = rf"\quad {IN_PAPER}" if line.printed else _latex(line.label)
    return _ampersands([label, *cells])


FORMATS: dict[str, Callable[[Sheet], str]] = {"md": as_markdown, "csv": as_csv, "tex": as_latex}


def _text_blocks(table: Table) -> list[str]:
    labels = [f"  {IN_PAPER}" if line.printed else line.label for line in table.lines]
    first = max(len(label) for label in [table.corner, *labels])
    widths = _widths(table)
    rows = [table.columns, *(line.cells for line in table.lines)]
    result = []
    for block in _blocks(widths, WIDTH - first):
        for label, cells in zip([table.corner, *labels], rows, strict=True):
            shown = "".join(f"  {cells[k]:>{widths[k]}}" for k in block)
            result.append(f"{label:<{first}}{shown}".rstrip())
            if label is table.corner and cells is table.columns:
                result.append("-" * (first + sum(widths[k] + 2 for k in block)))
        result.append("")
    return result[:-1]


def _widths(table: Table) -> list[int]:
    return [
        max(len(name), *(len(line.cells[k]) for line in table.lines))
        for k, name in enumerate(table.columns)
    ]


def _blocks(widths: list[int], room: int) -> list[range]:
    """Share columns out among as few blocks as the room allows, all about as long."""
    for number in range(1, len(widths) + 1):
        ends = [round(k * len(widths) / number) for k in range(number + 1)]
        blocks = [range(start, end) for start, end in pairwise(ends)]
        if all(sum(widths[k] + 2 for k in block) <= room for block in blocks):
            break
    return blocks


def _filled(*sentences: str) -> list[str]:
    return [line for sentence in sentences for line in textwrap.wrap(sentence, WIDTH)]


def _pipes(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _markdown(text: str) -> str:
    """Escape what Markdown and HTML would take for more than text."""
    escaped = re.sub(r"([\\`*_\[\]|])", r"\\\1", one_line(text))
    return escaped.replace("<", "&lt;").replace(">", "&gt;")


def _ampersands(cells: Iterable[str]) -> str:
    return " & ".join(cells) + r" \\"


SPECIAL = {
    "\\": r"\textbackslash{}",
    **{character: f"\\{character}" for character in "&%$#_{}"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "±": r"$\pm$",
    "–": "--",
}


def _latex(text: str) -> str:
    r"""Escape; ``n = 10`` is set as mathematics."""
    escaped = "".join(SPECIAL.get(character, character) for character in text)
    return re.sub(r"\b([np] = [\d.]*\d)", r"$\1$", escaped)
