"""Losses that the discrepancies and the choice of the trade-off are measured in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from sourcewise.core.choices import DEFAULT
from sourcewise.core.data import FloatArray, IntArray

MEDIAN_TO_STANDARD = 1.4826  # standard deviations of a normal's median absolute deviation
NO_LOSS = 1e-12  # of which a logarithm may be taken


def brier_loss(probabilities: FloatArray, y: IntArray) -> FloatArray:
    """Half the squared distance between predicted probabilities and the label's indicator.

    Bounded by 1, smooth, and equal to the 0/1 loss for a prediction that is certain.

    Parameters
    ----------
    probabilities : array of shape (..., n_rows, n_classes)
    y : int array of shape (n_rows,)
        Class codes.
    """
    at_label = np.take_along_axis(
        probabilities, np.broadcast_to(y[:, None], (*probabilities.shape[:-1], 1)), axis=-1
    )[..., 0]
    squares = np.einsum("...k,...k->...", probabilities, probabilities)
    return np.asarray(0.5 * (squares - 2.0 * at_label + 1.0))


def log_loss(
    probabilities: FloatArray, y: IntArray, least: float = DEFAULT.least_probability
) -> FloatArray:
    """Negative log-probability of the label, which counts as ``least`` at the least."""
    at_label = np.take_along_axis(
        probabilities, np.broadcast_to(y[:, None], (*probabilities.shape[:-1], 1)), axis=-1
    )[..., 0]
    return np.asarray(-np.log(np.maximum(at_label, least)))


def zero_one_loss(probabilities: FloatArray, y: IntArray) -> FloatArray:
    """Return 1 where the most probable class is not the label."""
    return np.asarray((probabilities.argmax(axis=-1) != y).astype(np.float64))


def clipped_squared_loss(
    predictions: FloatArray, y: FloatArray, *, scale: float, clip: float = DEFAULT.clip
) -> FloatArray:
    """Squared error in units of ``(clip * scale)^2``, never above 1.

    With ``scale`` the reference's standard deviation of the target, a constant prediction costs
    about 0.25, as an uninformed probability does under :func:`brier_loss`: the two tasks share one
    range of trade-offs.
    """
    # Cut off before it is squared: a square may be too large for a number.
    return np.asarray(np.clip((predictions - y) / (clip * scale), -1.0, 1.0) ** 2)


@dataclass(frozen=True)
class BoundedLoss:
    """Row loss in [0, 1] that discrepancies are measured in."""

    n_classes: int  # 0 for regression
    scale: float = 1.0  # unit of the regression loss: standard deviation of the reference's targets
    clip: float = DEFAULT.clip  # errors beyond so many units count as this many

    def __call__(self, predictions: FloatArray, y: Any) -> FloatArray:
        """Losses of predictions (..., n_rows, n_classes), or (..., n_rows) for regression."""
        if self.n_classes:
            return brier_loss(predictions, y)
        return clipped_squared_loss(predictions, y, scale=self.scale, clip=self.clip)


def spread(targets: FloatArray, far_off: float = DEFAULT.far_off) -> float:
    """Return the standard deviation of targets, none of which counts as farther than ``far_off``.

    One target with a few zeros too many must not become the unit that all others are measured in.
    Where there is no deviation at all, the unit is 1.
    """
    middle = np.median(targets)
    far = far_off * MEDIAN_TO_STANDARD * np.median(np.abs(targets - middle))
    if far > 0.0:
        targets = np.clip(targets, middle - far, middle + far)
    return float(np.std(targets)) or 1.0
