r"""Discrepancies from all that both looks have found.

.. math::

    d_i &= k_i + \max\big( \tfrac1{20} f_i \, \pi_i, \; \tfrac1{20} u_i \, (2 \pi_i - 1) \big),
    \qquad \pi_i = \Phi\big(g_i / s(g_i)\big), \\
    k_i &= \tfrac12 \big(g_i + s(g_i)\big) + \tfrac25 L_0 r_i
          + \tfrac14 \max\big(b_i - 3 s(b_i), 0\big),

both :math:`k_i` and :math:`d_i` never quite zero, and never more than 1, as losses are; the same
goes for each of the two twentieths.

:math:`g_i` is the source's pull, a lower estimate of twice the discrepancy. :math:`r_i` is how much
of the reference's agreement with its own model the source lacks, :math:`L_0` what knowing nothing
costs. The source's own model speaks through :math:`b_i`, where it is beyond doubt. :math:`u_i` is
how far its features lie, :math:`f_i` how much farther than those of the nearest sources. That
excess counts as far as the source is likely to pull the wrong way, with probability
:math:`\pi_i`; the whole distance as far as that is likelier than not.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from sourcewise.core.data import FloatArray
from sourcewise.core.discrepancy.agreement import Agreement
from sourcewise.core.discrepancy.features import beyond_nearest
from sourcewise.core.discrepancy.local import TwoSided
from sourcewise.core.discrepancy.pull import Pulls
from sourcewise.core.discrepancy.result import FAR_FEATURES, LACKING, Discrepancies, Witness

# A pull is about twice a discrepancy.
PULLED = 0.5
# Labels that have nothing to do with the features cost two fifths of what knowing nothing does.
MISSED = 0.4
# A source's own model is a noisy witness: it is believed beyond so many standard errors, by half.
BEYOND_DOUBT = 3.0
FAILED = 0.25
# Moments that differ by as much as the reference has cost a fifth of what knowing nothing does.
FARNESS = 0.05
# Sources that differ by nature had moments up to seven times the reference's away from it
# (`benchmarks/accuracy`); beyond this their units or columns are others, even if all lie so far.
OTHER_UNITS = 20.0
# Only the reference is at distance zero: lambda = 0 must leave every other source out.
NEAREST = 1e-6


@dataclass(frozen=True)
class Findings:
    """What is known of some sources, on the whole reference and without each validation fold.

    Attributes
    ----------
    sides : tuple of TwoSided, one for each set
        What the reference's and the sources' own models found.
    pulls : Pulls
    agreement : Agreement
    distances : array of shape (n_sources,)
        Of the features, from the whole reference: labels have no say in them.
    know_nothing : float
        Mean loss on the reference of a model that knows its labels' frequencies only.
    """

    sides: tuple[TwoSided, ...]
    pulls: Pulls
    agreement: Agreement
    distances: FloatArray
    know_nothing: float


def judge(findings: Findings, chosen_set: int = 0) -> FloatArray:
    """Return the discrepancies of one set."""
    pulled, missed, failed, farther = _parts(findings, chosen_set)
    far = _far_and_harmful(findings, chosen_set)
    return _within_limits(_within_limits(pulled + missed + failed) + np.maximum(farther, far))


def _parts(findings: Findings, s: int) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return what pulls, agreement, sources' own models and features each say, in set ``s``.

    Features speak by what exceeds the nearest sources.
    """
    pulls, sides = findings.pulls, findings.sides[s]
    beyond_doubt = np.nan_to_num(sides.b - BEYOND_DOUBT * sides.error_b, nan=0.0)
    return (
        PULLED * pulls.upper[s],
        MISSED * findings.know_nothing * findings.agreement.missing[s],
        FAILED * np.maximum(beyond_doubt, 0.0),
        _far(beyond_nearest(findings.distances)) * _wrong_way(pulls, s),
    )


def _far_and_harmful(findings: Findings, s: int) -> FloatArray:
    """Return what the whole distance says against sources likelier to do harm than good."""
    wrong_way = _wrong_way(findings.pulls, s)
    return np.asarray(_far(findings.distances) * np.maximum(2.0 * wrong_way - 1.0, 0.0))


def _wrong_way(pulls: Pulls, s: int) -> FloatArray:
    """Return how likely each source is to pull the wrong way."""
    return np.asarray(ndtr(pulls.values[s] / np.maximum(pulls.errors[s], 1e-9)))


def _far(distances: FloatArray) -> FloatArray:
    return np.asarray(np.minimum(FARNESS * distances, 1.0))


def _within_limits(values: FloatArray) -> FloatArray:
    return np.asarray(np.clip(values, NEAREST, 1.0))


# In the order of the parts.
WITNESSES = (
    Witness("joint model", "reference"),
    LACKING,
    Witness("source model", "reference"),
    FAR_FEATURES,
)


def judged_discrepancies(findings: Findings, p_values: FloatArray) -> Discrepancies:
    """Values, standard errors and witnesses on the whole reference.

    The witness is whoever says most against a source. Where all sources lie far, features do not
    tell one with wrong labels from others, unless they are of another order of magnitude. A
    source's own model adds to the standard error where it speaks, features have none.
    """
    parts = np.stack(_parts(findings, 0))
    other_units = np.where(findings.distances > OTHER_UNITS, _far_and_harmful(findings, 0), 0.0)
    parts[WITNESSES.index(FAR_FEATURES)] = np.maximum(
        parts[WITNESSES.index(FAR_FEATURES)], other_units
    )
    agreed = MISSED * findings.know_nothing * findings.agreement.missing_errors
    own_model = np.where(parts[2] > 0, FAILED * findings.sides[0].error_b, 0.0)
    return Discrepancies(
        judge(findings),
        np.hypot(np.hypot(PULLED * findings.pulls.errors[0], agreed), own_model),
        p_values,
        tuple(WITNESSES[k] for k in parts.argmax(axis=0)),
    )
