"""What an answer can be checked for, whoever gives it.

Numbers have ranges that they cannot leave, whatever the rows are: a mean loss lies between 0 and 1,
a covariance within the product of two standard deviations, a curvature is positive. Sites whose
owners add noise bring their answers back into these ranges; whoever sends others is left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np
from scipy.stats import chi2

from sourcewise.core.data import FloatArray
from sourcewise.core.discrepancy.agreement import AgreementAnswer
from sourcewise.core.discrepancy.features import FeatureAnswer
from sourcewise.core.discrepancy.local_exchange import LocalAnswer
from sourcewise.core.discrepancy.moments import Moments
from sourcewise.core.discrepancy.separation import LossMoments
from sourcewise.core.quadratic_sources import Derivatives, QuadraticSources
from sourcewise.engines.flower.wire import BadMessage

CONTRADICTION = (
    "what it says in training contradicts what it said before ({ratio:.1f} times what its own "
    "curvature allows)"
)
OTHER_ANSWER = "it answers the same question otherwise than before"
COPY_OF_SITE = "its answers are those of {other!r}, but for less than chance would make of them"
COPY_OF_REFERENCE = "its rows are copies of the reference's"
OUT_OF_RANGE = "{name} is {value:.3g}, which cannot be"
NOT_CONVEX = "its curvature is not that of any rows"
ROUNDING = 1e-6
# Between two points a gradient changes by the curvature in between. That is about the mean of the
# curvatures at both ends: by how much it may be missed, relative to the change itself.
# Honest sites of few rows and many features missed it by up to 2.8 times the change, flipped labels
# by 5.6 times and more (docs/threats.md).
CURVED = 4.0
# Chance below which two sites, or a site and the reference, are too much alike to be two samples.
ALIKE = 1e-9
SAME_ANSWER = 1e-6
NOISE_FLOOR = 1e-3  # of a gradient, below which a change cannot be told from rounding or noise

INFINITE = float("inf")
RANGES: dict[type, dict[str, tuple[float, float]]] = {
    LocalAnswer: {
        "sizes": (0.0, INFINITE),
        "means": (0.0, 1.0),
        "squares": (0.0, 1.0),
        "cubes": (0.0, 1.0),
        "variance_under": (0.0, 1.0),
        "variance_own": (0.0, 1.0),
        "own": (0.0, 1.0),
        "masses": (0.0, 1.0),
    },
    AgreementAnswer: {"variances": (0.0, INFINITE), "errors": (0.0, INFINITE)},
    FeatureAnswer: {"concentration": (0.0, 1.0)},
    LossMoments: {"mean": (0.0, INFINITE), "variance": (0.0, INFINITE)},
    Moments: {"square": (0.0, INFINITE)},
}


def check_ranges(answer: Any) -> None:
    """Refuse numbers that no rows could have led to."""
    for part in _parts(answer):
        for name, (low, high) in RANGES.get(type(part), {}).items():
            values = np.asarray(getattr(part, name))
            out = (values < low - ROUNDING) | (values > high + ROUNDING)
            if out.any():
                raise BadMessage(OUT_OF_RANGE.format(name=repr(name), value=values[out].flat[0]))
        for matrices in _curvatures(part):
            _check_curvature(matrices)


def into_range(answer: Any) -> Any:
    """Bring what noise has moved back to where such numbers can be."""
    if not is_dataclass(answer) or isinstance(answer, type):
        return answer
    changed: dict[str, Any] = {}
    for field in fields(answer):
        value = getattr(answer, field.name)
        if is_dataclass(value):
            changed[field.name] = into_range(value)
    for name, (low, high) in RANGES.get(type(answer), {}).items():
        changed[name] = np.clip(getattr(answer, name), low, high)
    if isinstance(answer, Derivatives):
        changed["hessians"] = _nearest_curvature(answer.hessians)
    if isinstance(answer, Moments):
        changed["gram"] = _nearest_curvature(answer.gram)
    return replace(answer, **changed)


def _parts(answer: Any) -> list[Any]:
    """Return the answer and all the dataclasses that it is made of."""
    if not is_dataclass(answer):
        return []
    found = [answer]
    for field in fields(answer):
        found += _parts(getattr(answer, field.name))
    return found


def _curvatures(part: Any) -> list[FloatArray]:
    if isinstance(part, Derivatives):
        return [part.hessians]
    return [part.gram] if isinstance(part, Moments) else []


def _check_curvature(matrices: FloatArray) -> None:
    if matrices.size == 0:
        return
    scale = np.abs(matrices).max()
    if np.abs(matrices - matrices.swapaxes(-1, -2)).max() > ROUNDING * max(scale, 1e-300):
        raise BadMessage(NOT_CONVEX)
    lowest = np.linalg.eigvalsh(matrices).min(axis=-1)
    if (lowest < -1e-5 * max(scale, 1e-300)).any():
        raise BadMessage(NOT_CONVEX)


def _nearest_curvature(matrices: FloatArray) -> FloatArray:
    values, vectors = np.linalg.eigh(0.5 * (matrices + matrices.swapaxes(-1, -2)))
    kept = vectors * np.maximum(values, 0.0)[..., None, :]
    return np.asarray(kept @ vectors.swapaxes(-1, -2))


# -- one answer against others -------------------------------------------------------------------


def contradictions(
    names: Sequence[str],
    before: QuadraticSources,
    points: FloatArray,
    now: Derivatives,
    noise: FloatArray,
) -> dict[str, str]:
    """Compare derivatives in training with those that the reference's rows have judged.

    Parameters
    ----------
    names : sequence of str
    before : QuadraticSources
        What the sites have said, whose effect on the reference is part of their discrepancies.
    points : array of shape (n_points, n_outputs, n_features)
    now : Derivatives
        What they say at these points.
    noise : array of shape (n_sources,)
        Standard deviation of what the sites' owners say they add to every number.

    Returns
    -------
    dict
        For each site that contradicts itself, a sentence.
    """
    found = {}
    for i, name in enumerate(names):
        worst = max(
            _missed(before.some([i]), point, now.gradients[i, k], now.hessians[i, k], noise[i])
            for k, point in enumerate(points)
        )
        if worst > CURVED:
            found[name] = CONTRADICTION.format(ratio=worst)
    return found


def _missed(
    before: QuadraticSources,
    point: FloatArray,
    gradient: FloatArray,
    hessian: FloatArray,
    noise: float = 0.0,
) -> float:
    """By how much the change of a gradient misses its curvature, relative to that change."""
    flat = before.points.reshape(len(before.points), -1)
    off = point.ravel() - flat
    nearest = int(np.argmin(np.linalg.norm(off, axis=1)))
    d = point.shape[1]
    changed = (gradient[:d] - before.known.gradients[0, nearest, :d]).T.ravel()
    mean = 0.5 * (hessian + before.known.hessians[0, nearest])
    expected = mean @ off[nearest]
    missed = float(np.linalg.norm(changed - expected))
    least = NOISE_FLOOR + noise * len(changed) ** 0.5 * (1.0 + float(np.linalg.norm(off[nearest])))
    return float(missed / max(float(np.linalg.norm(expected)), least))


def other_answers(
    names: Sequence[str], before: QuadraticSources, again: Derivatives, noise: FloatArray
) -> dict[str, str]:
    """Compare answers to a question that has been asked before, at the first point."""
    found = {}
    for i, name in enumerate(names):
        earlier = before.known.gradients[i, 0]
        size = float(np.abs(earlier).max())
        allowed = SAME_ANSWER * max(size, 1.0) + 10.0 * float(noise[i])
        if np.abs(again.gradients[i, 0] - earlier).max() > allowed:
            found[name] = OTHER_ANSWER
    return found


def copies(
    names: Sequence[str], known: Derivatives, sizes: FloatArray, reference: Derivatives, size: float
) -> dict[str, str]:
    r"""Find sites whose rows are those of another, or of the reference.

    Under a strongly regularised model every row's residual is about as large, and a mean gradient
    of :math:`m` rows has about the covariance :math:`H / m`. So

    .. math:: (g_i - g_j)^\top H^{-1} (g_i - g_j) \Big/ \Big(\frac1{m_i} + \frac1{m_j}\Big)

    is about chi-squared for two samples of one distribution, larger where they differ, and smaller
    only for samples that share rows.

    Parameters
    ----------
    names : sequence of str
    known, reference : Derivatives
        At the strongest regularisation first.
    sizes : array of shape (n_sources,)
    size : float
        Of the reference.
    """
    gradients = _as_rows(known)
    own = _as_rows(reference)[0]
    scale = reference.hessians[0, 0]
    values, vectors = np.linalg.eigh(scale)
    kept = values > 1e-6 * values.max()
    whitened = (gradients @ vectors[:, kept]) / np.sqrt(values[kept])
    centre = (own @ vectors[:, kept]) / np.sqrt(values[kept])
    freedom = int(kept.sum())
    n_pairs = 0.5 * len(names) * (len(names) + 1)
    least = float(chi2.ppf(ALIKE / n_pairs, freedom))
    found: dict[str, str] = {}
    first: list[int] = []
    for i, name in enumerate(names):
        gap = np.sum((whitened[i] - centre) ** 2) / (1.0 / sizes[i] + 1.0 / size)
        if gap < least:
            found[name] = COPY_OF_REFERENCE
            continue
        gaps = np.array([np.sum((whitened[i] - whitened[j]) ** 2) for j in first])
        gaps = gaps / (1.0 / sizes[i] + 1.0 / sizes[first]) if first else gaps
        if len(first) and gaps.min() < least:
            found[name] = COPY_OF_SITE.format(other=names[first[int(gaps.argmin())]])
        else:
            first.append(i)
    return found


def _as_rows(known: Derivatives) -> FloatArray:
    """Gradients at the first point, (n_sources, n_outputs * n_features)."""
    d = known.gradients.shape[2] - known.gradients.shape[3]
    return np.asarray(known.gradients[:, 0, :d].swapaxes(1, 2).reshape(len(known.gradients), -1))
