"""Losses that the discrepancies and the choice of the trade-off are measured in."""

from __future__ import annotations

import numpy as np

from sourcewise.core.data import FloatArray, IntArray

# Standard deviations of a normal's median absolute deviation, and how many of them are far off.
MEDIAN_TO_STANDARD, FAR_OFF = 1.4826, 10.0
CLIP = 2.0  # residuals beyond this many scale units count as this many
LEAST_PROBABILITY = 1e-6  # lower ones count as this much, so that one row cannot decide alone
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


def log_loss(probabilities: FloatArray, y: IntArray) -> FloatArray:
    """Negative log-probability of the label, which is at least `LEAST_PROBABILITY`."""
    at_label = np.take_along_axis(
        probabilities, np.broadcast_to(y[:, None], (*probabilities.shape[:-1], 1)), axis=-1
    )[..., 0]
    return np.asarray(-np.log(np.maximum(at_label, LEAST_PROBABILITY)))


def zero_one_loss(probabilities: FloatArray, y: IntArray) -> FloatArray:
    """Return 1 where the most probable class is not the label."""
    return np.asarray((probabilities.argmax(axis=-1) != y).astype(np.float64))


def clipped_squared_loss(
    predictions: FloatArray, y: FloatArray, *, scale: float, clip: float = CLIP
) -> FloatArray:
    """Squared error in units of ``(clip * scale)^2``, never above 1.

    With ``scale`` the reference's standard deviation of the target, a constant prediction costs
    about 0.25, as an uninformed probability does under :func:`brier_loss`: the two tasks share one
    range of trade-offs.
    """
    # Cut off before it is squared: a square may be too large for a number.
    return np.asarray(np.clip((predictions - y) / (clip * scale), -1.0, 1.0) ** 2)


def spread(targets: FloatArray) -> float:
    """Return the standard deviation of targets none of which counts as farther off than `FAR_OFF`.

    One target with a few zeros too many must not become the unit that all others are measured in.
    Where there is no deviation at all, the unit is 1.
    """
    middle = np.median(targets)
    far = FAR_OFF * MEDIAN_TO_STANDARD * np.median(np.abs(targets - middle))
    if far > 0.0:
        targets = np.clip(targets, middle - far, middle + far)
    return float(np.std(targets)) or 1.0
