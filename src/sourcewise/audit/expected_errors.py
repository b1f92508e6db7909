"""What weighted sources gain: errors on trusted rows that no model has seen.

Every fold of the reference is held out once. On what remains, the whole procedure runs again,
measuring and choosing included, and so do its two ends: the reference alone, and all rows alike.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from sourcewise.core.folds import stratified_folds
from sourcewise.progress import report_progress
from sourcewise.tables.training import TrainingTable

REFERENCE_ONLY, EVERYTHING, SOURCEWISE = "reference only", "everything", "sourcewise"
ENDS = {REFERENCE_ONLY: 0.0, EVERYTHING: float("inf")}
N_FOLDS = 5
Z = 1.959964  # 97.5 % quantile of the normal distribution


@dataclass(frozen=True)
class Expected:
    """Expected error of one way to train, with a 95 % interval."""

    name: str
    error: float
    low: float
    high: float


@dataclass(frozen=True)
class ErrorComparison:
    """Cross-validated errors on the reference.

    Attributes
    ----------
    measure : {"error rate", "mean absolute error"}
    rows, folds : int
        Trusted rows that were held out, and in how many folds.
    methods : tuple of Expected
        Reference only, everything, sourcewise.
    differences : tuple of Expected
        Sourcewise minus each of the other two, row by row: negative is better.
    """

    measure: str
    rows: int
    folds: int
    methods: tuple[Expected, ...]
    differences: tuple[Expected, ...]


@dataclass(frozen=True)
class HeldOut:
    """Losses and predictions on held-out reference rows.

    Attributes
    ----------
    losses : dict of arrays
        For each way to train: a row's error; NaN for rows that were never held out.
    predictions : array
        What the reference alone predicts for its own rows.
    """

    losses: dict[str, np.ndarray]
    predictions: np.ndarray


def held_out_errors(
    training: TrainingTable, make_model: Callable[[], Any], names: np.ndarray, seed: int
) -> HeldOut:
    """Fit all three ways without each fold of the reference, and look at that fold.

    The reference's rows come first, so moving the fold to the front makes the other rows one
    contiguous block: no copy of the matrix is made, and the order is restored at the end.
    """
    m = int(training.counts[0])
    X, y = training.X, training.y
    X_own, y_own = X[:m].copy(), y[:m].copy()
    fold_of = _folds(y_own if training.classification else None, m, seed)
    losses = {name: np.full(m, np.nan) for name in [*ENDS, SOURCEWISE]}
    predictions = np.full(m, np.nan, dtype=object if training.classification else np.float64)
    try:
        for fold in range(N_FOLDS):
            report_progress("comparison", fold, N_FOLDS)
            out = fold_of == fold
            n_out = int(out.sum())
            order = np.concatenate([np.flatnonzero(out), np.flatnonzero(~out)])
            X[:m], y[:m] = X_own[order], y_own[order]
            model = make_model().fit(X[n_out:], y[n_out:], sources=names[n_out:])
            for name in [*ENDS, SOURCEWISE]:
                fitted = model.at_trade_off(ENDS[name]) if name in ENDS else model
                predicted = fitted.predict(X_own[out])
                losses[name][out] = _losses(predicted, y_own[out], training.classification)
                if name == REFERENCE_ONLY:
                    predictions[out] = predicted
    finally:
        X[:m], y[:m] = X_own, y_own
    return HeldOut(losses, predictions)


def compare_errors(found: HeldOut, classification: bool) -> ErrorComparison:
    """Put held-out errors into intervals."""
    seen = ~np.isnan(found.losses[SOURCEWISE])
    kept = {name: values[seen] for name, values in found.losses.items()}
    interval = _wilson if classification else _normal
    return ErrorComparison(
        "error rate" if classification else "mean absolute error",
        int(seen.sum()),
        N_FOLDS,
        tuple(Expected(name, float(v.mean()), *interval(v)) for name, v in kept.items()),
        tuple(
            Expected(name, float(v.mean()), *_normal(v, at_least=-np.inf))
            for name in ENDS
            for v in [kept[SOURCEWISE] - kept[name]]
        ),
    )


def _folds(labels: np.ndarray | None, n_rows: int, seed: int) -> np.ndarray:
    """Fold of each row; -1 for the only row of a class, which training needs."""
    rng = np.random.default_rng(seed)
    if labels is None:
        return stratified_folds(None, n_rows, N_FOLDS, rng)
    _, codes, counts = np.unique(labels, return_inverse=True, return_counts=True)
    folds = np.array(stratified_folds(codes, n_rows, N_FOLDS, rng))
    folds[counts[codes] == 1] = -1
    return folds


def _losses(predicted: np.ndarray, y: np.ndarray, classification: bool) -> np.ndarray:
    lost = predicted != y if classification else np.abs(predicted - y)
    return np.asarray(lost, dtype=np.float64)


def _wilson(errors: np.ndarray) -> tuple[float, float]:
    """Wilson's interval for a share."""
    n, p = len(errors), float(errors.mean())
    centre = (p + Z**2 / (2 * n)) / (1 + Z**2 / n)
    half = Z / (1 + Z**2 / n) * np.sqrt(p * (1 - p) / n + Z**2 / (4 * n**2))
    return max(float(centre - half), 0.0), min(float(centre + half), 1.0)


def _normal(values: np.ndarray, at_least: float = 0.0) -> tuple[float, float]:
    half = Z * float(values.std(ddof=1)) / np.sqrt(len(values)) if len(values) > 1 else np.inf
    mean = float(values.mean())
    return max(mean - float(half), at_least), mean + float(half)
