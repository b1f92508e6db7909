import numpy as np
import pytest
from made_up_grids import grid_problem, row_weights

from sourcewise.core import logistic_grid
from sourcewise.core.data import group_rows
from sourcewise.core.logistic import fit_logistic
from sourcewise.core.logistic_grid import solve_grid


def wide_grid(n_classes, n_reference=30, d=60, seed=0):
    rng = np.random.default_rng(seed)
    counts = (n_reference, 25, 40)
    n = sum(counts)
    X = np.column_stack([rng.normal(size=(n, d - 1)), np.ones(n)])
    y = (2 * X @ rng.normal(size=(d, n_classes)) + rng.gumbel(size=(n, n_classes))).argmax(axis=1)
    data, _ = group_rows(X, y, np.repeat([0, 1, 2], counts), reference=0, n_classes=n_classes)
    own = np.full(n_reference, 1.0 / n_reference)
    without = [np.where(np.arange(n_reference) % 3 == f, 0.0, own) for f in range(3)]
    weights = 90.0 * np.array([[1.0, 0.0, 0.0], [0.4, 0.0, 0.6], [0.3, 0.3, 0.4]]).T
    return grid_problem(
        data,
        np.tile(np.repeat(weights, 3, axis=1), 3),
        C=np.tile([0.01, 1.0, 100.0], 9),
        fold=np.repeat(np.arange(3), 9),
        reference_shares=np.stack([w / w.sum() for w in without]),
        penalty=np.append(np.ones(d - 1), 1e-3),
    )


def independent(problem, tol=1e-12):
    data = problem.sources.data
    return fit_logistic(
        data.X,
        data.y,
        row_weights(problem),
        problem.C,
        n_classes=data.n_classes,
        penalty=problem.penalty,
        tol=tol,
        max_iter=2000,
    )


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("n_reference", [30, 80])  # fewer and more than there are features
def test_columns_are_solved_as_one_by_one(n_classes, n_reference, monkeypatch):
    monkeypatch.setattr(logistic_grid, "MANY_FEATURES", 10)
    problem = wide_grid(n_classes, n_reference)
    assert logistic_grid.is_wide(problem)
    stopped = []
    coef = solve_grid(problem, tol=1e-12, on_stop=stopped.append)
    np.testing.assert_allclose(coef, independent(problem), atol=2e-5)
    assert sum(stopped) == 27


@pytest.mark.parametrize("one_each", [False, True])
def test_a_start_changes_nothing_but_the_way(one_each, monkeypatch):
    monkeypatch.setattr(logistic_grid, "MANY_FEATURES", 10)
    problem = wide_grid(2)
    n_starts = len(np.unique(problem.C)) if one_each else 1
    start = np.random.default_rng(0).normal(size=(n_starts, 1, 60))
    coef = solve_grid(problem, tol=1e-12, start=start)
    np.testing.assert_allclose(coef, independent(problem), atol=2e-5)


def test_a_few_matrices_serve_the_whole_grid(monkeypatch):
    monkeypatch.setattr(logistic_grid, "MANY_FEATURES", 10)
    made = []

    def count(curvature, ridge):
        made.append(ridge[0])
        return np.linalg.inv(curvature + np.diag(ridge))

    monkeypatch.setattr("sourcewise.core.wide_grid.inverse_with_ridge", count)
    solve_grid(wide_grid(2), tol=1e-6)
    # Nine weightings and folds under the weakest penalty; a matrix for each of three weightings.
    assert made.count(100.0) == 3
