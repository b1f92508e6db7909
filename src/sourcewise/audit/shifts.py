"""How columns of a source differ from the reference's, one by one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

# How far columns must differ before it is mentioned, and how sure that must be.
SHIFT, CERTAIN = 0.5, 4.0
SCALE = 3.0


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
