"""Text that comes from the data, made fit to be shown; escaping is the templates' own."""

from __future__ import annotations

import json
import unicodedata
from typing import Any

LONG_NAME = 400
# Marks, embeddings, overrides and isolates: a name with one of them could reorder what follows it.
DIRECTION = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"


def visible(value: str) -> str:
    """Show control characters as such, those of writing direction too: a page has none."""
    return "".join("\ufffd" if _controls(c) else c for c in value)


def _controls(character: str) -> bool:
    if character in "\n\t":
        return False
    return unicodedata.category(character) == "Cc" or character in DIRECTION


def shortened(value: Any, most: int = LONG_NAME) -> str:
    """Cut long text."""
    shown = str(value)
    return shown if len(shown) <= most else shown[:most] + "…"


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
