import numpy as np
import pytest

from sourcewise.core.logistic import fit_logistic
from sourcewise.core.newton import newton_logistic


def rows(n=120, d=6, seed=0):
    rng = np.random.default_rng(seed)
    X = np.hstack(
        [rng.normal(size=(n, d - 1)) * 10.0 ** rng.uniform(-1, 1, d - 1), np.ones((n, 1))]
    )
    y = (X @ rng.normal(size=d) + rng.logistic(size=n) > 0).astype(np.intp)
    weights = np.stack([np.ones(n), rng.uniform(size=n), rng.integers(0, 2, n).astype(float)])
    return X, y, weights


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_agrees_with_the_batched_solver(dtype):
    X, y, weights = rows()
    C = np.array([1.0, 1e-3, 100.0])
    penalty = np.append(np.ones(5), 1e-3)
    found = newton_logistic(X.astype(dtype), y, weights, C, penalty=penalty, tol=1e-12)
    expected = fit_logistic(
        X,
        y,
        np.repeat(weights, 3, axis=0).T,
        np.tile(C, 3),
        n_classes=2,
        penalty=penalty,
        tol=1e-14,
    )
    tolerance = 1e-5 if dtype == np.float64 else 1e-2
    np.testing.assert_allclose(found.reshape(9, -1), expected[:, 0], atol=tolerance, rtol=tolerance)


def test_separable_rows_and_a_single_class():
    X = np.array([[-2.0, 1.0], [-1.0, 1.0], [1.0, 1.0], [2.0, 1.0]])
    for y in (np.array([0, 0, 1, 1]), np.ones(4, dtype=int)):
        w = newton_logistic(
            X, y, np.ones((1, 4)), np.array([1e6]), penalty=np.array([1.0, 1e-3]), tol=1e-10
        )[0, 0]
        p = 1.0 / (1.0 + np.exp(-X @ w))
        assert ((p > 0.5) == y).all() and np.isfinite(w).all()
        ridge = np.array([1.0, 1e-3]) / 1e6
        np.testing.assert_allclose(X.T @ (p - y) + ridge * w, 0.0, atol=1e-4)


def test_no_rows_at_all_give_the_zero_model():
    X, y, _ = rows()
    w = newton_logistic(X, y, np.zeros((1, len(y))), np.array([1.0]), penalty=np.ones(6), tol=1e-10)
    np.testing.assert_array_equal(w, 0.0)


def test_columns_too_alike_for_single_precision():
    X, y, _ = rows()
    twice = 1e3 * np.hstack([X, X + 1e-9 * X[::-1]])
    w = newton_logistic(
        twice, y, np.ones((1, len(y))), np.array([1e6]), penalty=np.ones(12), tol=1e-10
    )[0, 0]
    p = 1.0 / (1.0 + np.exp(-twice @ w))
    ordinary = newton_logistic(
        1e3 * X, y, np.ones((1, len(y))), np.array([2e6]), penalty=np.ones(6), tol=1e-10
    )[0, 0]
    np.testing.assert_allclose(p, 1.0 / (1.0 + np.exp(-1e3 * X @ ordinary)), atol=1e-3)
