"""What weighted sources gain: errors on trusted rows that no model has seen.

Every fold of the reference is held out once. On what remains, the whole procedure runs again,
measuring and choosing included, and so do its two ends: the reference alone, and all rows alike. Of
a learner other than the default one there are two ways more: all rows, with the learner told which
source each is from, and the default learner.

Intervals are about the error on fresh rows of the model that is handed out. Held-out rows vary, and
so do the models, which share most of their training rows: an interval by the rows alone is too
narrow. A mean over ``n`` held-out rows counts as one over four ninths of them
(``core.folds.independent_share``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
from scipy.stats import t as student
from sklearn.base import clone, is_regressor

from sourcewise.baselines.one_fit import OneFit, OneFitRegressor
from sourcewise.core.folds import independent_share, stratified_folds
from sourcewise.core.mixture import DEFAULT_LEARNER, TOLD
from sourcewise.progress import report_progress
from sourcewise.tables.training import TrainingTable

REFERENCE_ONLY, EVERYTHING, SOURCEWISE = "reference only", "everything", "sourcewise"
ENDS = {REFERENCE_ONLY: 0.0, EVERYTHING: float("inf")}
N_FOLDS = 5
CLEAR = 2.0  # lengths of an interval beyond which a difference is called clear
Z = 1.959964  # 97.5 % quantile of the normal distribution
# What part of the held-out rows counts: models share their training rows.
INDEPENDENT = independent_share(N_FOLDS)


@dataclass(frozen=True)
class Expected:
    """Expected error of one way to train, or a difference of two, with a 95 % interval."""

    name: str
    error: float
    low: float
    high: float

    @property
    def clear(self) -> bool:
        """Whether an interval twice as long would still lie on one side of 0.

        Among differences that are as good as none, those that stand out by chance are most of what
        stands out; and over draws of the reference, held-out differences go against the true ones:
        rows that are easily learned from others like them teach little else. Of six differences
        whose own interval lay below 0, two were above (``benchmarks/coverage``).
        """
        nearer = self.high - self.error if self.error < 0 else self.error - self.low
        return abs(self.error) > CLEAR * nearer


@dataclass(frozen=True)
class ErrorComparison:
    """Cross-validated errors on the reference."""

    measure: str  # {"error rate", "mean absolute error"}
    # Trusted rows that were held out, and in how many folds.
    rows: int
    folds: int
    # Reference only, everything, sourcewise; of a learner other than the default one also all rows
    # with the source as a feature, and the linear default.
    methods: tuple[Expected, ...]
    # Sourcewise minus each of the others, row by row: negative is better.
    differences: tuple[Expected, ...]


@dataclass(frozen=True)
class HeldOut:
    """Losses and predictions on held-out reference rows."""

    # For each way to train: a row's error; NaN for rows that were never held out.
    losses: dict[str, np.ndarray]
    # What the weighted model says of rows it has not seen: a probability of each class, or a
    # number.
    scores: np.ndarray


def held_out_errors(
    training: TrainingTable, make_model: Callable[[], Any], names: np.ndarray, seed: int
) -> HeldOut:
    """Fit all ways without each fold of the reference, and look at that fold.

    The reference's rows come first, so moving the fold to the front makes the other rows one
    contiguous block: no copy of the matrix is made, and the order is restored at the end.
    """
    m = int(training.counts[0])
    X, y = training.X, training.y
    X_own, y_own = X[:m].copy(), y[:m].copy()

    def fit_without(out: np.ndarray) -> dict[str, Any]:
        order = np.concatenate([np.flatnonzero(out), np.flatnonzero(~out)])
        n_out = int(out.sum())
        y[:m] = y_own[order]
        remaining = _without(X, X_own, order, n_out)
        model = make_model()
        ways = {SOURCEWISE: model, **_others(model)}
        for way in ways.values():
            way.fit(remaining, y[n_out:], sources=names[n_out:])
        return with_ends(ways)

    try:
        return hold_out(X_own, y_own, training.classification, fit_without, seed)
    finally:
        y[:m] = y_own
        if not scipy.sparse.issparse(X):
            X[:m] = X_own


def hold_out(
    X: Any,
    y: np.ndarray,
    classification: bool,
    fit_without: Callable[[np.ndarray], dict[str, Any]],
    seed: int,
) -> HeldOut:
    """Look at each fold of the reference's rows by models that were fitted without it.

    ``fit_without`` takes a mask of these rows, and returns models that have not seen them, by the
    names of the ways to train.
    """
    fold_of = _folds(y if classification else None, len(y), seed)
    losses: dict[str, np.ndarray] = {}
    n_classes = len(np.unique(y)) if classification else 0
    scores = np.full((len(y), n_classes) if n_classes else len(y), np.nan)
    for fold in range(N_FOLDS):
        report_progress("comparison", fold, N_FOLDS)
        out = fold_of == fold
        for name, fitted in fit_without(out).items():
            predicted = fitted.predict(X[out])
            of_way = losses.setdefault(name, np.full(len(y), np.nan))
            of_way[out] = _losses(predicted, y[out], classification)
            if name == SOURCEWISE:
                scores[out] = fitted.predict_proba(X[out]) if n_classes else predicted
    return HeldOut(losses, scores)


def with_ends(ways: dict[str, Any]) -> dict[str, Any]:
    """Put the two ends of the weighted model before it, and before whatever else there is."""
    model = ways[SOURCEWISE]
    ends = {name: model.at_trade_off(trade_off) for name, trade_off in ENDS.items()}
    return {**ends, **ways}


def _others(model: Any) -> dict[str, Any]:
    """Return unfitted models of the further ways, if the learner is not the default one."""
    if model.estimator is None:
        return {}
    numbers = is_regressor(model)
    given = {"reference": model.reference, "random_state": model.random_state}
    one_fit = OneFitRegressor if numbers else OneFit
    default = clone(model).set_params(estimator=None)
    return {TOLD: one_fit(model.estimator, rows="told", **given), DEFAULT_LEARNER: default}


def _without(X: Any, own: Any, order: np.ndarray, n_out: int) -> Any:
    """Return all rows but the first of the reference's in this order; of an array, no copy."""
    m = len(order)
    if scipy.sparse.issparse(X):
        return scipy.sparse.vstack([own[order[n_out:]], X[m:]], format="csr")
    X[:m] = own[order]
    return X[n_out:]


def compare_errors(found: HeldOut, classification: bool) -> ErrorComparison:
    """Put held-out errors into intervals."""
    seen = ~np.isnan(found.losses[SOURCEWISE])
    kept = {name: values[seen] for name, values in found.losses.items()}
    interval, of_difference = (_wilson, _discordant) if classification else (_mean, _difference)
    return ErrorComparison(
        "error rate" if classification else "mean absolute error",
        int(seen.sum()),
        N_FOLDS,
        tuple(Expected(name, float(v.mean()), *interval(v)) for name, v in kept.items()),
        tuple(
            Expected(name, float(v.mean()), *of_difference(v))
            for name in kept
            if name != SOURCEWISE
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
    n, p = INDEPENDENT * len(errors), float(errors.mean())
    centre = (p + Z**2 / (2 * n)) / (1 + Z**2 / n)
    half = Z / (1 + Z**2 / n) * np.sqrt(p * (1 - p) / n + Z**2 / (4 * n**2))
    return max(float(centre - half), 0.0), min(float(centre + half), 1.0)


def _discordant(differences: np.ndarray) -> tuple[float, float]:
    """Interval for a difference of two shares on the same rows (Agresti and Min 2005).

    Half a row is added to those that only one of the two gets wrong, on either side: that nobody
    was seen to differ on a few rows does not mean that nobody does.
    """
    n = INDEPENDENT * len(differences)
    worse, better = (n * float(np.mean(differences == sign)) + 0.5 for sign in (1.0, -1.0))
    rows = n + 2.0
    mean = (worse - better) / rows
    half = Z * np.sqrt((worse + better) / rows - mean**2) / np.sqrt(rows)
    return max(float(mean - half), -1.0), min(float(mean + half), 1.0)


def _difference(values: np.ndarray) -> tuple[float, float]:
    """Student's interval for a mean."""
    n = len(values)
    if n < 2:
        return -np.inf, np.inf
    width = float(student.ppf(0.975, n - 1)) / np.sqrt(INDEPENDENT * n)
    half, mean = width * float(values.std(ddof=1)), float(values.mean())
    return mean - half, mean + half


def _mean(errors: np.ndarray) -> tuple[float, float]:
    """Return the same for errors, which are never negative."""
    low, high = _difference(errors)
    return max(low, 0.0), high
