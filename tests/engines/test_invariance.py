"""Results depend on the sources alone: not on their order, their batches or their engine."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from chunked_sources import ChunkedSources
from sklearn.datasets import load_digits

import sourcewise as sw
from sourcewise.core import choices
from sourcewise.engines import memory
from sourcewise.estimators.input import SourceInput


def unequal(kind, seed=0):
    """Rows of unequal sources, some of them bad; the reference is in the middle."""
    rng = np.random.default_rng(seed)
    if kind == "ten classes":
        X, y = load_digits(return_X_y=True)
        order = rng.permutation(len(y))[:900]
        X, y = X[order], y[order]
        counts = [100, 3, 160, 1, 90, 75, 171, 120, 80, 100]
    else:
        counts = [60, 3, 150, 1, 40, 75, 310, 12, 33, 61, 7]
        if kind == "wide":
            counts = [30, 3, 40, 1, 20, 35, 60, 12, 13, 31, 7]
        n, d = sum(counts), 300 if kind == "wide" else 12
        X = rng.normal(size=(n, d))
        score = X[:, :5] @ [2.0, -1.0, 1.0, 0.5, -2.0] + rng.logistic(size=n)
        y = score if kind == "regression" else (score > 0).astype(int)
    names = np.array([f"s{i}" for i in range(len(counts))])
    source = np.repeat(names, counts)
    for bad in ("s2", "s5"):
        y[source == bad] = rng.permutation(y[source == bad])
    weight = rng.uniform(0.2, 3.0, size=len(y)) if kind == "sample weights" else None
    return X, y, source, names, weight


LARGEST_MEAN = 16.0  # of any feature, the digits'
KINDS = ["two classes", "ten classes", "regression", "sample weights", "wide"]


def fit(kind, order=None, **options):
    X, y, source, names, weight = unequal(kind)
    order = range(len(names)) if order is None else order
    rows = np.concatenate([np.flatnonzero(source == names[i]) for i in order])
    model = sw.SourceWeightedRegressor if kind == "regression" else sw.SourceWeightedClassifier
    model = model(reference="s9", random_state=0, **options)
    model.fit(
        X[rows],
        y[rows],
        sources=source[rows],
        sample_weight=None if weight is None else weight[rows],
    )
    return model


@cache
def plain_fit(kind, discrepancy="combined"):
    return fit(kind, discrepancy=discrepancy)


def assert_same(one, other):
    first, second = np.argsort(one.sources_), np.argsort(other.sources_)
    np.testing.assert_allclose(
        other.source_weights_[second], one.source_weights_[first], rtol=0, atol=1e-8
    )
    np.testing.assert_allclose(
        other.discrepancies_[second], one.discrepancies_[first], rtol=0, atol=1e-7
    )
    scale = np.abs(one.coef_).max()
    np.testing.assert_allclose(other.coef_, one.coef_, rtol=0, atol=1e-6 * max(scale, 1.0))
    # It is the sum of the coefficients times where the features are centred.
    parts = np.abs(one.coef_).sum(axis=-1).max() * LARGEST_MEAN
    np.testing.assert_allclose(
        other.intercept_, one.intercept_, rtol=0, atol=1e-6 * max(parts, 1.0)
    )
    np.testing.assert_allclose(
        other.discrepancy_result_.p_values[second],
        one.discrepancy_result_.p_values[first],
        rtol=1e-6,
        atol=1e-9,
    )


DISCREPANCIES = ["combined", "local", "cross-fit", "plug-in"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("discrepancy", DISCREPANCIES)
def test_order_of_sources_does_not_matter(kind, discrepancy):
    if kind == "ten classes" and discrepancy != "combined":
        pytest.skip("takes long, and two classes show the same")
    plain = plain_fit(kind, discrepancy=discrepancy)
    shuffled = fit(
        kind, np.random.default_rng(3).permutation(len(plain.sources_)), discrepancy=discrepancy
    )
    assert_same(plain, shuffled)


@pytest.mark.parametrize("kind", KINDS)
def test_batches_do_not_matter(kind, monkeypatch):
    plain = plain_fit(kind)
    monkeypatch.setattr(memory, "BLOCK_ROWS", 50)
    assert_same(plain, fit(kind))


@pytest.fixture
def in_pieces(monkeypatch):
    """Let every fit keep its untrusted sources in pieces of so many."""
    in_memory = SourceInput._in_memory
    used = []

    def split(per_piece):
        def chunked(self, *rows):
            sources, reference = in_memory(self, *rows)
            used.append(ChunkedSources.of(sources, per_piece))
            return used[-1], reference

        monkeypatch.setattr(SourceInput, "_in_memory", chunked)

    split.used = used
    return split


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("per_piece", [1, 4])
def test_pieces_do_not_matter(kind, per_piece, in_pieces):
    plain = plain_fit(kind)
    in_pieces(per_piece)
    assert_same(plain, fit(kind))
    assert len(in_pieces.used[-1].pieces) > 2


@pytest.mark.parametrize(
    "options",
    [
        {"discrepancy": "local"},
        {"discrepancy": "cross-fit"},
        {"discrepancy": "plug-in"},
        {"protocol": "paper"},
        {"trade_off": 2.0},
        {"trade_off": float("inf")},
    ],
)
def test_pieces_do_not_matter_under_any_options(options, in_pieces):
    plain = fit("two classes", **options)
    in_pieces(3)
    assert_same(plain, fit("two classes", **options))


def test_a_copy_of_the_reference_is_at_distance_zero_wherever_it_stands(monkeypatch):
    monkeypatch.setattr(choices, "DEFAULT", replace(choices.DEFAULT, without_copies=False))
    X, y, source, names, _ = unequal("wide")
    copy = source == "s9"
    X, y = np.concatenate([X, X[copy]]), np.concatenate([y, y[copy]])
    source = np.concatenate([source, np.repeat("copy", copy.sum())])
    model = sw.SourceWeightedClassifier(reference="s9", discrepancy="plug-in", random_state=0)
    for rows in (np.arange(len(y)), np.arange(len(y))[::-1]):
        model.fit(X[rows], y[rows], sources=source[rows])
        assert model.discrepancies_[model.sources_.tolist().index("copy")] == 0.0
