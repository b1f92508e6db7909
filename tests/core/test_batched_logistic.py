import numpy as np
import pytest
from plain_logistic import fit_logistic
from sklearn.linear_model import LogisticRegression

from sourcewise.core.batched_logistic import Curvature, fit_logistic_batch
from sourcewise.core.family import SharedRows, SourceRuns
from sourcewise.core.linear import LogisticFamily, like_runs
from sourcewise.core.ridge import RidgeFamily


def objective(X, y, weights, C, penalty, w):
    z = X @ w
    return weights @ (np.logaddexp(0, z) - y * z) + 0.5 / C * np.sum(penalty * w**2)


@pytest.mark.parametrize("signal, C", [(1.0, 1.0), (5.0, 100.0), (0.0, 1e-3), (20.0, 1e4)])
def test_every_source_and_fold_reaches_its_optimum(signal, C):
    rng = np.random.default_rng(0)
    n_sources, m, d, folds = 7, 40, 6, 5
    X = np.concatenate([rng.normal(size=(n_sources, m, d)), np.ones((n_sources, m, 1))], axis=2)
    y = (signal * X[:, :, 0] + rng.logistic(size=(n_sources, m)) > 0).astype(int)
    y[3] = 1  # one class only
    weights = rng.random((n_sources, m, 1)) * (rng.random((n_sources, m, folds)) < 0.8)
    penalty = np.append(np.ones(d), 1e-3)
    found = fit_logistic_batch(X, y, weights, C=C, penalty=penalty, tol=np.full(n_sources, 1e-9))
    assert found.shape == (n_sources, folds, d + 1)
    for s in range(n_sources):
        plain = fit_logistic(
            X[s], y[s], weights[s], np.full(folds, C), n_classes=2, penalty=penalty, tol=1e-11
        )[:, 0]
        for k in range(folds):
            best = objective(X[s], y[s], weights[s, :, k], C, penalty, plain[k])
            reached = objective(X[s], y[s], weights[s, :, k], C, penalty, found[s, k])
            assert reached <= best + 1e-6 * max(best, 1e-3)


@pytest.mark.parametrize("n_classes", [0, 2, 3])
def test_folds_of_runs_equal_fits_one_by_one(n_classes):
    rng = np.random.default_rng(1)
    counts = np.array([30, 3, 1, 33, 80])
    n_folds = np.array([5, 3, 0, 5, 5])
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
    n = counts.sum()
    X = np.column_stack([rng.normal(size=(n, 3)), np.ones(n)])
    y = X[:, 0] + rng.normal(size=n)
    y = y if n_classes == 0 else np.digitize(y, [0.0] if n_classes == 2 else [-0.5, 0.5])
    fold = np.concatenate([np.arange(c) % max(k, 1) for c, k in zip(counts, n_folds, strict=True)])
    weight = rng.random(n) + 0.5
    settings = np.array([2.0])
    family = LogisticFamily(n_classes, settings) if n_classes else RidgeFamily(settings)
    models = family.fit_folds(SourceRuns(X, y, weight, counts), fold, n_folds, 2.0)
    assert len(models) == n_folds.sum()
    position = 0
    for s, k in enumerate(n_folds):
        rows = slice(starts[s], starts[s] + counts[s])
        for f in range(k):
            left = np.where(fold[rows] == f, 0.0, weight[rows])
            plain = family.fit(X[rows], y[rows], left[:, None], settings)
            np.testing.assert_allclose(
                family.predict(models[[position]], X), family.predict(plain, X), atol=2e-3
            )
            position += 1


@pytest.mark.parametrize("n_classes", [0, 2, 3])
@pytest.mark.parametrize("n, n_models, d", [(50, 40, 3), (900, 4, 60), (3, 9, 5000), (0, 2, 4)])
def test_each_row_is_predicted_by_its_own_model(n_classes, n, n_models, d):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(n, d))
    models = rng.normal(size=(n_models, n_classes if n_classes > 2 else 1, d)) / np.sqrt(d)
    family = LogisticFamily(n_classes, np.ones(1)) if n_classes else RidgeFamily(np.ones(1))
    which = rng.integers(0, n_models - 1, n)  # the last model has no rows
    np.testing.assert_allclose(
        family.predict_each(models, which, X),
        family.predict(models, X)[which, np.arange(n)],
        atol=1e-12,
    )


@pytest.mark.parametrize("n_classes", [0, 2, 3])
@pytest.mark.parametrize("d", [3, 80])
def test_runs_beside_shared_rows_equal_fits_one_by_one(n_classes, d, monkeypatch):
    monkeypatch.setattr("sourcewise.core.linear.JOINT_TOL", 1e-9)
    rng = np.random.default_rng(2)
    counts = np.array([30, 1, 33, 3])
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
    n_shared, n = 20, counts.sum()
    X = np.column_stack([rng.normal(size=(n_shared + n, d)), np.ones(n_shared + n)])
    y = X[:, 0] + rng.normal(size=len(X))
    y = y if n_classes == 0 else np.digitize(y, [0.0] if n_classes == 2 else [-0.5, 0.5])
    shared, (X, y) = (X[:n_shared], y[:n_shared]), (X[n_shared:], y[n_shared:])
    shared_weights = rng.random((n_shared, 4)).round()
    weight = rng.random(n) + 0.5
    settings = np.full(4, 0.5)
    family = LogisticFamily(n_classes, settings) if n_classes else RidgeFamily(settings)
    alone = family.fit(*shared, shared_weights, settings)
    models = family.fit_beside(
        SharedRows(*shared, shared_weights, alone), SourceRuns(X, y, weight, counts), 0.5
    )
    for s, found in enumerate(np.split(models, len(counts))):
        rows = slice(starts[s], starts[s] + counts[s])
        plain = family.fit(
            np.concatenate([shared[0], X[rows]]),
            np.concatenate([shared[1], y[rows]]),
            np.concatenate([shared_weights, np.repeat(weight[rows, None], 4, axis=1)]),
            settings,
        )
        np.testing.assert_allclose(
            family.predict(found, shared[0]), family.predict(plain, shared[0]), atol=5e-3
        )


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("d", [4, 90])
def test_models_beside_shared_rows_are_those_of_scikit_learn(n_classes, d, monkeypatch):
    for name in ("JOINT_TOL", "JOINT_TOL_CLASSES", "LEAST_TOL"):
        monkeypatch.setattr(f"sourcewise.core.linear.{name}", 1e-13)
    rng = np.random.default_rng(6)
    counts = np.array([25, 1, 7, 40])
    n, n_shared = counts.sum(), 30
    X = np.column_stack([rng.normal(size=(n_shared + n, d)), np.ones(n_shared + n)])
    X[:, 1] = 0.0
    X[n_shared + 30 : n_shared + 33] = X[n_shared + 30]
    y = np.digitize(X[:, 0] + rng.normal(size=len(X)), [0.0, 0.7][: n_classes - 1])
    y[n_shared + 26 : n_shared + 33] = 1  # a source of one class
    weights = rng.random((n_shared, 1)) * (np.arange(n_shared)[:, None] % 3 != np.arange(3))
    own = rng.random(n) + 0.1
    family = LogisticFamily(n_classes, np.ones(1), penalise_constant=True, tol=1e-13)
    shared_rows = X[:n_shared], y[:n_shared]
    alone = family.fit(*shared_rows, weights, np.full(3, 0.3))
    shared = SharedRows(*shared_rows, weights, alone)
    runs = SourceRuns(X[n_shared:], y[n_shared:], own, counts)
    found = family.fit_beside(shared, runs, 0.3).reshape(4, 3, -1, d + 1)
    for s in range(4):
        joined, labels, joint = shared.join(runs, s)
        for k in range(3):
            theirs = LogisticRegression(C=0.3, fit_intercept=False, tol=1e-11, max_iter=10_000)
            theirs.fit(joined, labels, sample_weight=joint[:, k])
            np.testing.assert_allclose(found[s, k], theirs.coef_, atol=2e-5)


def test_a_hessian_that_single_precision_cannot_factorise_is_inverted_in_double():
    rng = np.random.default_rng(7)
    X = rng.normal(size=(50, 6)).astype(np.float32)
    X[:, 1] = X[:, 0]
    ridge = np.full(6, 1e-9)
    good = Curvature.of(X, np.ones(50), np.ones(6))
    poor = Curvature.of(1e3 * X, np.ones(50), ridge)
    assert not good.inverted
    assert poor.inverted
    G = X.astype(float).T @ X.astype(float)
    right = rng.normal(size=(6, 2))
    np.testing.assert_allclose((G + np.eye(6)) @ good.solve(right), right, atol=1e-4)
    exact = Curvature.of(X.astype(float), np.ones(50), np.ones(6))
    np.testing.assert_allclose((G + np.eye(6)) @ exact.solve(right), right, atol=1e-12)
    inside = G @ rng.normal(size=(6, 2))
    np.testing.assert_allclose(1e6 * G @ poor.solve(inside), inside, rtol=1e-2, atol=1e-2)


def company(signal=2.0):
    """Make sources of one length, of which some are hard to fit, and tolerances of their own."""
    rng = np.random.default_rng(3)
    X = np.concatenate([rng.normal(size=(6, 40, 5)), np.ones((6, 40, 1))], axis=2)
    X[4] *= 30.0
    y = (signal * X[:, :, 0] + rng.logistic(size=(6, 40)) > 0).astype(int)
    y[2] = X[2, :, 1] > 0  # separable
    y[3] = 1
    weights = rng.random((6, 40, 1)) * (rng.random((6, 40, 3)) < 0.8)
    tol = np.array([1e-3, 1e-9, 1e-6, 1e-9, 1e-7, 1e-4])
    return X, y, weights, tol


@pytest.mark.parametrize("C", [0.1, 1e4])
@pytest.mark.parametrize("started", [False, True])
def test_a_source_does_not_depend_on_its_company_nor_on_their_tolerances(C, started):
    X, y, weights, tol = company()
    penalty = np.append(np.ones(5), 1e-3)
    start = np.random.default_rng(4).normal(size=(6, 3, 6)) if started else None

    def fit(some, tol):
        return fit_logistic_batch(
            X[some],
            y[some],
            weights[some],
            C=C,
            penalty=penalty,
            tol=tol,
            start=None if start is None else start[some],
        )

    together = fit(np.arange(6), tol)
    for s in range(6):
        np.testing.assert_array_equal(fit(np.array([s]), tol[[s]])[0], together[s])
    backwards = np.arange(6)[::-1]
    np.testing.assert_array_equal(fit(backwards, tol[backwards])[::-1], together)
    # Others in more or less of a hurry.
    for s in range(6):
        for others in (1e-2, 1e-11):
            hurried = np.where(np.arange(6) == s, tol, others)
            np.testing.assert_array_equal(fit(np.arange(6), hurried)[s], together[s])
    # And a tolerance is one's own: the first source alone stopped early.
    exact = fit(np.arange(6), np.full(6, 1e-9))
    assert np.abs(exact[0] - together[0]).max() > 1e-8
    np.testing.assert_array_equal(exact[1], together[1])


@pytest.mark.parametrize("n_classes", [0, 2, 3])
def test_a_source_beside_shared_rows_does_not_depend_on_the_others(n_classes):
    # Of very different sizes, units and thus tolerances and precisions.
    rng = np.random.default_rng(5)
    counts = np.array([30, 1, 33, 300, 32])
    n = counts.sum()
    X = np.column_stack([rng.normal(size=(n, 4)), np.ones(n)])
    X[:30, :-1] *= 200.0
    y = X[:, 0] + rng.normal(size=n)
    X_t = np.column_stack([rng.normal(size=(20, 4)), np.ones(20)])
    y_t = X_t[:, 0] + rng.normal(size=20)
    if n_classes:
        y, y_t = (np.digitize(t, [0.0, 0.7][: n_classes - 1]) for t in (y, y_t))
    family = LogisticFamily(n_classes, np.ones(1)) if n_classes else RidgeFamily(np.ones(1))
    weights_t = rng.random((20, 3)).round()
    shared = SharedRows(X_t, y_t, weights_t, family.fit(X_t, y_t, weights_t, np.ones(3)))
    runs = SourceRuns(X, y, np.ones(n), counts)
    together = family.fit_beside(shared, runs, 1.0).reshape(5, 3, -1)
    for s in range(5):
        rows = runs.rows(s)
        alone = SourceRuns(X[rows], y[rows], np.ones(counts[s]), counts[[s]])
        found = family.fit_beside(shared, alone, 1.0).reshape(3, -1)
        # Rounding alone may differ: shorter sources are filled up to the longest.
        np.testing.assert_allclose(found, together[s], rtol=1e-4, atol=1e-5)


def test_runs_are_grouped_by_folds_and_length():
    counts = np.array([10, 500, 11, 12, 490, 3])
    n_folds = np.array([5, 5, 5, 5, 5, 3])
    groups = [sorted(g.tolist()) for g in like_runs(counts, n_folds, 4)]
    assert sorted(groups) == [[0, 2, 3], [1, 4], [5]]
