"""What an answer can be checked for, whoever gives it.

Numbers have ranges that they cannot leave, whatever the rows are: a mean loss lies between 0 and 1,
a covariance within the product of two standard deviations, a curvature is positive. Sites whose
owners add noise bring their answers back into these ranges; whoever sends others is left out.

What was asked tells more: labels vary no more than classes or cut-off targets can, rows are no
longer than mapped ones, and a site's second moments have to go with their product with the
reference's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sourcewise.core.by_rounds import whole_gradients
from sourcewise.core.data import FloatArray
from sourcewise.core.discrepancy.moments import Moments
from sourcewise.core.discrepancy.pull import joint_problem
from sourcewise.core.discrepancy.reference_models import ReferenceModels
from sourcewise.core.engine import Arrays, Message
from sourcewise.core.quadratic_sources import Derivatives, QuadraticSources
from sourcewise.engines.flower.wire import BadMessage

CONTRADICTION = (
    "what it says in training contradicts what it said before ({ratio:.1f} times what its own "
    "curvature allows)"
)
MISJOINED = (
    "the models that it says it has fitted to its rows and the reference's are not what its own "
    "derivatives lead to ({ratio:.1f} times what its curvature allows)"
)
FALSE_LOSS = (
    "the losses that it says models have on its rows are not those that its moments lead to (off "
    "by {off:.3g})"
)
OTHER_ANSWER = "it answers the same question otherwise than before"
OUT_OF_RANGE = "{name} is {value:.3g}, which cannot be"
NOT_CONVEX = "its curvature is not that of any rows"
ROUNDING = 1e-6
# Between two points a gradient changes by the curvature in between. That is about the mean of the
# curvatures at both ends: by how much it may be missed, relative to the change itself.
# Honest sites of few rows and many features missed it by up to 2.8 times the change, flipped labels
# by 5.6 times and more (docs/threats.md).
CURVED = 4.0
# The same for joint models around the reference's own: honest sites missed by up to 0.7 times,
# sites that had fitted the reference's rows alone by 1.5 times and more.
JOINED = 1.0
SAME_ANSWER = 1e-6
NOISE_FLOOR = 1e-3  # of a gradient, below which a change cannot be told from rounding or noise

INFINITE = float("inf")
Range = tuple[Any, Any]
# Of arrays by their name in an answer.
RANGES: dict[str, Range] = {
    "sizes": (0.0, INFINITE),
    "means": (0.0, 1.0),
    "squares": (0.0, 1.0),
    "cubes": (0.0, 1.0),
    "variance_under": (0.0, 1.0),
    "variance_own": (0.0, 1.0),
    "own_means": (0.0, 1.0),
    "own_masses": (0.0, 1.0),
    "prediction_variances": (0.0, INFINITE),
    "agreement_errors": (0.0, INFINITE),
    "concentration": (0.0, 1.0),
    "feature_norms": (0.0, INFINITE),
    "feature_products": (0.0, INFINITE),
    "losses": (0.0, INFINITE),
    "loss_variances": (0.0, INFINITE),
    "square": (0.0, INFINITE),
}
# Mean, square, cube and size of a sample of losses, as far as they are limited.
OF_SAMPLE = ((0.0, 0.0, -INFINITE, 1.0), (1.0, INFINITE, INFINITE, INFINITE))
CURVATURES = ("hessians", "gram")
UNBIASED = 3.0  # most that an unbiased variance is more than one around the rows' own mean
SLACK = 1e-3  # of a range, for rows in single precision


def check_ranges(answer: Arrays, message: Message | None, longest: float = INFINITE) -> None:
    """Refuse numbers that no rows could have led to.

    No mapped row exceeds the squared length ``longest``.
    """
    for name, (low, high) in _ranges_of(answer, message, longest):
        values = answer[name]
        slack = ROUNDING + SLACK * np.abs(np.where(np.isfinite(high), high, 0.0))
        out = (values < low - slack) | (values > high + slack)
        if out.any():
            raise BadMessage(OUT_OF_RANGE.format(name=repr(name), value=values[out].flat[0]))
    for name in CURVATURES:
        if name in answer:
            _check_curvature(answer[name])


def into_range(answer: Arrays, message: Message | None, longest: float = INFINITE) -> Arrays:
    """Bring what noise has moved back to where such numbers can be."""
    found = dict(answer)
    for _ in range(2):  # what one number allows another depends on where it has been brought
        for name, (low, high) in _ranges_of(found, message, longest):
            found[name] = np.clip(found[name], low, high)
    for name in CURVATURES:
        if name in found:
            found[name] = _nearest_curvature(found[name])
    return found


def _ranges_of(answer: Arrays, message: Message | None, longest: float) -> list[tuple[str, Range]]:
    found = [(name, RANGES[name]) for name in answer if name in RANGES]
    sent = {} if message is None else message.sent
    if "own_moments" in answer:
        found.append(("own_moments", tuple(np.array(OF_SAMPLE)[:, :, None, None])))
    if "agreements" in answer and "farthest" in sent:
        found += _agreement_ranges(answer, sent)
    if "feature_norms" in answer and "shares" in sent:
        found += _feature_ranges(answer, sent, longest)
    if "gram" in answer:  # by Cauchy and Schwarz again
        lengths = np.maximum(np.einsum("ddi->di", answer["gram"]), 0.0)
        reach = np.sqrt(lengths[:, None] * np.maximum(answer["square"], 0.0)[None])
        found.append(("cross", (-reach, reach)))
    return found


def _agreement_ranges(answer: Arrays, sent: dict[str, Any]) -> list[tuple[str, Range]]:
    """By Cauchy and Schwarz: a covariance is within the product of the standard deviations."""
    found: list[tuple[str, Range]] = []
    most = UNBIASED  # variance of the outcomes
    if sent["n_classes"]:  # probabilities and indicators of the classes
        found = [(name, (0.0, most)) for name in ("prediction_variances", "agreement_errors")]
    else:
        most *= sent["farthest"] ** 2
    reach = np.sqrt(most * np.maximum(answer["prediction_variances"], 0.0))
    return [*found, ("agreements", (-reach, reach))]


def _feature_ranges(
    answer: Arrays, sent: dict[str, Any], longest: float
) -> list[tuple[str, Range]]:
    r"""Bound the norm of a site's second moments and their product with the reference's.

    With :math:`G` the site's and :math:`T` the reference's, rows of squared length :math:`r` at
    most and the sum of squared shares :math:`c`, the norm from pairs of different rows :math:`u`
    has :math:`\|G\|^2 \le (1 - c) u + c r^2`, so that

    .. math:: \langle G, T \rangle^2 \le \|T\|^2 ((1 - c) u + c r^2), \qquad
              (1 - c) u \le (\operatorname{tr} G)^2
              \le \big(\langle G, T \rangle / \lambda_{\min}(T)\big)^2 .
    """
    X, norms = sent["X"], answer["feature_norms"]
    concentration = np.clip(answer["concentration"], 0.0, 1.0)
    moments = np.asarray((X * sent["shares"][:, None]).T @ X, dtype=np.float64)
    least = float(np.linalg.eigvalsh(moments)[0])
    whole = (1.0 - concentration) * np.maximum(norms, 0.0)
    if np.isfinite(longest):
        whole = whole + concentration * longest**2
    else:
        whole = np.full_like(norms, INFINITE)
    found: list[tuple[str, Range]] = [
        ("feature_products", (0.0, np.sqrt(np.sum(moments**2) * whole))),
        ("feature_norms", (0.0, longest**2 if np.isfinite(longest) else INFINITE)),
    ]
    if least > ROUNDING * np.abs(moments).max():
        trace = np.maximum(answer["feature_products"], 0.0) / least
        most = trace**2 / np.maximum(1.0 - concentration, ROUNDING)
        found.append(("feature_norms", (0.0, most)))
    return found


def _check_curvature(curvature: FloatArray) -> None:
    matrices = np.moveaxis(curvature, -1, 0)
    if matrices.size == 0:
        return
    scale = np.abs(matrices).max()
    if np.abs(matrices - matrices.swapaxes(-1, -2)).max() > ROUNDING * max(scale, 1e-300):
        raise BadMessage(NOT_CONVEX)
    lowest = np.linalg.eigvalsh(matrices).min(axis=-1)
    if (lowest < -1e-5 * max(scale, 1e-300)).any():
        raise BadMessage(NOT_CONVEX)


def _nearest_curvature(curvature: FloatArray) -> FloatArray:
    matrices = np.moveaxis(curvature, -1, 0)
    values, vectors = np.linalg.eigh(0.5 * (matrices + matrices.swapaxes(-1, -2)))
    kept = vectors * np.maximum(values, 0.0)[..., None, :]
    return np.moveaxis(kept @ vectors.swapaxes(-1, -2), 0, -1)


# -- one answer against others -------------------------------------------------------------------


def contradictions(
    names: Sequence[str],
    before: QuadraticSources,
    points: FloatArray,
    now: Derivatives,
    noise: FloatArray,
) -> dict[str, str]:
    """Compare derivatives in training with those that the reference's rows have judged.

    What sites have said ``before`` has an effect on the reference that is part of their
    discrepancies; ``now`` they speak at points (n_points, n_outputs, n_features). Owners say what
    ``noise`` they add to every number, by its standard deviation. Returns a sentence for each site
    that contradicts itself.
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


def misjoined(
    models: FloatArray,
    pilots: QuadraticSources,
    reference: ReferenceModels,
    weights: FloatArray,
    size: float,
    penalty: FloatArray,
    noise: float = 0.0,
) -> float:
    """By how much joint models miss the minimum of what they are said to minimise.

    At the minimum the gradient of the whole vanishes; a site's part of it is what the site has said
    around the nearest of the reference's models. What it misses is measured as in `contradictions`.
    ``pilots`` is the site alone, whose rows count for ``size``; ``weights`` are those of the
    reference's rows in each joint model, (n_reference_rows, n_models).
    """
    n_models, n_outputs, d = models.shape
    found: list[float] = []
    for p, point in enumerate(pilots.points):
        problem = joint_problem(reference, pilots.near(p), weights, size, penalty)
        whole = whole_gradients(problem, models)
        off = (models - point).reshape(n_models, -1)
        hessian = pilots.known.hessians[0, p]
        expected = float(np.linalg.norm(off @ hessian))
        wide = float(n_outputs * d) ** 0.5
        least = NOISE_FLOOR + noise * wide * (
            1.0 + float(np.linalg.norm(off, axis=1).max()) + float(np.linalg.norm(hessian))
        )
        missed = float(np.linalg.norm(whole)) / size
        found.append(missed / max(expected, least * n_models**0.5))
    return min(found)


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


def false_losses(
    models: FloatArray, claimed: FloatArray, known: Moments, noise: float
) -> str | None:
    """Compare the mean squared losses of models (..., n_features) with one source's moments.

    They follow from these, but for the noise that the source's owner adds to every number.
    """
    gram, cross, square = known.gram[0], known.cross[0, :, 0], float(known.square[0, 0])
    bent = models @ gram
    parts = np.sum(bent * models, axis=-1), -2.0 * models @ cross, np.full(claimed.shape, square)
    length = 1.0 + np.abs(models).sum(axis=-1)
    allowed = SAME_ANSWER * sum(map(np.abs, parts), start=1.0) + 10.0 * noise * length**2
    off = np.abs(claimed - sum(parts)) - allowed
    return FALSE_LOSS.format(off=float(off.max())) if (off > 0.0).any() else None
