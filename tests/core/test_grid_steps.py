"""Many features or outputs: curvature in a few directions changes the way, not the solutions."""

import numpy as np
import pytest
from made_up_grids import grid_problem, row_weights
from plain_logistic import fit_logistic
from sklearn.linear_model import Ridge

from sourcewise.core import grid_steps
from sourcewise.core.data import ReferenceRows, group_rows
from sourcewise.core.grid_problem import GridGradients
from sourcewise.core.grid_steps import GridSteps, leading_directions
from sourcewise.core.linear_grid import solve_grid
from sourcewise.core.logistic import probabilities
from sourcewise.engines.memory import MemorySources


def wide_data(n_classes, n_reference=30, d=60, seed=0):
    rng = np.random.default_rng(seed)
    counts = (n_reference, 25, 40)
    n = sum(counts)
    X = rng.normal(size=(n, d - 1)) * np.arange(1, d) ** -0.5
    X = np.column_stack([X, np.ones(n)])
    scores = 2 * X @ rng.normal(size=(d, max(n_classes, 1)))
    y = (scores + rng.gumbel(size=scores.shape)).argmax(axis=1) if n_classes else scores[:, 0]
    return group_rows(X, y, np.repeat([0, 1, 2], counts), reference=0, n_classes=n_classes)[0]


def wide_grid(n_classes, n_reference=30, d=60):
    own = np.full(n_reference, 1.0 / n_reference)
    without = [np.where(np.arange(n_reference) % 3 == f, 0.0, own) for f in range(3)]
    weights = 90.0 * np.array([[1.0, 0.0, 0.0], [0.4, 0.0, 0.6], [0.3, 0.3, 0.4]]).T
    return grid_problem(
        wide_data(n_classes, n_reference, d),
        np.tile(np.repeat(weights, 3, axis=1), 3),
        C=np.tile([0.01, 1.0, 100.0], 9),
        fold=np.repeat(np.arange(3), 9),
        reference_shares=np.stack([w / w.sum() for w in without]),
        penalty=np.append(np.ones(d - 1), 1e-3),
    )


def directions_of(problem, monkeypatch, rank=8):
    monkeypatch.setattr(grid_steps, "FULL", 10)
    monkeypatch.setattr(grid_steps, "RANK", rank)
    found = leading_directions(problem.sources, problem.reference)
    assert found.shape == (problem.reference.X.shape[1] - 1, rank)
    return found


def logistic_solutions(problem):
    data = problem.sources.data
    return fit_logistic(
        data.X,
        data.y,
        row_weights(problem),
        problem.C,
        n_classes=data.n_classes,
        penalty=problem.penalty,
        tol=1e-12,
    )


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("n_reference", [30, 80])  # fewer and more than there are features
@pytest.mark.parametrize("in_basis", [False, True])
def test_columns_are_solved_as_one_by_one(n_classes, n_reference, in_basis, monkeypatch):
    problem = wide_grid(n_classes, n_reference)
    basis = directions_of(problem, monkeypatch) if in_basis else None
    stopped = []
    coef = solve_grid(problem, tol=1e-13, basis=basis, on_stop=stopped.append)
    np.testing.assert_allclose(coef, logistic_solutions(problem), atol=2e-5)
    assert sum(stopped) == 27


def test_a_start_changes_nothing_but_the_way(monkeypatch):
    problem = wide_grid(2)
    start = np.random.default_rng(0).normal(size=(27, 1, 60))
    basis = directions_of(problem, monkeypatch)
    coef = solve_grid(problem, tol=1e-12, start=start, basis=basis)
    np.testing.assert_allclose(coef, logistic_solutions(problem), atol=2e-5)


@pytest.mark.parametrize("in_basis", [False, True])
def test_squared_errors_are_minimised_as_by_scikit_learn(in_basis, monkeypatch):
    problem = wide_grid(0)
    basis = directions_of(problem, monkeypatch) if in_basis else None
    coef = solve_grid(problem, tol=1e-15, basis=basis)
    data, R = problem.sources.data, row_weights(problem)
    root = np.sqrt(problem.penalty)
    for q in range(27):
        plain = Ridge(alpha=1.0 / problem.C[q], fit_intercept=False, solver="cholesky")
        plain.fit(data.X / root, data.y, sample_weight=R[:, q])
        np.testing.assert_allclose(coef[q, 0], plain.coef_ / root, rtol=1e-5, atol=1e-5)


def hessian(X, y, weight, coef, penalty, C, n_classes):
    """Second derivatives in all coefficients, outputs first."""
    k = 1 if n_classes <= 2 else n_classes
    d = X.shape[1]
    if n_classes == 0:
        V = np.ones((len(X), 1, 1))
    else:
        p = probabilities(X @ coef.T)[:, -k:]
        V = np.einsum("nk,kl->nkl", p, np.eye(k)) - p[:, :, None] * p[:, None, :]
    H = np.einsum("n,nkl,nd,ne->kdle", weight, V, X, X).reshape(k * d, k * d)
    return H + np.diag(np.tile(penalty / C, k))


@pytest.mark.parametrize("n_classes", [0, 2, 3])
def test_with_all_directions_a_step_is_newtons_own(n_classes):
    problem = wide_grid(n_classes, d=12)
    k = 1 if n_classes <= 2 else n_classes
    gradients = GridGradients(problem)
    steps = GridSteps(problem, gradients, None)
    rng = np.random.default_rng(3)
    points = 0.3 * rng.normal(size=(12, 2, k))
    columns = np.array([4, 26])
    steps.stand_at(columns, points, np.array([1, 0]))
    vectors = rng.normal(size=(12, 2, k))
    if k > 1:
        vectors -= vectors.mean(axis=2, keepdims=True)  # as all gradients are
    found = steps(vectors, columns)
    data, R = problem.sources.data, row_weights(problem)
    for c, (q, at) in enumerate(zip(columns, [1, 0], strict=True)):
        H = hessian(
            data.X, data.y, R[:, q], points[:, at].T, problem.penalty, problem.C[q], n_classes
        )
        plain = np.linalg.solve(H, vectors[:, c].T.ravel()).reshape(k, 12).T
        np.testing.assert_allclose(found[:, c], plain, rtol=2e-3, atol=2e-4)


def test_the_basis_holds_the_directions_in_which_rows_vary(monkeypatch):
    rng = np.random.default_rng(0)
    true = np.linalg.qr(rng.normal(size=(40, 3)))[0]
    X = 10 * rng.normal(size=(200, 3)) @ true.T + 0.1 * rng.normal(size=(200, 40))
    X = np.column_stack([X, np.ones(200)])
    data = group_rows(X, np.zeros(200, int), np.arange(200) % 4, reference=1, n_classes=2)[0]
    monkeypatch.setattr(grid_steps, "FULL", 10)
    monkeypatch.setattr(grid_steps, "RANK", 5)
    found = leading_directions(MemorySources(data, ["a", "b", "c"]), ReferenceRows.of(data))
    np.testing.assert_allclose(found.T @ found, np.eye(5), atol=1e-12)
    np.testing.assert_allclose(found @ (found.T @ true), true, atol=0.02)


def test_many_outputs_leave_fewer_directions(monkeypatch):
    data = wide_data(3, d=60)
    sources, reference = MemorySources(data, [1, 2]), ReferenceRows.of(data)
    assert leading_directions(sources, reference) is None
    monkeypatch.setattr(grid_steps, "LARGEST", 60)
    assert leading_directions(sources, reference).shape == (59, 19)


def test_a_curvature_that_rounding_left_indefinite_is_factored():
    # One column far larger than the others, added up in single precision.
    rng = np.random.default_rng(0)
    X = np.column_stack([1e4 * rng.normal(size=50), rng.normal(size=(50, 3))])
    H = X.T @ X
    H[2, 2] = -0.01 * H[0, 0]
    before = H.copy()
    with pytest.raises(np.linalg.LinAlgError):
        np.linalg.cholesky(H)
    factor = np.tril(grid_steps._factor(H, 1e-6 * np.trace(H) / 4))
    more = factor @ factor.T - before
    assert np.allclose(more, np.diag(np.diag(more)), atol=1e-6 * H[0, 0])
    assert 0 < more[0, 0] < 0.2 * np.trace(before)
