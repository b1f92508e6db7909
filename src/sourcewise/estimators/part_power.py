"""What the reference could see of one class, or of one region of the features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sourcewise.core.discrepancy.power import LabelTest

LEVEL, POWER = 0.05, 0.8
MOST_CLASSES = 10  # those with the fewest trusted rows
NAMED = 3
CLASSES = "Where one class alone is labelled at random"
SEEN = "a source is noticed from this share of it on: {listed}"
UNSEEN = "even all of {listed} may go unnoticed"
REGIONS = "Where one of {n} regions of the features alone is labelled wrongly"
SEEN_IN = "this is noticed in {seen}, from {share} of its labels on"
UNSEEN_IN = "in {unseen} (with {rows} at most) even all may go unnoticed"


@dataclass(frozen=True)
class PartPower:
    """What is found in a source of typical size that goes wrong in one part only.

    Attributes
    ----------
    of : {"class", "region"}
    name : str
        The class, or by which features the region differs from the rest.
    rows : int
        Trusted rows there.
    share : float
        Smallest share of the part's labels that is found with power 0.8: of random ones of a class,
        by the p-value at 0.05; of wrong ones in a region, by the test that the notes of the report
        come from. Infinite if even all are found less often.
    """

    of: str
    name: str
    rows: int
    share: float


def class_powers(
    test: LabelTest, y: np.ndarray, names: Sequence[object], size: float
) -> list[PartPower]:
    """Ask of each class which share of random labels is found in a source of this size."""
    counts = np.bincount(y, minlength=len(names))
    chosen = np.sort(np.argsort(counts, kind="stable")[:MOST_CLASSES])
    return [
        PartPower(
            "class",
            str(names[c]),
            int(counts[c]),
            float(np.nan_to_num(test.detectable_share(size, LEVEL, POWER, y == c), nan=np.inf)),
        )
        for c in chosen.tolist()
    ]


def powers_in_words(parts: Sequence[PartPower]) -> str:
    """Say it in a sentence for the classes, and in one for the regions."""
    classes = [part for part in parts if part.of == "class"]
    regions = [part for part in parts if part.of == "region"]
    said = [_of_classes(classes)] if classes else []
    return " ".join([*said, *([_of_regions(regions)] if regions else [])])


def _split(parts: Sequence[PartPower]) -> tuple[list[PartPower], list[PartPower]]:
    """Parts that can be seen into, the worst first, and those that cannot."""
    seen = sorted((part for part in parts if not np.isinf(part.share)), key=lambda p: -p.share)
    return seen, [part for part in parts if np.isinf(part.share)]


def _of_classes(parts: list[PartPower]) -> str:
    seen, unseen = _split(parts)
    said = []
    if seen:
        listed = [f"{part.share:.0%} of {_named(part)}" for part in seen]
        said.append(SEEN.format(listed=_few(listed)))
    if unseen:
        said.append(UNSEEN.format(listed=_few([_named(part) for part in unseen])))
    return f"{CLASSES}, {'; '.join(said)}."


def _of_regions(parts: list[PartPower]) -> str:
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


def _named(part: PartPower) -> str:
    return f"{part.name!r} ({_rows(part.rows)})"


def _rows(count: int) -> str:
    return "1 trusted row" if count == 1 else f"{count} trusted rows"
