import numpy as np
import pytest

from sourcewise.core.family import SharedRows, SourceRuns
from sourcewise.core.ridge import RidgeFamily, ridge_without


def plain(X, y, weights, ridge):
    """Ridge regression by the normal equations."""
    A = X.T @ (X * weights[:, None]) + np.diag(ridge)
    return np.linalg.solve(A, X.T @ (weights * y))


def rows(n=50, d=7, seed=0):
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.normal(size=(n, d)), np.ones(n)])
    return X, X[:, 0] + rng.normal(size=n) + 3.0, rng.random(n) + 0.5


def some_left_out(n_groups, n_rows, seed=1):
    left_out = np.random.default_rng(seed).random((n_groups, n_rows)) < 0.4
    left_out[0] = False
    return left_out


@pytest.mark.parametrize("n, d", [(50, 7), (50, 80), (3, 1), (20, 19)])
@pytest.mark.parametrize("C", [1e-3, 1.0, 1e3])
def test_models_are_those_fitted_without_the_rows(n, d, C):
    X, y, weights = rows(n, d)
    weights[-1] = 0.0
    left_out = some_left_out(6, n - 2)
    ridge = np.append(np.ones(d), 1e-8) / C
    found = ridge_without(X, y, weights, left_out, ridge)
    for model, out in zip(found, left_out, strict=True):
        kept = weights.copy()
        kept[: n - 2][out] = 0.0
        expected = plain(X, y, kept, ridge)
        np.testing.assert_allclose(X @ model, X @ expected, atol=1e-6 * np.abs(y).max())


def test_a_row_that_alone_decides_a_coefficient_is_not_left_out_by_the_identity():
    X, y, weights = rows()
    X[:, 0] = 0.0
    X[4, 0] = 1e6
    left_out = np.arange(50) == np.array([[4], [5]])
    assert ridge_without(X, y, weights, left_out, np.full(8, 1e-3)) is None


def test_a_matrix_without_an_inverse_is_left_to_others():
    X, y, weights = rows()
    X[:, 1] = X[:, 0]
    assert ridge_without(X, y, weights, np.zeros((1, 50), bool), np.full(8, -1e-3)) is None


def runs_of(counts, d, seed=2):
    X, y, weights = rows(int(sum(counts)), d, seed)
    return SourceRuns(X, y, weights, np.array(counts))


def weightings(kind, n, seed=3):
    rng = np.random.default_rng(seed)
    base = (rng.random(n) + 0.5)[:, None]
    if kind == "folds":
        return base * (np.arange(n)[:, None] % 4 != np.arange(4))
    return base * rng.random((n, 4))


@pytest.mark.parametrize("d", [5, 40, 150])
@pytest.mark.parametrize("kind", ["folds", "any"])
@pytest.mark.parametrize("far", [False, True])
def test_sources_beside_shared_rows_are_those_fitted_one_by_one(d, kind, far):
    X, y, _ = rows(30, d)
    runs = runs_of([20, 1, 35], d)
    if far:  # one shared row decides a coefficient
        X[:, 0], runs.X[:, 0] = 0.0, 0.0
        X[2, 0] = 1e7
    weights = weightings(kind, 30)
    family = RidgeFamily(np.ones(1))
    shared = SharedRows(X, y, weights, None)
    found = family.fit_beside(shared, runs, 0.5).reshape(3, 4, d + 1)
    for s in range(3):
        joined, targets, joint = shared.join(runs, s)
        for k in range(4):
            expected = plain(joined, targets, joint[:, k], family._penalty(d + 1) / 0.5)
            np.testing.assert_allclose(joined @ found[s, k], joined @ expected, atol=1e-5)


@pytest.mark.parametrize("d", [5, 40, 150])
@pytest.mark.parametrize("far", [False, True])
def test_folds_of_sources_are_those_fitted_one_by_one(d, far):
    runs = runs_of([30, 2, 70], d)
    if far:
        runs.X[:, 0] = 0.0
        runs.X[[3, 31, 40], 0] = 1e6
    n_folds = np.array([5, 2, 5])
    fold = np.concatenate([np.arange(c) % k for c, k in zip(runs.counts, n_folds, strict=True)])
    family = RidgeFamily(np.ones(1))
    found = iter(family.fit_folds(runs, fold, n_folds, 0.5))
    for s in range(3):
        X, y, weights = runs.of(s)
        for f in range(n_folds[s]):
            kept = np.where(fold[runs.rows(s)] == f, 0.0, weights)
            expected = plain(X, y, kept, family._penalty(d + 1) / 0.5)
            kept_rows = X[kept > 0]
            np.testing.assert_allclose(
                kept_rows @ next(found)[0], kept_rows @ expected, rtol=1e-5, atol=1e-5
            )
