"""Text that comes from the data, made fit for where it is shown: the one guard of all writers.

Pages, terminals, CSV and JSON; LaTeX and Markdown escape their own signs besides. Escaping HTML is
the templates' own.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

LONG_NAME = 400
UNSHOWN = "\ufffd"
# Marks, embeddings, overrides and isolates: a name with one of them could reorder what follows it.
DIRECTION = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
# Control characters but for line feed and tab, and halves of characters.
_CONTROL = re.compile(f"[\0-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff{DIRECTION}]")
_LINE_ENDS = re.compile("[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]+")
# What a spreadsheet skips, or shows as nothing, before the sign that makes a formula.
_BLANK = re.compile(f"[\\s\u00ad\u200b-\u200f\u2060-\u2064\ufeff{UNSHOWN}]*")
FORMULA = "=+-@"  # their full-width and small forms too


def visible(text: str) -> str:
    """Show control characters as such, those of writing direction too: a page has none."""
    return _CONTROL.sub(UNSHOWN, text)


def one_line(value: Any) -> str:
    """Bring text to one line in which nothing moves the cursor or is invisible."""
    line = " ".join(str(value).split())
    return line if line.isprintable() else "".join(c if c.isprintable() else UNSHOWN for c in line)


def cell(value: Any) -> Any:
    """Make text a cell of CSV: on one line, and with a quote before what starts a formula."""
    if not isinstance(value, str):
        return value
    text = visible(_LINE_ENDS.sub(" ", value))
    first = text[_BLANK.match(text).end() :][:1]  # type: ignore[union-attr]  # may be empty
    signs = unicodedata.normalize("NFKC", first)
    return f"'{text}" if text.startswith("\t") or (signs and signs[0] in FORMULA) else text


def csv_text(lines: Sequence[Mapping[str, Any]]) -> str:
    """Lay records out as CSV, their names as header."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(map(cell, lines[0]))
    writer.writerows(map(cell, line.values()) for line in lines)
    return text.getvalue()


def json_text(content: Any) -> str:
    r"""Write strict JSON: what is no finite number is null, what a terminal obeys ``\u001b``."""
    text = json.dumps(_plain(content), indent=2, ensure_ascii=False, allow_nan=False)
    return _CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text) + "\n"


def _plain(value: Any) -> Any:
    """Turn a value into what JSON can hold."""
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, str | int | float | bool) or value is None else str(value)


def shortened(value: Any) -> str:
    """Cut long text."""
    shown = str(value)
    return shown if len(shown) <= LONG_NAME else shown[:LONG_NAME] + "…"


def cut(text: str, width: int) -> str:
    """Cut a name to so many characters."""
    return text if len(text) <= width else text[: width - 1] + "…"


def embedded(content: Any) -> str:
    """Write JSON for a script element, which nothing in it can end."""
    found = json.dumps(
        _all_visible(content), ensure_ascii=False, allow_nan=False, separators=(",", ":")
    )
    for character in "<>&\u2028\u2029":
        found = found.replace(character, f"\\u{ord(character):04x}")
    return found


def _all_visible(value: Any) -> Any:
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, dict):
        return {visible(str(key)): _all_visible(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_all_visible(item) for item in value]
    return value
