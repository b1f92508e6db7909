"""Logistic regressions by Newton's method with whole Hessians, one column after the other."""

import numpy as np
from scipy.special import logsumexp, softmax


def fit_logistic(X, y, row_weights, C, *, n_classes, penalty=None, tol=1e-12):
    """Coefficients (n_columns, n_outputs, n_features) of weightings (n_rows, n_columns)."""
    X = np.asarray(X, dtype=np.float64)
    penalty = np.ones(X.shape[1]) if penalty is None else penalty
    columns = zip(np.asarray(row_weights, dtype=np.float64).T, C, strict=True)
    return np.stack([_fit(X, y, r, penalty / c, n_classes, tol) for r, c in columns])


def _fit(X, y, weights, ridge, n_classes, tol):
    outputs, d = (1 if n_classes <= 2 else n_classes), X.shape[1]
    indicator = np.eye(max(n_classes, 2))[y]
    shrink = np.tile(ridge, outputs)

    def scores(w):
        found = X @ w.reshape(outputs, d).T
        return np.column_stack([np.zeros(len(X)), found]) if outputs == 1 else found

    def objective(w):
        z = scores(w)
        loss = logsumexp(z, axis=1) - np.sum(indicator * z, axis=1)
        return weights @ loss + 0.5 * np.sum(shrink * w**2)

    w = np.zeros(outputs * d)
    for _ in range(500):
        p = softmax(scores(w), axis=1)[:, -outputs:]
        residual = weights[:, None] * (p - indicator[:, -outputs:])
        gradient = (residual.T @ X).ravel() + shrink * w
        inner = np.einsum("nk,kl->nkl", p, np.eye(outputs)) - p[:, :, None] * p[:, None, :]
        inner *= weights[:, None, None]
        H = np.einsum("nkl,nd,ne->kdle", inner, X, X, optimize=True).reshape(w.size, w.size)
        step = np.linalg.lstsq(H + np.diag(shrink), gradient)[0]
        decrease, now, length = gradient @ step, objective(w), 1.0
        if decrease <= tol * max(now, 1e-300):
            break
        while objective(w - length * step) > now - 1e-4 * length * decrease and length > 1e-12:
            length *= 0.5
        w = w - length * step
    return w.reshape(outputs, d)
