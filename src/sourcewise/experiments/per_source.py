"""What one source says by itself or against the reference: its model, the paper's discrepancy."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sourcewise.baselines.local import NEWTON_TOL, constant_penalty
from sourcewise.core.discrepancy.moments import Moments
from sourcewise.core.discrepancy.separation import separating_models
from sourcewise.core.family import kept_shares
from sourcewise.core.newton import newton_logistic

LOCAL_C = 100.0  # of the local models behind the medians, the authors' choice
PLUG_IN_RIDGE = 1e-6


@dataclass(frozen=True)
class ReferenceMoments:
    """The reference, whole and without each fold.

    Attributes
    ----------
    X : array of shape (n_reference, d)
    signs : array of shape (n_reference,)
        1 and -1.
    shares : array of shape (1 + n_folds, n_reference)
        Row shares: all rows, then without each fold.
    moments : Moments
        One entry for each of these.
    """

    X: np.ndarray
    signs: np.ndarray
    shares: np.ndarray
    moments: Moments

    @classmethod
    def of(cls, X: np.ndarray, y: np.ndarray, held_out: np.ndarray) -> ReferenceMoments:
        """Compute the moments of the reference's rows."""
        whole = np.full(len(y), 1.0 / len(y))
        shares = np.stack([whole, *(kept_shares(whole, out) for out in held_out)])
        X, signs = X.astype(np.float64), 2.0 * y - 1.0
        gram = np.stack([(X * s[:, None]).T @ X for s in shares])
        cross = (shares * signs) @ X
        moments = Moments(gram, cross[:, :, None], np.ones((len(shares), 1)))
        return cls(X, signs, shares, moments)

    def discrepancies(self, X: np.ndarray, y: np.ndarray, gram: np.ndarray) -> np.ndarray:
        """Discrepancies of appendix B of sources (n, m, d): (n, 1 + n_folds)."""
        own, (n, m, _) = self.moments, X.shape
        signs, wide = 2.0 * y - 1.0, X.astype(np.float64)
        cross = np.matmul(signs[:, None, :], wide)[:, 0] / m
        sources = Moments(gram, cross[:, :, None], np.ones((n, 1)))
        values = np.empty((n, len(self.shares)))
        for v, shares in enumerate(self.shares):
            one = Moments(own.gram[v : v + 1], own.cross[v : v + 1], own.square[v : v + 1])
            models = separating_models(sources, one, ridge=PLUG_IN_RIDGE)[:, 0]
            theirs = np.matmul(wide, models[:, :, None])[:, :, 0] * signs < 0.0
            ours = (self.X @ models.T) * self.signs[:, None] < 0.0
            values[:, v] = np.abs(theirs.mean(axis=1) - shares @ ours)
        return values


def grams(X: np.ndarray) -> np.ndarray:
    """Return ``X'X / m`` of sources (n, m, d)."""
    wide = X.astype(np.float64)
    return np.matmul(wide.transpose(0, 2, 1), wide) / X.shape[1]


def local_models(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Fit each source; where it shows one class: log-odds 1 for it, whatever the features."""
    penalty = constant_penalty(X.shape[2], penalise=True)
    ones = np.ones((1, X.shape[1]))
    models = np.zeros((len(X), X.shape[2]))
    for i in range(len(X)):
        if y[i].min() == y[i].max():
            models[i, -1] = (2.0 * y[i, 0] - 1.0) / X[i, 0, -1]
        else:
            models[i] = newton_logistic(
                X[i], y[i], ones, np.array([LOCAL_C]), penalty=penalty, tol=NEWTON_TOL
            )[0, 0]
    return models
