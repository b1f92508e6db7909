"""Small pools of sources: a reference, clean sources, and one whose labels are noise."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest


class SmallPool(NamedTuple):
    X: np.ndarray
    y: np.ndarray
    sources: np.ndarray


def _draw(rows, n_features, seed):
    rng = np.random.default_rng(seed)
    sources = np.repeat(list(rows), list(rows.values()))
    X = rng.normal(size=(len(sources), n_features))
    return rng, X, sources


@pytest.fixture
def class_pool():
    """Pool for classification; labels of the source "bad" are drawn at random."""

    def make(rows=None, n_features=4, n_classes=2, labels=None, seed=0):
        rows = rows or {"gold": 40, "good": 80, "bad": 80}
        rng, X, sources = _draw(rows, n_features, seed)
        scores = X[:, :n_classes] if n_classes > 2 else np.column_stack([0 * X[:, 0], X[:, 0]])
        y = (2.0 * scores + rng.gumbel(size=scores.shape) * 0.5).argmax(axis=1)
        bad = sources == "bad"
        y[bad] = rng.integers(0, n_classes, size=bad.sum())
        return SmallPool(X, y if labels is None else np.asarray(labels)[y], sources)

    return make


@pytest.fixture
def number_pool():
    """Pool for regression; the source "bad" has the sign wrong."""

    def make(rows=None, n_features=4, seed=0):
        rows = rows or {"gold": 40, "good": 80, "bad": 80}
        rng, X, sources = _draw(rows, n_features, seed)
        y = 10.0 + 3.0 * X[:, 0] - X[:, 1] + 0.5 * rng.normal(size=len(X))
        y[sources == "bad"] = 20.0 - y[sources == "bad"]
        return SmallPool(X, y, sources)

    return make
