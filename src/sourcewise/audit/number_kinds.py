"""What was done to a source's numbers: a few explicit kinds, compared by their likelihoods.

A model that has not learnt from this source predicts f. On the reference's rows labels lie around
it with the scale s (Student's t with four degrees of freedom: a few far ones are no proof).
"""

from __future__ import annotations

import numpy as np
from scipy import stats

from sourcewise.audit.label_kinds import Hypothesis

FREEDOM = 4.0
# Units that differ by less than this would be no units.
LEAST_FACTOR = 1.1


def hypotheses(
    f: np.ndarray, y: np.ndarray, scale: float, reference: np.ndarray
) -> list[Hypothesis]:
    """All kinds, fitted to labels ``y``; ``reference`` are the reference's labels."""
    n = len(y)
    each = 0.5 * np.log(max(n, 2))
    found = [Hypothesis("clean", _fit(y - f, scale))]
    own = max(_scale(y - f), scale)
    found.append(Hypothesis("noisy labels", _fit(y - f, own) - each, amount=own / scale))
    turned = max(_fit(y + f, scale), _fit(y + f - float(np.median(y + f)), scale) - each)
    found.append(Hypothesis("flipped sign", turned - np.log(2)))
    shift = float(np.median(y - f))
    found.append(Hypothesis("label shift", _fit(y - f - shift, scale) - each, amount=shift))
    factor = _factor(f, y)
    found.append(
        Hypothesis("label units", _fit(y - factor * f, abs(factor) * scale) - each, amount=factor)
    )
    slope, constant = np.polyfit(f, y, 1) if np.ptp(f) > 0 else (0.0, float(np.mean(y)))
    affine = _fit(y - constant - slope * f, max(abs(slope), 1e-12) * scale) - 2 * each
    if slope > 0 and not 1 / LEAST_FACTOR < slope < LEAST_FACTOR:
        found.append(Hypothesis("label units", affine, amount=float(slope)))
    found.append(
        Hypothesis("shuffled labels", _fit(y - np.median(reference), _scale_of(reference)))
    )
    free = _fit(y - np.median(y), _scale_of(y)) - 2 * each
    found.append(Hypothesis("labels unrelated", free))
    return found


def saturated(f: np.ndarray, y: np.ndarray) -> float:
    """Fit any line with any spread around it."""
    n = len(y)
    slope, constant = np.polyfit(f, y, 1) if np.ptp(f) > 0 else (0.0, float(np.mean(y)))
    rest = y - constant - slope * f
    return float(_fit(rest, _scale(rest)) - 1.5 * np.log(max(n, 2)))


def _fit(rest: np.ndarray, scale: float) -> float:
    return float(stats.t.logpdf(rest, FREEDOM, scale=max(scale, 1e-300)).sum())


def spread_around(rest: np.ndarray) -> float:
    """Scale of Student's t around zero, by fixed-point iteration of its likelihood equation."""
    return _scale(rest)


def _scale(rest: np.ndarray) -> float:
    squares = np.asarray(rest, dtype=np.float64) ** 2
    variance = float(np.median(squares)) or float(squares.mean()) or 1e-300
    for _ in range(50):
        variance = float(np.mean((FREEDOM + 1) * squares / (FREEDOM + squares / variance)))
        if variance <= 0:
            return 1e-150
    return float(np.sqrt(variance))


def _scale_of(y: np.ndarray) -> float:
    return _scale(y - np.median(y))


def _factor(f: np.ndarray, y: np.ndarray) -> float:
    """How many times as large labels are, by their sizes: most robust where noise scales too."""
    good = np.abs(f) > 0.2 * np.median(np.abs(f))
    factor = float(np.median(y[good] / f[good])) if good.any() else 1.0
    return factor if factor > 0 else 1.0
