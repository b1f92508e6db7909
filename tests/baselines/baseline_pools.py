"""Pools with a reference, good sources, and bad ones whose labels are the wrong way round."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class SmallPool(NamedTuple):
    X: np.ndarray
    y: np.ndarray
    sources: np.ndarray


def make_pool(rows=None, n_features=4, n_classes=2, noise=0.4, seed=0):
    """Make a pool; sources whose name begins with "bad" have their labels moved on by one."""
    rows = rows or {"gold": 60, "good": 90, "fine": 80, "bad": 90}
    rng = np.random.default_rng(seed)
    sources = np.repeat(list(rows), list(rows.values()))
    X = rng.normal(size=(len(sources), n_features))
    truth = np.random.default_rng(99).normal(size=(n_features, n_classes))
    y = (X @ truth + noise * rng.gumbel(size=(len(X), n_classes))).argmax(axis=1)
    bad = np.char.startswith(sources, "bad")
    y[bad] = (y[bad] + 1) % n_classes
    return SmallPool(X, y, sources)
