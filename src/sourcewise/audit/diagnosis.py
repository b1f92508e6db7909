"""A guess at what is wrong with a source, from its own rows and the reference's model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

N_SHIFTS = 5
# How far rows must differ before it is mentioned, and how sure that must be.
SHIFT, CERTAIN = 0.5, 4.0
SCALE = 3.0
ONE_CLASS = 0.95

QUESTIONS = {
    "label bias": (
        "Ask how labels are assigned when an annotator is unsure or skips an item, and whether a "
        "default label is filled in. Have {source} label twenty of your trusted rows."
    ),
    "flipped labels": (
        "Ask for the label key: which code stands for which class. If the classes were swapped, "
        "the rows can be saved by swapping them back."
    ),
    "flipped sign": (
        "Ask for the direction and the sign of the label. If it was turned, the rows can be saved "
        "by turning it back."
    ),
    "shuffled labels": (
        "Ask how labels and rows were joined: a sort or a merge on the wrong key detaches them. "
        "Ask for the row identifiers, and check a few labels by hand."
    ),
    "different scale": (
        "Ask for the units and the export settings of the columns below (inches or centimetres, "
        "comma or point, normalised or not). Converted, the rows may be good."
    ),
    "feature shift": (
        "Ask whether columns have the order and the units of yours; then where and when these rows "
        "were collected, and from whom. They may be right and yet not about the cases you care for."
    ),
    "label scale": (
        "Ask for the unit of the label and how it was measured. Converted, the rows may be good."
    ),
    "noisy labels": (
        "Ask who labels, by which guideline, and whether anyone checks. Have {source} label "
        "twenty of your trusted rows."
    ),
    "unclear": "Look at twenty of its rows beside twenty of yours, and ask how they were made.",
}


@dataclass(frozen=True)
class LabelRate:
    """Share of a label among a source's rows and among the reference's."""

    label: Any
    source: float
    reference: float


@dataclass(frozen=True)
class FeatureShift:
    """How one column differs from the reference.

    Attributes
    ----------
    feature : str
    difference : float
        Of the means, in standard deviations of the reference.
    spread : float
        Standard deviation over that of the reference.
    """

    feature: str
    difference: float
    spread: float


@dataclass(frozen=True)
class SourceCard:
    """What is known about a source that disagrees.

    Attributes
    ----------
    source : str
    weight : float
    rows : int
    evidence : str
        Which model showed the discrepancy.
    kind : str
        Guess: a key of ``QUESTIONS``.
    why, question : str
        What the guess rests on, and what to ask the vendor.
    labels : tuple of LabelRate
    shifts : tuple of FeatureShift
        Largest first.
    agreement, reference_agreement : float
        Share of labels that the reference's model predicts, here and on held-out trusted rows; for
        numbers, the correlation of label and prediction.
    """

    source: str
    weight: float
    rows: int
    evidence: str
    kind: str
    why: str
    question: str
    labels: tuple[LabelRate, ...]
    shifts: tuple[FeatureShift, ...]
    agreement: float
    reference_agreement: float


@dataclass(frozen=True)
class Side:
    """Rows of one side: the reference, or a source.

    Attributes
    ----------
    X : array
    y : array
        Labels.
    predicted : array
        What the reference's model says; for the reference's own rows, held out.
    """

    X: np.ndarray
    y: np.ndarray
    predicted: np.ndarray


def diagnose(source: Side, reference: Side, features: np.ndarray) -> dict[str, Any]:
    """Guess what is wrong: the keys of `SourceCard` that come from rows."""
    shifts, scales = compare_features(source.X, reference.X, features)
    if source.y.dtype.kind == "f" and reference.predicted.dtype.kind == "f":
        kind, why, rates, agreement = _regression(source, reference, shifts, scales)
    else:
        kind, why, rates, agreement = _classification(source, reference, shifts, scales)
    return {
        "kind": kind,
        "why": why,
        "labels": rates,
        "shifts": tuple((scales if kind == "different scale" else shifts)[:N_SHIFTS]),
        "agreement": agreement[0],
        "reference_agreement": agreement[1],
    }


def compare_features(
    X: np.ndarray, reference: np.ndarray, features: np.ndarray
) -> tuple[list[FeatureShift], list[FeatureShift]]:
    """Columns whose mean, and columns whose spread, clearly differs; largest first.

    The error of a standard deviation depends on the fourth moment: a column that is zero but for a
    few rows may show any spread by chance.
    """
    mean_s, sd_s, error_s = _moments(X)
    mean_r, sd_r, error_r = _moments(reference)
    unit = np.where(sd_r > 0, sd_r, np.where(sd_s > 0, sd_s, 1.0))
    difference = (mean_s - mean_r) / unit
    noise = np.sqrt(1.0 / len(reference) + (np.maximum(sd_s, unit) / unit) ** 2 / len(X))
    spread = np.divide(sd_s, sd_r, out=np.where(sd_s > 0, np.inf, 1.0), where=sd_r > 0)
    with np.errstate(divide="ignore"):
        log_spread = np.where((sd_s > 0) & (sd_r > 0), np.log(sd_s / unit), 0.0)
    both = np.sqrt(error_s**2 + error_r**2)
    dead = (sd_s == 0) & (sd_r > 0) & (error_r < 0.15) & (len(X) >= 20)
    shifted = (np.abs(difference) > SHIFT) & (np.abs(difference) > CERTAIN * noise)
    scaled = (np.abs(log_spread) > np.log(SCALE)) & (np.abs(log_spread) > CERTAIN * both)
    scaled &= (error_s < 0.25) & (error_r < 0.25)
    by_mean = np.argsort(-np.abs(difference), kind="stable")
    by_spread = np.argsort(-np.where(dead, np.inf, np.abs(log_spread)), kind="stable")

    def listed(order: np.ndarray, chosen: np.ndarray) -> list[FeatureShift]:
        return [
            FeatureShift(str(features[j]), float(difference[j]), float(spread[j]))
            for j in order
            if chosen[j]
        ]

    return listed(by_mean, shifted), listed(by_spread, scaled | dead)


def _moments(X: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean, standard deviation, and the standard error of the latter's logarithm."""
    mean = X.mean(axis=0, dtype=np.float64)
    second, fourth = np.zeros(X.shape[1]), np.zeros(X.shape[1])
    for low in range(0, len(X), 8192):
        square = (X[low : low + 8192] - mean) ** 2
        second += square.sum(axis=0)
        fourth += (square**2).sum(axis=0)
    variance = second / len(X)
    # Rounding leaves a trace of variance in a constant column.
    sd = np.where(variance > 1e-24 * (mean**2 + 1e-300), np.sqrt(variance), 0.0)
    kurtosis = np.divide(fourth / len(X), variance**2, out=np.full_like(sd, 3.0), where=sd > 0)
    return mean, sd, np.sqrt(np.maximum(kurtosis - 1.0, 0.1) / (4 * len(X)))


def _classification(
    source: Side, reference: Side, shifts: list[FeatureShift], scales: list[FeatureShift]
) -> tuple[str, str, tuple[LabelRate, ...], tuple[float, float]]:
    classes = np.unique(reference.y)
    names = classes.tolist()
    here = np.array([np.mean(source.y == c) for c in classes])
    there = np.array([np.mean(reference.y == c) for c in classes])
    rates = tuple(
        LabelRate(c, float(a), float(b)) for c, a, b in zip(names, here, there, strict=True)
    )
    n = len(source.y)
    says = np.array([np.mean(source.predicted == c) for c in classes])
    chance = float(here @ says)
    agreement = float(np.mean(source.predicted == source.y))
    known = np.array([p == p and p is not None for p in reference.predicted.tolist()])
    usual = float(np.mean(reference.predicted[known] == reference.y[known]))
    both = (agreement, usual)
    noise = np.sqrt(max(chance * (1 - chance), 0.01) / n)
    room = max(usual - chance, 0.0)
    top = int(np.argmax(here))
    text = f"your reference's model agrees with {agreement:.0%} of its labels"
    beside = f"on your own rows it is right for {usual:.0%}"
    if here[top] >= ONE_CLASS and there[top] < 0.8:
        why = f"{here[top]:.0%} of its rows have the label {names[top]!r}; of yours, "
        return "label bias", f"{why}{there[top]:.0%}.", rates, both
    if scales and _sizeable(scales):
        return "different scale", _scale_words(scales), rates, both
    if agreement < chance - max(3 * noise, 0.3 * room):
        why = f"{text}, fewer than chance would ({chance:.0%}); {beside}."
        return "flipped labels", why.capitalize(), rates, both
    apart = 0.5 * float(np.abs(here - there).sum())
    apart_noise = np.sqrt(0.25 / n + 0.25 / len(reference.y))
    if shifts and _sizeable(shifts):
        return "feature shift", _shift_words(shifts), rates, both
    if abs(agreement - chance) <= max(3 * noise, 0.2 * room) and apart <= max(3 * apart_noise, 0.1):
        why = (
            f"{text}, about what chance gives ({chance:.0%}); {beside}, and label rates are close."
        )
        return "shuffled labels", why.capitalize(), rates, both
    if apart > max(3 * apart_noise, 0.15):
        most = int(np.argmax(here - there))
        why = f"{here[most]:.0%} of its rows have the label {names[most]!r}; of yours, "
        return "label bias", f"{why}{there[most]:.0%}.", rates, both
    if agreement < usual:
        return "noisy labels", f"{text}; {beside}.".capitalize(), rates, both
    return "unclear", f"{text}; {beside}.".capitalize(), rates, both


def _regression(
    source: Side, reference: Side, shifts: list[FeatureShift], scales: list[FeatureShift]
) -> tuple[str, str, tuple[LabelRate, ...], tuple[float, float]]:
    known = np.isfinite(reference.predicted)
    here = _correlation(source.predicted, source.y)
    usual = _correlation(reference.predicted[known], reference.y[known])
    noise = 3.0 / np.sqrt(len(source.y))
    sd = float(reference.y.std()) or 1.0
    ratio = float(source.y.std()) / sd
    shift = (float(source.y.mean()) - float(reference.y.mean())) / sd
    rates = (
        LabelRate("mean", float(source.y.mean()), float(reference.y.mean())),
        LabelRate("standard deviation", float(source.y.std()), float(reference.y.std())),
    )
    both = (here, usual)
    words = (
        f"Its labels correlate {here:+.2f} with what your reference's model predicts; "
        f"your own do {usual:+.2f}"
    )
    if scales and _sizeable(scales):
        return "different scale", _scale_words(scales), rates, both
    if here < -max(noise, 0.3 * usual):
        return "flipped sign", f"{words}: the sign is turned.", rates, both
    if not 1 / 2 < ratio < 2:
        why = f"Its labels spread {ratio:.3g} times as widely as yours."
        return "label scale", why, rates, both
    if shifts and _sizeable(shifts):
        return "feature shift", _shift_words(shifts), rates, both
    if abs(here) < max(noise, 0.25 * usual) and usual > noise:
        return "shuffled labels", f"{words}.", rates, both
    if abs(shift) > SHIFT:
        side = "higher" if shift > 0 else "lower"
        why = f"Its labels are on average {abs(shift):.2g} standard deviations {side} than yours."
        return "label bias", why, rates, both
    return ("noisy labels" if here < usual else "unclear"), f"{words}.", rates, both


def _correlation(a: np.ndarray, b: np.ndarray) -> float:
    a, b = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    a, b = a - a.mean(), b - b.mean()
    size = float(np.sqrt((a @ a) * (b @ b)))
    return float(a @ b) / size if size > 0 else 0.0


def _sizeable(found: list[FeatureShift]) -> bool:
    """Whether columns differ so much that labels need not be at fault."""
    return any(abs(f.difference) > 1.0 or not 1 / SCALE < f.spread < SCALE for f in found)


def _scale_words(found: list[FeatureShift]) -> str:
    first = found[0]
    if first.spread == 0:
        many = sum(f.spread == 0 for f in found)
        more = f" (and {many - 1} more columns)" if many > 1 else ""
        return f"Column {first.feature!r} never changes here{more}; in your rows it does."
    more = f" (and {len(found) - 1} more columns)" if len(found) > 1 else ""
    return (
        f"Column {first.feature!r}{more} spreads {first.spread:.3g} times as widely as in your "
        "reference."
    )


def _shift_words(found: list[FeatureShift]) -> str:
    first = found[0]
    side = "higher" if first.difference > 0 else "lower"
    more = f", and {len(found) - 1} more columns differ" if len(found) > 1 else ""
    return (
        f"Column {first.feature!r} is on average {abs(first.difference):.2g} standard deviations "
        f"{side} than in your reference{more}."
    )
