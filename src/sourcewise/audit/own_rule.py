"""Whether a source's labels follow its own columns, and by the same rule as the model's."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

MOST_ROWS = 1500
PENALTIES = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0)


@dataclass(frozen=True)
class OwnRule:
    """How well rows of a source predict its other rows.

    Attributes
    ----------
    correlation : float
        Of labels with what ridge regression on the other rows says (leave one out).
    likeness : float
        Of that with what the model says.
    rows : int
    """

    correlation: float
    likeness: float
    rows: int

    @property
    def sureness(self) -> float:
        """Distance from no correlation, in standard errors."""
        r = min(max(self.correlation, -0.999), 0.999)
        return float(np.arctanh(r) * np.sqrt(self.rows))


def own_rule(X: np.ndarray, targets: np.ndarray, scores: np.ndarray) -> OwnRule:
    """Compare labels, what the source's other rows say, and the model's ``scores``.

    ``targets`` and ``scores`` are (rows, outputs).
    """
    n = len(X)
    if n > MOST_ROWS:
        chosen = np.random.default_rng(0).choice(n, MOST_ROWS, replace=False)
        X, targets, scores = X[chosen], targets[chosen], scores[chosen]
        n = MOST_ROWS
    said = _left_out(X, targets - targets.mean(axis=0))
    return OwnRule(
        correlation(said, targets - targets.mean(axis=0)),
        correlation(said, scores - scores.mean(axis=0)),
        n,
    )


def _left_out(X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """Ridge regression's predictions for each row from the others, penalty by the same rows."""
    Z = X - X.mean(axis=0)
    sd = Z.std(axis=0)
    Z = Z[:, sd > 0] / sd[sd > 0]
    if Z.shape[1] == 0:
        return np.zeros_like(Y)
    U, s, _ = np.linalg.svd(np.clip(Z, -5, 5), full_matrices=False)
    best, chosen = np.inf, np.zeros_like(Y)
    for penalty in PENALTIES:
        share = s**2 / (s**2 + penalty * len(X))
        fitted = (U * share) @ (U.T @ Y)
        leverage = np.minimum((U**2 * share).sum(axis=1) + 1.0 / len(X), 0.99)
        out = (fitted - leverage[:, None] * Y) / (1.0 - leverage[:, None])
        error = float(((Y - out) ** 2).mean())
        if error < best:
            best, chosen = error, out
    return chosen


def correlation(a: np.ndarray, b: np.ndarray) -> float:
    """Correlation of all numbers of two arrays around zero."""
    size = float(np.sqrt((a**2).sum() * (b**2).sum()))
    return float((a * b).sum()) / size if size > 0 else 0.0
