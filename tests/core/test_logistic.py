import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression

from sourcewise.core.fold_logistic import fit_logistic_folds
from sourcewise.core.logistic import probabilities


def problem(n_classes, n=200, d=6, columns=5, seed=0, noise=3.0):
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.normal(size=(n, d)), np.ones(n)])
    scores = X @ rng.normal(size=(d + 1, n_classes)) + noise * rng.gumbel(size=(n, n_classes))
    y = scores.argmax(axis=1)
    return X, y, rng.random((n, columns)), np.logspace(-3, 3, columns)


def fit_logistic(X, y, R, C, *, n_classes, penalty=None, tol=1e-9, start=None):
    penalty = np.ones(X.shape[1]) if penalty is None else penalty
    return fit_logistic_folds(
        X, y, R, C, n_classes=n_classes, penalty=penalty, tol=tol, start=start
    )


def objective(X, y, weights, C, coef, penalty=None):
    """Evaluate the plain formula for one column."""
    scores = X @ coef.T
    if len(coef) == 1:
        loss = np.logaddexp(0, scores[:, 0]) - y * scores[:, 0]
    else:
        loss = np.logaddexp.reduce(scores, axis=1) - scores[np.arange(len(y)), y]
    penalty = np.ones(X.shape[1]) if penalty is None else penalty
    return weights @ loss + 0.5 / C * np.sum(penalty * coef**2)


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_every_column_reaches_the_optimum_of_scikit_learn(n_classes):
    X, y, R, C = problem(n_classes)
    fit = fit_logistic(X, y, R, C, n_classes=n_classes)
    for p in range(len(C)):
        theirs = LogisticRegression(C=C[p], fit_intercept=False, tol=1e-10, max_iter=10_000)
        theirs.fit(X, y, sample_weight=R[:, p])
        best = objective(X, y, R[:, p], C[p], theirs.coef_)
        assert objective(X, y, R[:, p], C[p], fit[p]) <= best * (1 + 1e-7)


def test_penalty_per_feature_against_scipy():
    X, y, R, C = problem(2, n=80, d=3, columns=2)
    penalty = np.array([1.0, 0.1, 10.0, 1e-3])
    fit = fit_logistic(X, y, R, C, n_classes=2, penalty=penalty, tol=1e-12)
    for p in range(2):
        best = minimize(
            lambda w, p=p: objective(X, y, R[:, p], C[p], w[None], penalty),
            np.zeros(4),
            method="BFGS",
            options={"gtol": 1e-9},
        )
        np.testing.assert_allclose(fit[p, 0], best.x, rtol=1e-4, atol=1e-5)


def test_solution_does_not_depend_on_start_or_company():
    X, y, R, C = problem(2)
    alone = fit_logistic(X, y, R[:, [2]], C[[2]], n_classes=2, tol=1e-12)[0]
    together = fit_logistic(X, y, R, C, n_classes=2, tol=1e-12, start=np.ones((5, 1, 7)))[2]
    np.testing.assert_allclose(together, alone, rtol=1e-5, atol=1e-6)


def test_rows_of_weight_zero_do_not_count():
    X, y, R, C = problem(3)
    R[50:] = 0.0
    whole = fit_logistic(X, y, R, C, n_classes=3, tol=1e-12)
    part = fit_logistic(X[:50], y[:50], R[:50], C, n_classes=3, tol=1e-12)
    np.testing.assert_allclose(whole, part, rtol=1e-4, atol=1e-5)


def test_separable_and_single_class_data_end():
    X, _, R, C = problem(2)
    y = (X[:, 0] > 0).astype(int)
    assert np.isfinite(fit_logistic(X, y, R, C, n_classes=2)).all()
    one = fit_logistic(X, np.ones_like(y), R, C, n_classes=2)
    assert (one[:, 0, -1] > 0).all()


def test_single_precision_in_single_precision_out():
    X, y, R, C = problem(2)
    wide = fit_logistic(X, y, R, C, n_classes=2)
    narrow = fit_logistic(X.astype(np.float32), y, R, C, n_classes=2, tol=1e-6)
    assert narrow.dtype == np.float32
    for p in range(len(C)):
        reached = objective(X, y, R[:, p], C[p], narrow[p].astype(float))
        assert reached <= objective(X, y, R[:, p], C[p], wide[p]) * (1 + 1e-5)


def test_probabilities_sum_to_one_and_survive_huge_scores():
    scores = np.array([[[1e4]], [[-1e4]], [[0.0]]])
    np.testing.assert_allclose(probabilities(scores)[:, 0], [[0, 1], [1, 0], [0.5, 0.5]])
    many = probabilities(np.array([[1e4, 0.0, -1e4]]))
    np.testing.assert_allclose(many, [[1.0, 0.0, 0.0]])
