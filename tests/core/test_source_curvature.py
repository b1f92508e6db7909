"""Weighted sums of curvature and moments, against sums over all rows at once."""

import numpy as np
import pytest
from made_up_grids import untrusted_rows_of

from sourcewise.core import source_curvature
from sourcewise.core.data import group_rows
from sourcewise.core.logistic import probabilities
from sourcewise.core.source_curvature import exact_hessians, weighted_curvature, weighted_moments

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


def second_derivatives(data, point):
    p = probabilities(data.X @ point)
    return (p * (1.0 - p))[:, 1:] if data.n_classes == 2 else p * (1.0 - p)


def some_points(n_classes, n_points):
    outputs = 1 if n_classes == 2 else n_classes
    return np.random.default_rng(2).normal(size=(4, n_points, outputs))


@pytest.fixture(params=["at once", "in pieces"])
def pieces(request, monkeypatch):
    """Take rows and sources a few at a time."""
    if request.param == "in pieces":
        monkeypatch.setattr(source_curvature, "BLOCK_ROWS", 10)
        monkeypatch.setattr(source_curvature, "BUFFER", 1)


every_pool = pytest.mark.parametrize("reference", [0, 4, -1])
every_weighting = pytest.mark.parametrize("weighted", [False, True])
classes = pytest.mark.parametrize("n_classes", [2, 4])


@classes
@every_pool
@every_weighting
def test_curvature_for_preconditioners(n_classes, reference, weighted, pieces):
    data, table = pool(n_classes, reference, weighted), table_of_weights()
    points = some_points(n_classes, 3)
    assert np.bincount(AT).tolist() == [4, 1, 2]
    assert source_curvature.FEW_COLUMNS == 2  # both ways are taken
    weights = untrusted_rows_of(table, data)
    mean, by_output = weighted_curvature(data, weights, points, ASKED, AT)
    assert mean.dtype == np.float32
    R = dense_row_weights(data, table)
    for k, (q, p) in enumerate(zip(ASKED, AT, strict=True)):
        V = R[:, [q]] * second_derivatives(data, points[:, p])
        expected = data.X.T @ (data.X * V.mean(axis=1)[:, None])
        np.testing.assert_allclose(mean[k], expected, rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(by_output[k], V.sum(axis=0), rtol=1e-5)


@classes
@every_pool
@every_weighting
def test_exact_curvature(n_classes, reference, weighted, pieces):
    data, table = pool(n_classes, reference, weighted), table_of_weights()
    points = some_points(n_classes, N_COLUMNS)
    found = exact_hessians(data, untrusted_rows_of(table, data), points, ASKED)
    R = dense_row_weights(data, table)
    for k, q in enumerate(ASKED):
        V = R[:, [q]] * second_derivatives(data, points[:, k])
        expected = [data.X.T @ (data.X * v[:, None]) for v in V.T]
        np.testing.assert_allclose(found[k], expected, rtol=1e-11, atol=1e-12)


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
        exact_hessians(spoiled, weights, points, ASKED),
        *weighted_moments(spoiled, weights, ASKED),
        *weighted_moments(spoiled, weights, ASKED[:1]),
    ):
        assert np.isfinite(found).all()
