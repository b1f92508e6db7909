"""Small pieces of a page: escaped text, numbers, bars."""

from __future__ import annotations

import json
import math
import unicodedata
from html import escape
from typing import Any

import numpy as np

LONG_NAME = 400
# Marks, embeddings, overrides and isolates: a name with one of them could reorder what follows it.
DIRECTION = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"


def text(value: Any) -> str:
    """Escape text from the data, isolated from the direction of what surrounds it."""
    shown = str(value)
    if len(shown) > LONG_NAME:
        shown = shown[:LONG_NAME] + "…"
    return f"<bdi>{escape(_visible(shown))}</bdi>"


def words(value: Any) -> str:
    """Escape a sentence of ours, which may quote the data."""
    return escape(_visible(str(value)))


def _visible(value: str) -> str:
    """Show control characters as such, those of writing direction too: a page has none."""
    return "".join("\ufffd" if _controls(c) else c for c in value)


def _controls(character: str) -> bool:
    if character in "\n\t":
        return False
    return unicodedata.category(character) == "Cc" or character in DIRECTION


def number(value: float, digits: int = 3) -> str:
    """Write a number for reading, not for computing."""
    if value is None or math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞"
    size = abs(value)
    if size != 0 and (size < 10.0**-digits or size >= 1e6):
        return f"{value:.2g}"
    return f"{value:.{digits}f}"


def count(value: float) -> str:
    """Write a number of rows."""
    return "∞" if math.isinf(value) else f"{round(value):,}".replace(",", "\u202f")


def percent(value: float, digits: int = 1) -> str:
    """Write a share."""
    return f"{100 * value:.{digits}f} %"


def p_value(value: float) -> str:
    """Write a p-value; nobody needs more digits of a small one."""
    if math.isnan(value):
        return "–"
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def bar(share: float, *, tone: str = "") -> str:
    """Draw a bar that fills a share of its track."""
    width = 100 * min(max(share, 0.0), 1.0)
    return (
        '<svg viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">'
        '<rect class="track" width="100" height="8"/>'
        f'<rect class="{tone or "fill"}" width="{width:.2f}" height="8"/></svg>'
    )


def interval_bar(value: float, low: float, high: float, mark: float | None) -> str:
    """Draw a bar with an interval across its end, and a mark on the track; all are shares."""
    clipped = [100 * min(max(v, 0.0), 1.0) for v in (value, low, high)]
    line = ""
    if mark is not None and 0 <= mark <= 1:
        line = f'<line class="mark" x1="{100 * mark:.2f}" x2="{100 * mark:.2f}" y1="-3" y2="11"/>'
    return (
        '<svg viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">'
        '<rect class="track" width="100" height="8"/>'
        f'<rect class="fill" width="{clipped[0]:.2f}" height="8"/>'
        f'<line class="whisker" x1="{clipped[1]:.2f}" x2="{clipped[2]:.2f}" y1="4" y2="4"/>'
        f"{line}</svg>"
    )


def embedded(content: Any) -> str:
    """Write JSON for a script element, which nothing in it can end."""
    found = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        found = found.replace(character, f"\\u{ord(character):04x}")
    for character in DIRECTION:
        found = found.replace(character, "\ufffd")
    return found


def nice_ceiling(value: float) -> float:
    """Return the next round number."""
    if not value > 0 or not np.isfinite(value):
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return next(
        step * power for step in (1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10) if step * power >= value
    )
