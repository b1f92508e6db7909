import numpy as np
import pytest
from plain_logistic import fit_logistic
from sklearn.linear_model import LogisticRegression

from sourcewise.core.fold_logistic import LogisticColumns, fit_logistic_folds
from sourcewise.core.logistic import probabilities
from sourcewise.core.loss import Logistic


def rows(n_classes, n=120, d=6, seed=0, noise=1.5):
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.normal(size=(n, d)), np.ones(n)])
    scores = X @ rng.normal(size=(d + 1, n_classes)) + noise * rng.gumbel(size=(n, n_classes))
    weights = (rng.random(n) + 0.5)[:, None] * (np.arange(n)[:, None] % 5 != np.arange(5))
    return X, scores.argmax(axis=1), weights


def predictions(models, X):
    return probabilities((X @ models.reshape(-1, X.shape[1]).T).reshape(len(X), *models.shape[:2]))


@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_folds_are_those_of_scikit_learn(n_classes, C):
    X, y, weights = rows(n_classes)
    found = fit_logistic_folds(
        X, y, weights, np.full(5, C), n_classes=n_classes, penalty=np.ones(7), tol=1e-12
    )
    for k in range(5):
        theirs = LogisticRegression(C=C, fit_intercept=False, tol=1e-10, max_iter=10_000)
        theirs.fit(X, y, sample_weight=weights[:, k])
        np.testing.assert_allclose(found[k], theirs.coef_, atol=2e-5 * np.abs(found[k]).max())


@pytest.mark.parametrize("n_classes", [2, 4])
def test_columns_of_any_regularisation_and_order_are_those_of_the_plain_solver(n_classes):
    X, y, weights = rows(n_classes, seed=1)
    weights = np.concatenate([weights, np.ones((len(y), 1)), weights[:, :2] * 0.01], axis=1)
    C = np.array([1.0, 0.1, 1.0, 10.0, 0.1, 30.0, 1.0, 10.0])
    given = X, y, weights, C
    how = {"n_classes": n_classes, "penalty": np.append(np.ones(6), 1e-3), "tol": 1e-12}
    np.testing.assert_allclose(
        fit_logistic_folds(*given, **how), fit_logistic(*given, **how), atol=2e-5
    )


def odd(kind, n_classes):
    """Rows that are not as rows should be, of the classes that are left."""
    X, y, weights = rows(n_classes, n=60, seed=2)
    if kind == "one row":
        return X[:1], y[:1], np.ones((1, 5))
    if kind == "one class":
        return X, np.zeros_like(y), weights
    if kind == "a class is missing":
        return X, np.where(y == n_classes - 1, 0, y), weights
    if kind == "a class in one fold only":
        y = np.where(y == 0, 1, y)
        y[0] = 0
        return X, y, weights
    if kind == "more features than rows":
        return np.column_stack([np.random.default_rng(3).normal(size=(60, 90)), X]), y, weights
    if kind == "repeated rows":
        return np.repeat(X[:6], 10, axis=0), y, weights
    if kind == "zero columns":
        X[:, :3] = 0.0
        return X, y, weights
    if kind == "separable":
        return X, np.digitize(X[:, 0], np.linspace(-1, 1, n_classes + 1)[1:-1]), weights
    if kind == "a column without weight":
        weights[:, 2] = 0.0
        return X, y, weights
    raise ValueError(kind)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(
    "kind",
    [
        "one row", "one class", "a class is missing", "a class in one fold only",
        "more features than rows", "repeated rows", "zero columns", "separable",
        "a column without weight",
    ],
)  # fmt: skip
def test_odd_rows_give_the_models_of_the_plain_solver(kind, n_classes):
    X, y, weights = odd(kind, n_classes)
    how = {"n_classes": n_classes, "penalty": np.append(np.ones(X.shape[1] - 1), 1e-3)}
    C = np.full(5, 5.0)
    expected = fit_logistic(X, y, weights, C, tol=1e-13, **how)
    found = fit_logistic_folds(X, y, weights, C, tol=1e-12, **how)
    np.testing.assert_allclose(predictions(found, X), predictions(expected, X), atol=2e-5)
    narrow = fit_logistic_folds(X.astype(np.float32), y, weights, C, tol=1e-7, **how)
    assert narrow.dtype == np.float32
    np.testing.assert_allclose(predictions(narrow, X), predictions(expected, X), atol=1e-2)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_weightings_that_have_nothing_in_common_are_fitted_all_the_same(n_classes):
    X, y, _ = rows(n_classes, n=90, noise=0.1)
    weights = (np.arange(90)[:, None] % 5 == np.arange(5)).astype(float)
    how = {"n_classes": n_classes, "penalty": np.append(np.ones(6), 1e-3)}
    C = np.full(5, 100.0)
    expected = fit_logistic(X, y, weights, C, tol=1e-13, **how)
    found = fit_logistic_folds(X, y, weights, C, tol=1e-11, **how)
    np.testing.assert_allclose(predictions(found, X), predictions(expected, X), atol=2e-4)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_blocks_of_rows_and_shared_points_do_not_change_gradients(n_classes, monkeypatch):
    X, y, weights = rows(n_classes)
    labels = Logistic(n_classes).labels(y, X.dtype)
    columns = LogisticColumns(X, labels, weights, np.ones((7, 5)))
    points = np.random.default_rng(4).normal(size=(7, 2, labels.shape[1]))
    at, some = np.array([1, 0, 1]), np.array([0, 2, 4])
    plain = columns.gradient(points[:, at], some)
    monkeypatch.setattr("sourcewise.core.fold_logistic.BLOCK", 100)
    found = columns.gradient(points, some, at)
    np.testing.assert_allclose(found.value, plain.value, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(found.floor, plain.floor, rtol=1e-6)
