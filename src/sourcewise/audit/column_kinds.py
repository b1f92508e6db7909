"""What was done to a source's columns, seen in the columns alone, and how each differs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linear_sum_assignment

QUANTILES = np.array([0.05, 0.25, 0.5, 0.75, 0.95])
MOST_COLUMNS = 200
# Columns of fewer values are counts or yes and no, whose quantiles jump.
FEW_VALUES = 10
# Factors are tried that are off by so much.
SLIPS = (1.0, 0.95, 1.05, 0.9, 1.1, 0.85, 1.15)
# How far columns must differ before it is mentioned, and how sure that must be.
SHIFT, CERTAIN = 0.5, 4.0
SCALE = 3.0


@dataclass(frozen=True)
class ColumnFinding:
    """A change of the columns, and the rows with it undone."""

    kind: str
    columns: np.ndarray  # which
    repaired: np.ndarray | None = None  # None where it is not to be undone
    came_from: np.ndarray | None = None  # where each of the permuted columns came from


def permuted(X: np.ndarray, reference: np.ndarray) -> Iterator[ColumnFinding]:
    """Find columns that lie where others belong.

    In their places they differ from the reference's; in other places they would not.
    """
    d = X.shape[1]
    if d < 2 or d > MOST_COLUMNS:
        return
    unit = reference.std(axis=0)
    live = np.flatnonzero((unit > 0) | (X.std(axis=0) > 0))
    if len(live) < 2:
        return
    cost = _distances(X[:, live], reference[:, live])
    stay = float(np.trace(cost))
    rows, places = linear_sum_assignment(cost)
    move = float(cost[rows, places].sum())
    moved = np.flatnonzero(places != rows)
    # How much of the misfit goes, and how much remains, in units of noise per column.
    if len(moved) < 2 or stay < 8.0 * len(live) or move > 0.2 * stay or move > 6.0 * len(live):
        return
    repaired = X.copy()
    repaired[:, live[places]] = X[:, live[rows]]
    yield ColumnFinding("columns permuted", live[moved], repaired, live[places[moved]])


def _distances(X: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """Squared differences of quantiles, in units of their noise: (columns here, columns there)."""
    here, there = np.quantile(X, QUANTILES, axis=0).T, np.quantile(reference, QUANTILES, axis=0).T
    spread = np.maximum(_typical(X)[:, None], _typical(reference)[None])
    noise = spread**2 * (1.0 / len(X) + 1.0 / len(reference))
    apart = ((here[:, None] - there[None]) ** 2).mean(axis=2)
    return np.asarray(np.minimum(apart / np.maximum(noise, 1e-300), 1e6))


def _typical(X: np.ndarray) -> np.ndarray:
    return np.asarray(X.std(axis=0) + 1e-12 * (np.abs(X).max(axis=0) + 1e-300))


def other_units(X: np.ndarray, reference: np.ndarray) -> Iterator[ColumnFinding]:
    """Find a few columns that would fit, were they multiplied or moved; yields ways to undo it."""
    both = (X.std(axis=0) > 0) & (reference.std(axis=0) > 0)
    if not both.any():
        return
    ratio = np.ones(X.shape[1])
    ratio[both] = _width(X[:, both], reference[:, both])
    far = np.flatnonzero(both & (np.abs(np.log(ratio)) > np.log(2.0)))
    if not len(far) or len(far) > max(1, 0.3 * both.sum()):
        return
    middles = np.median(X[:, far], axis=0), np.median(reference[:, far], axis=0)
    for factor, zero in _conversions(ratio[far], *middles):
        repaired = X.astype(np.float64, copy=True)
        repaired[:, far] = X[:, far] / factor + zero
        yield ColumnFinding("other units", far, repaired)


def _conversions(
    ratio: np.ndarray, here: np.ndarray, there: np.ndarray
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Factors and zeros to try, the plainest first; a factor by widths is only about right."""
    none = np.zeros(len(ratio))
    with np.errstate(divide="ignore", invalid="ignore"):
        middle = here / there
    # One factor where that is enough, as between inches and centimetres.
    if np.all(np.abs(np.log(np.maximum(middle, 1e-12) / ratio)) < np.log(1.3)):
        yield middle, none
    for slip in SLIPS:
        yield ratio * slip, there - here / (ratio * slip)
        yield ratio * slip, none


def _width(X: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """How many times as wide columns are.

    By quantiles, that a few far values do not decide. Of columns of few values these jump: the
    whole range and the standard deviations must say the same, and of two values the range is all.
    """
    low, high = np.quantile(X, [0.1, 0.9], axis=0)
    own_low, own_high = np.quantile(reference, [0.1, 0.9], axis=0)
    inner = (high > low) & (own_high > own_low)
    with np.errstate(all="ignore"):  # numbers may be as large as numbers get
        spread = np.nan_to_num(X.std(axis=0) / reference.std(axis=0), nan=1.0, posinf=1.0)
        ranges = np.nan_to_num(np.ptp(X, axis=0) / np.ptp(reference, axis=0), nan=1.0, posinf=1.0)
    by_quantiles = np.divide(high - low, own_high - own_low, out=spread.copy(), where=inner)
    values = np.maximum(_values(X), _values(reference))
    few = values < FEW_VALUES
    spread[values <= 2] = ranges[values <= 2]
    both = [np.where(few, found, by_quantiles) for found in (ranges, spread)]
    logs = np.log(np.maximum(both, 1e-300))
    agree = np.sign(logs[0]) == np.sign(logs[1])
    least = np.where(np.abs(logs[0]) < np.abs(logs[1]), logs[0], logs[1])
    return np.asarray(np.exp(np.where(agree, least, 0.0)))


def _values(X: np.ndarray) -> np.ndarray:
    """Count the different values of each column."""
    ordered = np.sort(X, axis=0)
    return np.asarray((ordered[1:] != ordered[:-1]).sum(axis=0) + 1)


def noisier(X: np.ndarray, reference: np.ndarray) -> ColumnFinding | None:
    """Find that most columns spread more widely than the reference's, around the same middle."""
    sd_s, sd_r = X.std(axis=0), reference.std(axis=0)
    live = (sd_r > 0) & (sd_s > 0)
    if live.sum() < 2:
        return None
    error = _log_error(X[:, live]) + _log_error(reference[:, live])
    wider = np.log(sd_s[live] / sd_r[live])
    shift = np.abs(X.mean(axis=0) - reference.mean(axis=0))[live] / sd_s[live]
    sure = float(np.mean(wider)) > 4.0 * float(np.mean(error)) / np.sqrt(live.sum())
    if np.mean(wider > 0.1) > 0.8 and np.median(wider) > 0.15 and sure and np.median(shift) < 0.3:
        return ColumnFinding("noisy features", np.flatnonzero(live)[wider > 0.1])
    return None


def _log_error(X: np.ndarray) -> np.ndarray:
    """Return the standard error of the logarithm of a standard deviation."""
    centred = X - X.mean(axis=0)
    # Of a column that hardly varies a square of the variance may be too small for a number.
    centred /= np.maximum(np.abs(centred).max(axis=0), 1e-300)
    variance = (centred**2).mean(axis=0)
    kurtosis = (centred**4).mean(axis=0) / variance**2
    return np.asarray(np.sqrt(np.maximum(kurtosis - 1.0, 0.1) / (4 * len(X))))


def elsewhere(X: np.ndarray, reference: np.ndarray) -> ColumnFinding | None:
    """Find that rows lie elsewhere: means of columns that differ clearly."""
    sd = np.where(reference.std(axis=0) > 0, reference.std(axis=0), X.std(axis=0))
    live = sd > 0
    noise = np.sqrt(1.0 / len(X) + 1.0 / len(reference))
    apart = np.zeros(len(sd))
    apart[live] = np.abs(X.mean(axis=0) - reference.mean(axis=0))[live] / sd[live]
    bound = 0.3 + np.sqrt(2 * np.log(max(int(live.sum()), 2))) * noise * 1.5
    far = np.flatnonzero(apart > bound)
    far = far[np.argsort(-apart[far], kind="stable")]
    return ColumnFinding("other population", far) if len(far) else None


@dataclass(frozen=True)
class FeatureShift:
    """How one column differs from the reference."""

    feature: str
    difference: float  # of the means, in standard deviations of the reference
    spread: float  # standard deviation over that of the reference


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
