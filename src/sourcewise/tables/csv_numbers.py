"""How a CSV file is written: what parts its cells, and whether a comma is its decimal sign.

Spreadsheets put semicolons between cells exactly where the comma is their decimal sign. So there,
and nowhere else, ``12,5`` and ``1.234,5`` are numbers. Each cell is read for itself: no row has a
say in how another is read.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from sourcewise.tables.values import NUMBER

DELIMITERS = ",;\t|"
# The first line that Excel reads and does not show.
SEPARATOR = re.compile(r"sep=([,;\t|])")
DECIMAL_COMMA = r"^\s*[+-]?(\d*|\d{1,3}(\.\d{3})+),\d+([eE][+-]?\d+)?\s*$"


def delimiter_of(first_lines: Sequence[str]) -> tuple[str, int]:
    """Return what parts the cells, and how many lines come before the header."""
    said = SEPARATOR.fullmatch(first_lines[0].strip())
    if said:
        return said[1], 1
    delimiter = max(DELIMITERS, key=first_lines[0].count)
    return (delimiter if delimiter in first_lines[0] else ","), 0


def with_decimal_commas(content: Any, keep: Sequence[str]) -> Any:
    """Read numbers with a decimal comma; columns to ``keep`` stay text.

    Parameters
    ----------
    content : pyarrow.Table
    keep : sequence of str
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    def read(name: str, values: Any) -> Any:
        if not pa.types.is_string(values.type) or name in keep:
            return values
        commas = pc.match_substring_regex(values, DECIMAL_COMMA)
        if not pc.any(commas).as_py():
            return values
        plain = pc.replace_substring(pc.replace_substring(values, ".", ""), ",", ".")
        values = pc.if_else(commas, plain, values)
        if not pc.all(pc.match_substring_regex(values, NUMBER)).as_py():
            return values
        return pc.utf8_ltrim(pc.utf8_trim_whitespace(values), "+").cast(pa.float64())

    names = content.column_names
    columns = [read(name, column) for name, column in zip(names, content.columns, strict=True)]
    return pa.Table.from_arrays(columns, names=names)
