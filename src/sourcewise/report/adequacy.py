"""Whether the reference is large enough, in sentences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

UNKNOWN = "There are {rows:.0f} trusted rows; how much they find by p-values is not known here."
HOPELESS = (
    "With {rows:.0f} trusted rows, a source of {source_rows} may well go unnoticed even "
    "if all of its labels are random (power {power:.2f}); more trusted rows would help."
)
FOUND = (
    "With {rows:.0f} trusted rows, a source of {source_rows} is told from noise (power "
    "0.8) if {share:.0%} of its labels are random, which is a discrepancy of {discrepancy:.3f}"
)
NAMED = 3
CLASSES = "Where one class alone is labelled at random"
SEEN = "a source is noticed from this share of it on: {listed}"
UNSEEN = "even all of {listed} may go unnoticed"
REGIONS = "Where one of {n} regions of the features alone is labelled wrongly"
SEEN_IN = "this is noticed in {seen}, from {share} of its labels on"
UNSEEN_IN = "in {unseen} (with {rows} at most) even all may go unnoticed"


def adequacy_in_words(found: Any) -> str:
    """Say it of a `ReferenceAdequacy`: in a sentence, and in one each for classes and regions."""
    return " ".join(filter(None, [_whole(found), powers_in_words(found.parts)]))


def _whole(found: Any) -> str:
    rows = round(found.source_rows)
    source_rows = "1 row" if rows == 1 else f"{rows} rows"
    if np.isnan(found.power_of_random):
        return UNKNOWN.format(rows=found.rows)
    if np.isinf(found.detectable_discrepancy):
        return HOPELESS.format(
            rows=found.rows, source_rows=source_rows, power=found.power_of_random
        )
    said = FOUND.format(
        rows=found.rows,
        source_rows=source_rows,
        share=found.detectable_share,
        discrepancy=found.detectable_discrepancy,
    )
    if np.isinf(found.rows_to_halve):
        return (
            f"{said}; no further trusted rows could halve that, because the sources have "
            f"about {source_rows} each."
        )
    return f"{said}; about {found.rows_to_halve:.0f} more would halve that."


def powers_in_words(parts: Sequence[Any]) -> str:
    """Say it in a sentence for the classes, and in one for the regions."""
    classes = [part for part in parts if part.of == "class"]
    regions = [part for part in parts if part.of == "region"]
    said = [_of_classes(classes)] if classes else []
    return " ".join([*said, *([_of_regions(regions)] if regions else [])])


def _split(parts: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """Parts that can be seen into, the worst first, and those that cannot."""
    seen = sorted((part for part in parts if not np.isinf(part.share)), key=lambda p: -p.share)
    return seen, [part for part in parts if np.isinf(part.share)]


def _of_classes(parts: list[Any]) -> str:
    seen, unseen = _split(parts)
    said = []
    if seen:
        listed = [f"{part.share:.0%} of {_named(part)}" for part in seen]
        said.append(SEEN.format(listed=_few(listed)))
    if unseen:
        said.append(UNSEEN.format(listed=_few([_named(part) for part in unseen])))
    return f"{CLASSES}, {'; '.join(said)}."


def _of_regions(parts: list[Any]) -> str:
    seen, unseen = _split(parts)
    said = []
    if seen:
        low, high = seen[-1].share, seen[0].share
        share = f"{low:.0%}" if low == high else f"{low:.0%} to {high:.0%}"
        said.append(SEEN_IN.format(seen=len(seen), share=share))
    if unseen:
        rows = _rows(max(part.rows for part in unseen))
        said.append(UNSEEN_IN.format(unseen=len(unseen), rows=rows))
    return f"{REGIONS.format(n=len(parts))}, {'; '.join(said)}."


def _few(listed: list[str]) -> str:
    more = len(listed) - NAMED
    return ", ".join(listed[:NAMED]) + (f" and {more} more" if more > 0 else "")


def _named(part: Any) -> str:
    return f"{part.name!r} ({_rows(part.rows)})"


def _rows(count: int) -> str:
    return "1 trusted row" if count == 1 else f"{count} trusted rows"
