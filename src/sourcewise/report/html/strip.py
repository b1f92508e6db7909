"""Pictures on which a source differs most, in a row."""

from __future__ import annotations

from typing import Any

from sourcewise.report.html.parts import text


def strip(thumbnails: Any) -> str:
    """Lay out small pictures, each with what the source calls it; nothing if there are none."""
    if not thumbnails:
        return ""
    figures = "".join(
        f'<figure><img src="{each.uri}" alt="{text(each.name)}" width="72" height="72">'
        f"<figcaption>{text(each.label)}</figcaption></figure>"
        for each in thumbnails
    )
    return f'<div><h4>Pictures that differ most</h4><div class="strip">{figures}</div></div>'
