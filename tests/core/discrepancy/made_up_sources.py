"""Logistic sources, some of them with flipped labels."""

import numpy as np

from sourcewise.core.data import group_rows


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
