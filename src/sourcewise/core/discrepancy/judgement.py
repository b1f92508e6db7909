r"""Discrepancies from all that both looks have found.

.. math::

    d_i = k_i + \min\big(\tfrac1{20} f_i, 1\big) \, \Phi\big(g_i / s(g_i)\big), \qquad
    k_i = \tfrac12 \max\big(a'_i + s_T,\; b_i - 3 s(b_i),\; 0\big) + g_i + s(g_i),

both :math:`k_i` and :math:`d_i` never quite zero, and never more than 1, as losses are.

:math:`s_T` is the standard error of the reference's mean loss, common to all sources: the
difference may well be larger by that much. The source's own model speaks through :math:`b_i`, where
it is beyond doubt. :math:`g_i` is the source's pull. :math:`f_i` is how much farther its features
lie than those of the nearest sources, which counts as far as the source is likely to pull the wrong
way.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from sourcewise.core.data import FloatArray
from sourcewise.core.discrepancy.features import beyond_nearest
from sourcewise.core.discrepancy.local import TwoSided
from sourcewise.core.discrepancy.pooled import SecondLook
from sourcewise.core.discrepancy.pull import Pulls
from sourcewise.core.discrepancy.result import FAR, Discrepancies, Witness

# A source's own model is a noisy witness: it is believed beyond so many standard errors.
BEYOND_DOUBT = 3.0
# What models show counts half of what a source does to the reference's own rows.
SHOWN = 0.5
# Moments that differ by as much as the reference has cost a fifth of what knowing nothing does.
FARNESS = 0.05
# Only the reference is at distance zero: lambda = 0 must leave every other source out.
NEAREST = 1e-6


@dataclass(frozen=True)
class Findings:
    """What is known of some sources, on the whole reference and without each validation fold.

    Attributes
    ----------
    sides : tuple of TwoSided, one for each set
        What the reference's and the sources' own models found.
    look : SecondLook
    pulls : Pulls
    distances : array of shape (n_sources,)
        Of the features, from the whole reference: labels have no say in them.
    """

    sides: tuple[TwoSided, ...]
    look: SecondLook
    pulls: Pulls
    distances: FloatArray


def judge(findings: Findings, chosen_set: int = 0) -> FloatArray:
    """Return the discrepancies of one set."""
    shown = _shown(*_testimonies(findings, chosen_set))
    known = _within_limits(shown + findings.pulls.upper[chosen_set])
    return _within_limits(known + _far(findings, chosen_set))


def _far(findings: Findings, chosen_set: int) -> FloatArray:
    """Return what the features say against each source."""
    pulls = findings.pulls
    wrong_way = ndtr(pulls.values[chosen_set] / np.maximum(pulls.errors[chosen_set], 1e-9))
    return np.asarray(np.minimum(FARNESS * beyond_nearest(findings.distances), 1.0) * wrong_way)


def _within_limits(values: FloatArray) -> FloatArray:
    return np.asarray(np.clip(values, NEAREST, 1.0))


def _testimonies(findings: Findings, chosen_set: int) -> tuple[FloatArray, FloatArray]:
    """Return what the best model and what the source's own model says."""
    look, sides = findings.look, findings.sides[chosen_set]
    by_pool = look.a[chosen_set] + look.reference_errors[chosen_set]
    by_source = np.nan_to_num(sides.b - BEYOND_DOUBT * sides.error_b, nan=-1.0)
    return by_pool, by_source


def _shown(by_pool: FloatArray, by_source: FloatArray) -> FloatArray:
    """Return what both come to."""
    return np.asarray(SHOWN * np.maximum(np.maximum(by_pool, by_source), 0.0))


def judged_discrepancies(findings: Findings, p_values: FloatArray) -> Discrepancies:
    """Values, standard errors and witnesses on the whole reference."""
    sides, look, pulls = findings.sides[0], findings.look, findings.pulls
    by_pool, by_source = _testimonies(findings, 0)
    by_own_model = by_source > by_pool
    shown = _shown(by_pool, by_source)
    far = _far(findings, 0)
    errors = np.where(by_own_model, sides.error_b, look.errors)
    name = "pooled model" if look.pooled[0] else "reference model"

    def witness(i: int) -> Witness:
        if far[i] > max(shown[i], pulls.upper[0, i]):
            return FAR
        if pulls.upper[0, i] > shown[i]:
            return Witness("joint model", "reference")
        if by_own_model[i]:
            return Witness("source model", "reference")
        return Witness(name, "source" if look.a[0, i] >= 0 else "reference")

    return Discrepancies(
        judge(findings),
        np.hypot(SHOWN * errors, pulls.errors[0]),
        p_values,
        tuple(witness(i) for i in range(len(shown))),
    )
