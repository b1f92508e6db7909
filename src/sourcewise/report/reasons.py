"""A reason in words for each source."""

from __future__ import annotations

import numpy as np

from sourcewise.core.discrepancy import Discrepancies, Witness
from sourcewise.core.discrepancy.result import FAR_FEATURES

REFERENCE = "is the reference"
AGREES = "agrees with the reference"
DIFFERS = "differs from the reference, but does no harm"
LABELS = "labels disagree with the reference"
MODEL = "its own model fails on the reference"
FEATURES = "features are unlike the reference's"
DOUBTFUL = "may well disagree with the reference"
TOO_FEW = "no difference found, too few rows to tell"
SMALL_REFERENCE = "no difference found, reference too small to tell"
UNTOLD = (TOO_FEW, SMALL_REFERENCE)  # what a source may be that nothing was found against
FOUND = (LABELS, MODEL, FEATURES, DOUBTFUL)  # what counts against a source
# The same for a table of 80 columns.
SHORT = {
    REFERENCE: "the reference",
    AGREES: "agrees",
    DIFFERS: "differs, no harm",
    LABELS: "labels disagree",
    MODEL: "its model fails",
    FEATURES: "features differ",
    DOUBTFUL: "may disagree",
    TOO_FEW: "too few rows",
    SMALL_REFERENCE: "reference too small",
}
LEVEL = 0.05
# A source does no harm to speak of while its rows count at least this much of a trusted row.
KEPT = 0.5
# Standard errors beyond which a discrepancy counts against a source.
DOUBT = 2.0
# Standard errors that a discrepancy must span to be found at level 0.05 with power 0.8.
DETECTABLE = 2.8


def reasons(
    discrepancies: Discrepancies,
    reference: int,
    reference_gain: float,
    expected_errors: np.ndarray,
    cutoff: float = np.inf,
) -> list[str]:
    """Put every source's evidence into words.

    A source is said to disagree where its p-value survives Benjamini and Hochberg's correction for
    the number of sources, or where it is below 0.05 and the discrepancy is above the ``cutoff``, so
    that the source was set aside. To differ is not to do harm: natural sources differ, and are
    useful all the same. Below the cut-off, nothing is said against a source whose discrepancy is
    within two standard errors, or so small that a row of it counts at least half as much as a
    trusted one. Features that are the witness lie beyond noise, and count against a source that was
    set aside without a p-value. Any other that was set aside, by a discrepancy of more than two
    standard errors, may well disagree. Where nothing was found, but labels drawn at random would
    not have been found either (they cost the reference's model ``reference_gain``), nobody can
    tell: for want of trusted rows if the source has as many as the reference, or if no number of
    its rows would do, and otherwise for want of the source's own. The standard error of a few rows
    may be small by chance, so it counts as at least what rows like the reference's would have
    (``expected_errors``, the reference's own being that of a source of its size).
    """
    others = np.arange(len(discrepancies.values)) != reference
    found = np.zeros(len(others), dtype=bool)
    found[others] = survives(discrepancies.p_values[others])
    far = np.array([witness == FAR_FEATURES for witness in discrepancies.witnesses])
    doubtful = far | (discrepancies.p_values < LEVEL)
    found |= others & doubtful & (discrepancies.values >= cutoff)
    errors = np.maximum(discrepancies.standard_errors, expected_errors)
    # Errors have a part from either side's rows; of a source of its size half is the reference's.
    of_reference = expected_errors[reference] / np.sqrt(2.0)
    small = (expected_errors <= expected_errors[reference]) | (
        DETECTABLE * of_reference > reference_gain
    )
    beyond_noise = discrepancies.values > DOUBT * errors
    doubted = beyond_noise & (discrepancies.values > cutoff)
    kept = np.isfinite(cutoff) & (discrepancies.values <= (1.0 - KEPT) * cutoff)
    harmless = (~beyond_noise & (discrepancies.values < cutoff)) | kept
    return [
        REFERENCE
        if not others[i]
        else _reason(
            bool(found[i]),
            bool(doubted[i]),
            bool(harmless[i]),
            discrepancies.witnesses[i],
            float(errors[i]),
            reference_gain,
            bool(small[i]),
        )
        for i in range(len(others))
    ]


def _reason(
    found: bool,
    doubted: bool,
    harmless: bool,
    witness: Witness,
    error: float,
    gain: float,
    small_reference: bool,
) -> str:
    if found and harmless:
        return DIFFERS
    if found and witness == FAR_FEATURES:
        return FEATURES
    if found:
        fails = witness.hypothesis == "source model" and witness.worse_on == "reference"
        return MODEL if fails else LABELS
    if doubted:
        return DOUBTFUL
    if DETECTABLE * error > gain:
        return SMALL_REFERENCE if small_reference else TOO_FEW
    return AGREES


def missed_shares(
    discrepancies: Discrepancies, reference_gain: float, expected_errors: np.ndarray, cutoff: float
) -> np.ndarray:
    """Share of each source's labels that may be random without being noticed, about.

    All of them cost the reference's model ``reference_gain``, and so many as much less. They are
    noticed, with power 0.8, where that is beyond noise and beyond the cut-off.
    """
    errors = np.maximum(discrepancies.standard_errors, expected_errors)
    needed = DETECTABLE * errors
    if np.isfinite(cutoff):
        needed = np.maximum(needed, cutoff + (DETECTABLE - DOUBT) * errors)
    if not reference_gain > 0:
        return np.ones(len(errors))
    return np.asarray(np.minimum(needed / reference_gain, 1.0))


def survives(p_values: np.ndarray) -> np.ndarray:
    """Benjamini and Hochberg's step-up rule: which p-values count among many."""
    n = len(p_values)
    order = np.argsort(p_values)
    below = np.flatnonzero(p_values[order] <= LEVEL * np.arange(1, n + 1) / max(n, 1))
    kept = np.zeros(n, dtype=bool)
    if len(below):
        kept[order[: below[-1] + 1]] = True
    return kept
