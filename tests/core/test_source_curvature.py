"""Weighted sums of curvature and moments, against sums over all rows at once."""

import numpy as np
import pytest
from made_up_grids import untrusted_rows_of

from sourcewise.core import source_curvature
from sourcewise.core.data import group_rows
from sourcewise.core.logistic import probabilities
from sourcewise.core.source_curvature import (
    spread_rows,
    thin,
    weighted_curvature,
    weighted_moments,
)

COUNTS = (12, 30, 5, 1, 17, 40, 3, 8)
N_COLUMNS = 7
# Columns that are asked for, and where they stand: four at one point, three at points of few.
ASKED = np.array([6, 0, 3, 1, 5, 2, 4])
AT = np.array([0, 2, 0, 1, 0, 2, 0])


def pool(n_classes, reference, weighted):
    rng = np.random.default_rng(0)
    n = sum(COUNTS)
    X = np.column_stack([rng.normal(size=(n, 3)), np.ones(n)])
    y = rng.integers(n_classes, size=n) if n_classes else rng.normal(size=n)
    return group_rows(
        X,
        y,
        np.repeat(np.arange(len(COUNTS)), COUNTS),
        reference=reference,
        n_classes=n_classes,
        sample_weight=rng.random(n) + 0.1 if weighted else None,
    )[0]


def table_of_weights():
    """Weights of all sources; some count in no column, and some columns count few."""
    rng = np.random.default_rng(1)
    table = 10 * rng.random((len(COUNTS), N_COLUMNS)) * (rng.random((len(COUNTS), N_COLUMNS)) < 0.6)
    table[[1, 6]] = 0.0
    table[:, 5] = 0.0
    return table


def dense_row_weights(data, table):
    """Weights of all rows in every column; the reference's rows have none."""
    R = np.repeat(table, data.row_counts, axis=0) * data.row_shares[:, None]
    R[data.source_of_row == data.reference] = 0.0
    return R


def some_points(n_classes, n_points):
    outputs = 1 if n_classes == 2 else n_classes
    return np.random.default_rng(2).normal(size=(4, n_points, outputs))


@pytest.fixture(params=["at once", "in pieces"])
def pieces(request, monkeypatch):
    """Take rows and sources a few at a time."""
    if request.param == "in pieces":
        monkeypatch.setattr(source_curvature, "BLOCK_ROWS", 10)
        monkeypatch.setattr(source_curvature, "BUFFER", 1)
        monkeypatch.setattr(source_curvature, "ROW_ENTRIES", 1)


every_pool = pytest.mark.parametrize("reference", [0, 4, -1])
every_weighting = pytest.mark.parametrize("weighted", [False, True])
classes = pytest.mark.parametrize("n_classes", [2, 4])


def expected_curvature(data, weight, point, basis):
    """Hessian in coordinates of a basis, all outputs, and what is outside of it."""
    p = probabilities(data.X @ point)
    V = p[:, 1:] * p[:, :1] if data.n_classes == 2 else p
    V = V[:, :, None] if data.n_classes == 2 else V[:, :, None] * (np.eye(V.shape[1]) - V[:, None])
    Z, outside = data.X, np.zeros(len(data.X))
    if basis is not None:
        inside = data.X[:, :-1] @ basis
        left = data.X[:, :-1] - inside @ basis.T
        Z = np.column_stack([inside, data.X[:, -1]])
        outside = np.sum(left**2, axis=1) / (len(basis) - basis.shape[1])
    k = V.shape[1]
    matrix = np.einsum("n,nkl,nd,ne->kdle", weight, V, Z, Z).reshape(k * Z.shape[1], -1)
    return matrix, np.einsum("n,nkk,n->k", weight, V, outside)


@classes
@every_pool
@every_weighting
@pytest.mark.parametrize("in_basis", [False, True])
def test_curvature_for_preconditioners(n_classes, reference, weighted, in_basis, pieces):
    data, table = pool(n_classes, reference, weighted), table_of_weights()
    points = some_points(n_classes, 3)
    assert np.bincount(AT).tolist() == [4, 1, 2]
    assert source_curvature.FEW_COLUMNS == 2  # both ways are taken
    weights = untrusted_rows_of(table, data)
    basis = np.linalg.qr(np.random.default_rng(5).normal(size=(3, 2)))[0] if in_basis else None
    matrices, outside = weighted_curvature(data, weights, points, ASKED, AT, basis)
    R = dense_row_weights(data, table)
    for k, (q, p) in enumerate(zip(ASKED, AT, strict=True)):
        expected = expected_curvature(data, R[:, q], points[:, p], basis)
        np.testing.assert_allclose(matrices[k], expected[0], rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(outside[k], expected[1], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("n_asked", [1, 4])  # few and many
@classes
def test_a_part_of_the_rows_stands_for_all(n_classes, n_asked):
    # Rows that are repeated four times: one in four is the same.
    data, table = pool(n_classes, 0, False), table_of_weights()
    four = group_rows(
        np.repeat(data.X, 4, axis=0),
        np.repeat(data.y, 4),
        np.repeat(data.source_of_row, 4),
        reference=0,
        n_classes=n_classes,
    )[0]
    weights = untrusted_rows_of(table, data)
    points = some_points(n_classes, 1)
    asked, at = np.arange(n_asked), np.zeros(n_asked, dtype=int)
    thinned = weighted_curvature(four, weights, points, asked, at, every=4)
    whole = weighted_curvature(data, weights, points, asked, at)
    # Rows of little importance are left out for others; what is drawn is right on the whole.
    traces = [np.trace(m, axis1=1, axis2=2) for m in (thinned[0], whole[0])]
    np.testing.assert_allclose(*traces, rtol=0.5)


def test_thinning_draws_what_is_important_and_keeps_each_sources_total():
    rng = np.random.default_rng(0)
    counts = np.array([40, 1, 7, 100])
    importance = rng.exponential(size=counts.sum()) ** 4
    rows, factors = thin(importance, counts, 5)
    source = np.repeat(np.arange(4), counts)
    drawn = importance[rows] * factors
    assert len(rows) <= 8 + 1 + 2 + 20
    for s in range(4):
        np.testing.assert_allclose(
            drawn[source[rows] == s].sum(), importance[source == s].sum(), rtol=1e-12
        )
    step = importance[source == 3].sum() / 20
    assert set(np.flatnonzero((importance > step) & (source == 3))) <= set(rows)


def test_thinning_of_a_source_depends_on_no_other():
    rng = np.random.default_rng(1)
    first, second = rng.random(30), rng.random(50)
    alone, factors = thin(second, np.array([50]), 4)
    both, of_both = thin(np.concatenate([first, second]), np.array([30, 50]), 4)
    np.testing.assert_array_equal(both[both >= 30] - 30, alone)
    np.testing.assert_allclose(of_both[both >= 30], factors, rtol=1e-12)


def test_rows_without_importance_are_not_drawn():
    rows, factors = thin(np.zeros(6), np.array([4, 2]), 2)
    assert len(rows) == len(factors) == 0


@every_pool
def test_spread_is_the_second_moments_times_directions(reference, pieces):
    data = pool(2, reference, False)
    directions = np.random.default_rng(4).normal(size=(3, 2))
    X = data.X[data.source_of_row != data.reference, :-1]
    np.testing.assert_allclose(spread_rows(data, directions), X.T @ X @ directions, rtol=1e-12)


@pytest.mark.parametrize("n_asked", [1, 2, N_COLUMNS])  # few and many
@every_pool
@every_weighting
def test_moments(n_asked, reference, weighted, pieces):
    data, table = pool(0, reference, weighted), table_of_weights()
    asked = ASKED[:n_asked]
    grams, crosses = weighted_moments(data, untrusted_rows_of(table, data), asked)
    R = dense_row_weights(data, table)
    for k, q in enumerate(asked):
        weighted_rows = data.X * R[:, [q]]
        np.testing.assert_allclose(grams[k], data.X.T @ weighted_rows, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(crosses[k], data.y @ weighted_rows, rtol=1e-12, atol=1e-12)


def test_rows_of_sources_that_count_nowhere_are_not_touched():
    data, table = pool(2, 4, False), table_of_weights()
    X = data.X.copy()
    for i in (1, 4, 6):  # the reference among them
        X[data.rows(i)] = np.nan
    spoiled, weights = data.with_features(X), untrusted_rows_of(table, data)
    points = some_points(2, N_COLUMNS)
    for found in (
        *weighted_curvature(spoiled, weights, points, ASKED, AT),
        *weighted_moments(spoiled, weights, ASKED),
        *weighted_moments(spoiled, weights, ASKED[:1]),
    ):
        assert np.isfinite(found).all()
