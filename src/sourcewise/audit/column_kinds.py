"""What was done to a source's columns, seen in the columns alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import linear_sum_assignment

QUANTILES = np.array([0.05, 0.25, 0.5, 0.75, 0.95])
MOST_COLUMNS = 200


@dataclass(frozen=True)
class ColumnFinding:
    """A change of the columns, and the rows with it undone.

    Attributes
    ----------
    kind : str
    columns : int array
        Which columns.
    repaired : array, optional
        The rows as they would be without it; None where it cannot be undone.
    came_from : int array, optional
        Of permuted columns: where each came from.
    """

    kind: str
    columns: np.ndarray
    repaired: np.ndarray | None = None
    came_from: np.ndarray | None = None


def permuted(X: np.ndarray, reference: np.ndarray) -> ColumnFinding | None:
    """Find columns that lie where others belong.

    In their places they differ from the reference's; in other places they would not.
    """
    d = X.shape[1]
    if d < 2 or d > MOST_COLUMNS:
        return None
    unit = reference.std(axis=0)
    live = np.flatnonzero((unit > 0) | (X.std(axis=0) > 0))
    if len(live) < 2:
        return None
    cost = _distances(X[:, live], reference[:, live])
    stay = float(np.trace(cost))
    rows, places = linear_sum_assignment(cost)
    move = float(cost[rows, places].sum())
    moved = np.flatnonzero(places != rows)
    # How much of the misfit goes, and how much remains, in units of noise per column.
    if len(moved) < 2 or stay < 8.0 * len(live) or move > 0.2 * stay or move > 6.0 * len(live):
        return None
    repaired = X.copy()
    repaired[:, live[places]] = X[:, live[rows]]
    return ColumnFinding("columns permuted", live[moved], repaired, live[places[moved]])


def _distances(X: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """Squared differences of quantiles, in units of their noise: (columns here, columns there)."""
    here, there = np.quantile(X, QUANTILES, axis=0).T, np.quantile(reference, QUANTILES, axis=0).T
    spread = np.maximum(_typical(X)[:, None], _typical(reference)[None])
    noise = spread**2 * (1.0 / len(X) + 1.0 / len(reference))
    apart = ((here[:, None] - there[None]) ** 2).mean(axis=2)
    return np.asarray(np.minimum(apart / np.maximum(noise, 1e-300), 1e6))


def _typical(X: np.ndarray) -> np.ndarray:
    return np.asarray(X.std(axis=0) + 1e-12 * (np.abs(X).max(axis=0) + 1e-300))


def other_units(X: np.ndarray, reference: np.ndarray) -> ColumnFinding | None:
    """Find a few columns that would fit, were they multiplied or moved."""
    sd_s, sd_r = X.std(axis=0), reference.std(axis=0)
    both = (sd_s > 0) & (sd_r > 0)
    if not both.any():
        return None
    ratio = np.ones(len(sd_s))
    ratio[both] = _width(X[:, both]) / np.maximum(_width(reference[:, both]), 1e-300)
    with np.errstate(divide="ignore", invalid="ignore"):
        far = both & (np.abs(np.log(np.maximum(ratio, 1e-12))) > np.log(2.0))
    if not far.any() or far.sum() > max(1, 0.3 * both.sum()):
        return None
    repaired = X.astype(np.float64, copy=True)
    for j in np.flatnonzero(far):
        # One factor where that is enough, as between inches and centimetres.
        middle_s, middle_r = np.median(X[:, j]), np.median(reference[:, j])
        repaired[:, j] = (X[:, j] - middle_s) / ratio[j] + middle_r
    return ColumnFinding("other units", np.flatnonzero(far), repaired)


def _width(X: np.ndarray) -> np.ndarray:
    low, high = np.quantile(X, [0.1, 0.9], axis=0)
    return np.asarray(np.where(high > low, high - low, X.std(axis=0)))


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
    return ColumnFinding("other population", far) if len(far) else None
