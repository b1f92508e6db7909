import numpy as np
import pytest
from made_up_grids import grid_problem, row_weights
from plain_logistic import fit_logistic
from sklearn.linear_model import LogisticRegression

from sourcewise.core.data import group_rows
from sourcewise.core.family import given_problems
from sourcewise.core.grid_problem import GridGradients
from sourcewise.core.linear import LogisticFamily
from sourcewise.core.linear_grid import solve_grid
from sourcewise.core.logistic import probabilities
from sourcewise.engines.memory import MemorySources


def grid(n_classes=2, counts=(60, 150, 20, 30, 7, 200), weighted=False, seed=0, dtype=float):
    """Make sources large and small, the reference among them, and weights with many zeros."""
    rng = np.random.default_rng(seed)
    n = sum(counts)
    X = np.column_stack([rng.normal(size=(n, 4)), np.ones(n)]).astype(dtype)
    score = 2 * X @ rng.normal(size=(5, n_classes)) + rng.gumbel(size=(n, n_classes))
    y = score.argmax(axis=1)
    weight = rng.random(n) + 0.1 if weighted else None
    data, _ = group_rows(
        X,
        y,
        np.repeat(np.arange(len(counts)), counts),
        reference=2,
        n_classes=n_classes,
        sample_weight=weight,
    )
    own = data.row_shares[data.rows(2)]
    left_out = np.where(np.arange(20) < 5, 0.0, own)
    a = rng.random((len(counts), 12)) * (rng.random((len(counts), 12)) < 0.6) * 100
    a[2] = 20.0
    a[:, 4:6] = 0.0
    a[2, 4:6] = 20.0
    return grid_problem(
        data,
        a,
        C=np.tile([0.01, 1.0, 100.0], 4),
        fold=np.repeat([0, 1], 6),
        reference_shares=np.stack([own, left_out / left_out.sum()]),
        penalty=np.array([1.0, 1.0, 1.0, 1.0, 1e-3]),
    )


def objective(problem, weight, q, coef):
    data = problem.sources.data
    p = probabilities(data.X @ coef.T)[np.arange(len(data.y)), data.y]
    return weight @ -np.log(p) + 0.5 / problem.C[q] * np.sum(problem.penalty * coef**2)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_gradients_equal_the_plain_formula(n_classes, weighted):
    problem = grid(n_classes, weighted=weighted)
    outputs = 1 if n_classes == 2 else n_classes
    W = np.random.default_rng(1).normal(size=(5, 12, outputs))
    columns = np.array([0, 3, 4, 7, 11])
    found = GridGradients(problem)(W[:, columns], columns)
    data, R = problem.sources.data, row_weights(problem)
    for k, q in enumerate(columns):
        p = probabilities(data.X @ W[:, q])
        residual = p - np.eye(n_classes)[data.y]
        plain = data.X.T @ (R[:, [q]] * (residual[:, 1:] if outputs == 1 else residual))
        np.testing.assert_allclose(found.value[:, k], plain, rtol=1e-5, atol=1e-4)
        missed = R[:, q] @ (1.0 - p[np.arange(len(p)), data.y])
        assert found.floor[k] == pytest.approx(missed, rel=1e-5)
        assert missed <= R[:, q] @ -np.log(p[np.arange(len(p)), data.y])


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("weighted", [False, True])
def test_grid_equals_one_column_after_another(n_classes, weighted):
    problem = grid(n_classes, weighted=weighted)
    R = row_weights(problem)
    found = solve_grid(problem, tol=1e-10)
    data = problem.sources.data
    for q in range(12):
        plain = fit_logistic(
            data.X, data.y, R[:, [q]], problem.C[[q]],
            n_classes=n_classes, penalty=problem.penalty, tol=1e-12,
        )[0]  # fmt: skip
        reached, best = (objective(problem, R[:, q], q, w) for w in (found[q], plain))
        assert reached <= best * (1 + 1e-8)


def test_single_precision_stays_single():
    assert solve_grid(grid(dtype=np.float32), tol=1e-6).dtype == np.float32


@pytest.mark.parametrize("n_classes", [2, 3])
def test_followers_gradients_are_those_of_their_columns(n_classes):
    problem = grid(n_classes)
    gradients = GridGradients(problem)
    outputs = 1 if n_classes == 2 else n_classes
    W = np.random.default_rng(1).normal(size=(5, 3, outputs))
    columns, leader_of = np.array([1, 2, 5, 8, 10]), np.array([0, 2, 1, 1, 0])
    shared = gradients.of_followers(W, leader_of, columns)
    plain = gradients(W[:, leader_of], columns)
    np.testing.assert_allclose(shared.value, plain.value, rtol=1e-6, atol=1e-5)
    np.testing.assert_allclose(shared.floor, plain.floor, rtol=1e-6)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_start_changes_nothing_but_the_way(n_classes):
    problem = grid(n_classes=n_classes)
    from_zero = solve_grid(problem, tol=1e-11)
    from_there = solve_grid(problem, tol=1e-11, start=from_zero[::-1] + 0.1)
    R = row_weights(problem)
    for q in range(12):
        one, two = (objective(problem, R[:, q], q, w[q]) for w in (from_zero, from_there))
        assert one == pytest.approx(two, rel=1e-8)


@pytest.mark.parametrize("scale", [0.0, 0.5, 3.0])
def test_solutions_do_not_depend_on_the_points_that_were_expected(scale):
    problem = grid()
    plain = solve_grid(problem, tol=1e-13)
    # The solutions of other columns, or far beyond them.
    found = solve_grid(problem, tol=1e-13, start=np.roll(plain, 5, axis=0) * (1.0 + scale))
    np.testing.assert_allclose(found, plain, rtol=2e-4, atol=2e-5)


def test_separable_rows_under_weak_regularisation_are_solved_too():
    rng = np.random.default_rng(0)
    X = np.column_stack([16 * rng.random((300, 20)), np.ones(300)])
    y = (X[:, 0] > X[:, 1]).astype(int)
    data, _ = group_rows(X, y, np.repeat([0, 1, 2], 100), reference=0, n_classes=2)
    problem = grid_problem(
        data,
        np.array([[100.0, 100.0], [0.0, 50.0], [0.0, 80.0]]),
        C=np.array([1e4, 1e4]),
        fold=np.zeros(2, dtype=int),
        reference_shares=data.row_shares[None, :100],
        penalty=np.ones(21),
    )
    R = row_weights(problem)
    found = solve_grid(problem, tol=1e-9)
    plain = fit_logistic(data.X, data.y, R, problem.C, n_classes=2, tol=1e-12)
    for q in range(2):
        reached, best = (objective(problem, R[:, q], q, w[q]) for w in (found, plain))
        assert reached <= best * (1 + 1e-6)


def several_classes(case, seed=0):
    """Make rows of five classes, one of them rare, or of three classes that hardly overlap."""
    rng = np.random.default_rng(seed)
    k, spread = (5, 1.0) if case == "rare" else (3, 6.0)
    share = np.array([0.4, 0.3, 0.15, 0.13, 0.02]) if case == "rare" else np.full(3, 1 / 3)
    y = rng.choice(k, size=400, p=share)
    y[[0, 1, 2]] = k - 1  # the reference has the rare class too
    X = rng.normal(size=(400, 8)) + spread * rng.normal(size=(k, 8))[y]
    X = np.column_stack([X, np.ones(400)])
    data, _ = group_rows(X, y, np.repeat(np.arange(4), 100), reference=0, n_classes=k)
    own = data.row_shares[:100]
    left_out = np.where(np.arange(100) >= 80, 0.0, own)
    return grid_problem(
        data,
        np.tile([[100.0, 80.0], [60.0, 0.0], [0.0, 40.0], [5.0, 100.0]], 4),
        C=np.repeat([0.01, 1.0, 100.0, 1e4], 2),
        fold=np.tile([0, 1], 4),
        reference_shares=np.stack([own, left_out / left_out.sum()]),
        penalty=np.ones(9),
    )


@pytest.mark.parametrize("case", ["rare", "separable"])
def test_several_classes_agree_with_scikit_learn(case):
    problem = several_classes(case)
    found = solve_grid(problem, tol=1e-10)
    data, R = problem.sources.data, row_weights(problem)
    for q in range(len(problem.C)):
        model = LogisticRegression(
            C=problem.C[q], fit_intercept=False, solver="newton-cg", tol=1e-10, max_iter=5000
        )
        model.fit(data.X, data.y, sample_weight=R[:, q])
        reached, best = (objective(problem, R[:, q], q, w) for w in (found[q], model.coef_))
        assert reached <= best * (1 + 1e-6)
        np.testing.assert_allclose(
            probabilities(data.X @ found[q].T), model.predict_proba(data.X), atol=2e-3
        )


def test_columns_that_are_given_up_are_not_solved():
    problem = grid()
    seen = []

    def visit(columns, W):
        seen.append(columns.tolist())
        assert W.shape == (5, len(columns), 1)
        return np.arange(12) >= 6  # of weaker regularisations, the second fold only

    solve_grid(problem, show=visit, tol=1e-6)
    assert seen == [[0, 3, 6, 9], [7, 10], [8, 11]]


def test_separable_columns_of_few_rows_reach_their_own_minimum():
    # 30 rows, 40 features, hardly any penalty: each fold's solution is far from the others'.
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=(330, 40)) * 3.0, np.ones(330)])
    y = (X[:, 0] + 4.0 * rng.normal(size=330) > 0).astype(int)
    data = group_rows(X, y, np.repeat([0, 1], [30, 300]), reference=0, n_classes=2)[0]
    held_out = np.arange(30) % 5 == np.arange(5)[:, None]
    weights = np.repeat([[1.0, 0.0], [0.5, 0.5]], 5, axis=0)
    problems = given_problems(
        MemorySources(data, [1]),
        data,
        weights,
        np.full(10, 24.0),
        held_out,
        np.tile(np.arange(5), 2),
    )
    family = LogisticFamily(2, np.array([1.0]), penalise_constant=True, tol=1e-9, grid_tol=1e-9)
    settings = np.array([1e-2, 1e2, 1e4])
    found = family.fit_grid(problems, settings).reshape(10, 3, -1)
    for p in range(10):
        rows = problems.row_weights(data, p)
        exact = family.fit(X, y, np.repeat(rows[:, None], 3, axis=1), settings)[:, 0]
        for w, best, C in zip(found[p], exact, settings, strict=True):
            values = [
                np.sum(rows * np.logaddexp(0.0, -(2 * y - 1) * (X @ v))) + 0.5 / C * v @ v
                for v in (w, best)
            ]
            assert values[0] <= values[1] * (1 + 1e-6)
