"""Sums over sparse rows are those over the same rows in an array."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

from sourcewise.core import sparse_gradients
from sourcewise.core.data import group_rows
from sourcewise.core.source_curvature import spread_rows
from sourcewise.core.source_weights import GivenWeights
from sourcewise.core.sparse_rows import SparseRows
from sourcewise.engines.memory import MemorySums

D, COUNTS = 30, (25, 40, 1, 33)
EVERY = np.arange(4)


def sums(n_classes):
    """Return sums over the same pool in an array and in sparse rows."""
    rng = np.random.default_rng(0)
    n = sum(COUNTS)
    features = scipy.sparse.random_array((n, D), density=0.2, rng=rng, format="csr")
    shift = rng.normal(size=D)
    rows = SparseRows.of(features, shift, np.ones(n))
    X = np.column_stack([features.toarray() - shift, np.ones(n)])
    y = rng.integers(0, n_classes, n) if n_classes else rng.normal(size=n)
    owner = np.repeat(np.arange(len(COUNTS)), COUNTS)
    weight = np.where(rng.random(n) < 0.9, rng.random(n), 0.0)
    weight[COUNTS[0] + COUNTS[1]] = 1.0  # the only row of its source
    data, _ = group_rows(X, y, owner, reference=1, n_classes=n_classes, sample_weight=weight)
    values = rng.random((len(COUNTS) - 1, len(EVERY)))
    values[0, 1] = values[2, 2] = values[:, 3] = 0.0
    weights = GivenWeights(values)
    return MemorySums(data, weights), MemorySums(data.with_features(rows), weights)


def points(n_classes, n_points):
    outputs = 1 if n_classes <= 2 else n_classes
    return np.random.default_rng(2).normal(size=(D + 1, n_points, outputs))


@pytest.mark.parametrize("n_classes", [0, 2, 3])
@pytest.mark.parametrize("scores", [10, 4_000_000])
def test_gradients(n_classes, scores, monkeypatch):
    monkeypatch.setattr(sparse_gradients, "SCORES", scores)
    dense, sparse = sums(n_classes)
    W, some, at = points(n_classes, 4), np.array([2, 0]), np.array([0, 0, 1, 0])
    for asked in ((W, EVERY), (W[:, some], some), (W[:, :2], EVERY, at)):
        found, wanted = sparse.gradients(*asked), dense.gradients(*asked)
        np.testing.assert_allclose(found, wanted, atol=1e-6)


@pytest.mark.parametrize("n_classes", [0, 2, 3])
@pytest.mark.parametrize("n_directions", [None, 6])
@pytest.mark.parametrize("every", [1, 3])
def test_curvature(n_classes, n_directions, every):
    dense, sparse = sums(n_classes)
    basis = None
    if n_directions:
        drawn = np.random.default_rng(3).normal(size=(D, n_directions))
        basis = np.linalg.qr(drawn)[0]
    W, at = points(n_classes, 2), np.array([0, 1, 0, 0])
    ours = sparse.curvature(W, EVERY, at, basis, every)
    theirs = dense.curvature(W, EVERY, at, basis, every)
    for found, wanted in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(found, wanted, atol=1e-9)


def test_moments():
    dense, sparse = sums(0)
    for asked in (EVERY, EVERY[:1]):
        for found, wanted in zip(sparse.moments(asked), dense.moments(asked), strict=True):
            np.testing.assert_allclose(found, wanted, atol=1e-12)


def test_spread():
    dense, sparse = sums(2)
    Q = np.random.default_rng(3).normal(size=(D, 3))
    found, wanted = (spread_rows(each._data, Q) for each in (sparse, dense))
    np.testing.assert_allclose(found, wanted, atol=1e-10)
