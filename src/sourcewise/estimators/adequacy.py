"""Whether the reference is large enough: as a whole, and part by part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sourcewise.core.discrepancy.power import LabelTest
from sourcewise.report.adequacy import adequacy_in_words

LEVEL, POWER = 0.05, 0.8
MOST_CLASSES = 10  # those with the fewest trusted rows


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
        return adequacy_in_words(self)


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
