"""Logistic sources, some of them with flipped labels, and models of their reference."""

import numpy as np

from sourcewise.core.data import ReferenceRows, group_rows
from sourcewise.core.discrepancy.reference_folds import ReferenceFolds
from sourcewise.core.discrepancy.reference_models import ReferenceModels


def make(counts, *, d=4, seed=0, flipped=(), strength=2.0):
    rng = np.random.default_rng(seed)
    n = sum(counts)
    X = np.column_stack([rng.normal(size=(n, d)), np.ones(n)])
    score = X[:, :d] @ np.full(d, strength / np.sqrt(d)) + rng.logistic(size=n)
    y = (score > 0).astype(int)
    source = np.repeat(np.arange(len(counts)), counts)
    for bad in flipped:
        y[source == bad] = 1 - y[source == bad]
    return group_rows(X, y, source, reference=0, n_classes=2)[0]


def draw_folds(data, n_folds, n_repeats, seed):
    """Folds of the reference."""
    y = data.y[data.rows(data.reference)]
    labels = y if data.n_classes else None
    return ReferenceFolds.draw(labels, len(y), n_folds, n_repeats, seed)


def fit_reference(data, folds, family, loss, setting=1.0):
    """Fold models of the reference."""
    return ReferenceModels.fit(ReferenceRows.of(data), folds, family, setting, loss)
