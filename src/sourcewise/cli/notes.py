"""What the terminal says about a table besides the result."""

from __future__ import annotations

import textwrap

from sourcewise.tables.bad_rows import UNNAMED, UNREADABLE
from sourcewise.tables.model import TableModel

MOST = 12
LEFT_OUT_TEXT = (
    "Column {name!r} looks like free text and was left out; --text {option} makes features of its "
    "words."
)
LEFT_OUT = "Column {name!r} was left out: hardly any two rows share a value."


def table_notes(fitted: TableModel) -> list[str]:
    """Return paragraphs, each with an empty line behind it."""
    return [*skipped_rows(fitted), *left_out_columns(fitted)]


def skipped_rows(fitted: TableModel) -> list[str]:
    """Return lines on rows that could not be used, the sources with most first."""
    skipped = fitted.skipped_
    if not skipped:
        return []
    total = sum(item.rows for item in skipped)
    sources = len({item.source for item in skipped})
    rows = "1 row was" if total == 1 else f"{total:,} rows were"
    of = "1 source" if sources == 1 else f"{sources} sources"
    lines = [f"{rows} left out, of {of}:", *(wrapped(str(item)) for item in skipped[:MOST])]
    if len(skipped) > MOST:
        lines.append(f"  ... and {len(skipped) - MOST} more (in the report)")
    kept = set(fitted.sources_.tolist())
    gone = [
        name
        for name in dict.fromkeys(item.source for item in skipped)
        if name not in {*kept, UNNAMED, UNREADABLE}
    ]
    if gone:
        lines.append(wrapped(f"Too little is left of {', '.join(gone[:MOST])}."))
    return [*lines, ""]


def left_out_columns(fitted: TableModel) -> list[str]:
    """Return lines on columns that no model sees, though nobody asked for that."""
    rules = [rule for rule in fitted.preprocessor_.rules_ if rule.kind == "left out"]
    lines = [
        wrapped(
            (LEFT_OUT_TEXT if rule.wordy else LEFT_OUT).format(
                name=rule.name, option=f"'{rule.name}'" if " " in rule.name else rule.name
            ),
            indent="",
        )
        for rule in rules[:MOST]
    ]
    if len(rules) > MOST:
        lines.append(f"... and {len(rules) - MOST} more columns")
    return [*lines, ""] if lines else []


def wrapped(text: str, indent: str = "  ") -> str:
    """Fit a sentence into 80 columns."""
    return textwrap.fill(text, 79, initial_indent=indent, subsequent_indent=indent)
