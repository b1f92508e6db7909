"""Whether the reference is large enough: as a whole, and part by part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sourcewise.core.discrepancy.power import LabelTest

LEVEL, POWER = 0.05, 0.8
UNKNOWN = "There are {rows:.0f} trusted rows; how much they find by p-values is not known here."
HOPELESS = (
    "With {rows:.0f} trusted rows, a source of {source_rows} may well go unnoticed even "
    "if all of its labels are random (power {power:.2f}); more trusted rows would help."
)
FOUND = (
    "With {rows:.0f} trusted rows, a source of {source_rows} is told from noise (power "
    "0.8) if {share:.0%} of its labels are random, which is a discrepancy of {discrepancy:.3f}"
)
MOST_CLASSES = 10  # those with the fewest trusted rows
NAMED = 3
CLASSES = "Where one class alone is labelled at random"
SEEN = "a source is noticed from this share of it on: {listed}"
UNSEEN = "even all of {listed} may go unnoticed"
REGIONS = "Where one of {n} regions of the features alone is labelled wrongly"
SEEN_IN = "this is noticed in {seen}, from {share} of its labels on"
UNSEEN_IN = "in {unseen} (with {rows} at most) even all may go unnoticed"


@dataclass(frozen=True)
class ReferenceAdequacy:
    """What this reference can and cannot tell from noise.

    Attributes
    ----------
    rows : float
        Effective rows of the reference.
    source_rows : float
        Effective rows of the median source.
    detectable_share : float
        Smallest share of random labels in such a source for which its p-value is below 0.05 with
        power 0.8: the power of the very test that is used, found by drawing the reference's losses
        anew. NaN if even all random labels are found less often, or where the power is not known.
    detectable_discrepancy : float
        Discrepancy of such a source; infinite if even all random labels are found less often, NaN
        where the power is not known (p-values by permutation, or no source besides the reference).
    power_of_random : float
        How often a source of which all labels are random is found; NaN if not known.
    rows_to_halve : float
        Further reference rows that would about halve what is detectable; infinite where the
        sources' own noise is in the way, or where nothing is detectable.
    parts : tuple of PartPower
        The same for a source that goes wrong in one class only, or in one region of the features;
        regions where the sources' rows are here.
    """

    rows: float
    source_rows: float
    detectable_share: float
    detectable_discrepancy: float
    power_of_random: float
    rows_to_halve: float
    parts: tuple[PartPower, ...] = ()

    def __str__(self) -> str:
        """Say it in a sentence, and in one each for single classes and regions."""
        return " ".join(filter(None, [self._whole(), powers_in_words(self.parts)]))

    def _whole(self) -> str:
        if np.isnan(self.power_of_random):
            return UNKNOWN.format(rows=self.rows)
        if np.isinf(self.detectable_discrepancy):
            return HOPELESS.format(
                rows=self.rows, source_rows=self._of_source, power=self.power_of_random
            )
        found = FOUND.format(
            rows=self.rows,
            source_rows=self._of_source,
            share=self.detectable_share,
            discrepancy=self.detectable_discrepancy,
        )
        if np.isinf(self.rows_to_halve):
            return (
                f"{found}; no further trusted rows could halve that, because the sources have "
                f"about {self._of_source} each."
            )
        return f"{found}; about {self.rows_to_halve:.0f} more would halve that."

    @property
    def _of_source(self) -> str:
        rows = round(self.source_rows)
        return "1 row" if rows == 1 else f"{rows} rows"


def reference_adequacy(
    sizes: np.ndarray,
    reference: int,
    test: LabelTest | None,
    parts: tuple[PartPower, ...] = (),
) -> ReferenceAdequacy:
    """Ask which share of random labels the p-value finds, in a source of median size.

    Without sources, one like the reference is imagined.
    """
    own = float(sizes[reference])
    others = np.delete(sizes, reference)
    typical = float(np.median(others)) if len(others) else own
    if test is None:
        return ReferenceAdequacy(own, typical, np.nan, np.nan, np.nan, np.inf, parts)
    share = test.detectable_share(typical, LEVEL, POWER)
    found = np.isfinite(share)
    return ReferenceAdequacy(
        own,
        typical,
        share,
        share * test.worth + test.noise if found else np.inf,
        test.power(1.0, typical, LEVEL),
        _rows_to_halve(own, typical) if found else np.inf,
        parts,
    )


def _rows_to_halve(own: float, typical: float) -> float:
    """Return how many rows halve the noise of a difference, whose variance is ``v/m_T + v/m``."""
    wanted = 0.25 * (1.0 / own + 1.0 / typical) - 1.0 / typical
    return max(1.0 / wanted - own, 0.0) if wanted > 0 else float("inf")


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
