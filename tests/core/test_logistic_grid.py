import numpy as np
import pytest

from sourcewise.core.data import group_rows
from sourcewise.core.logistic import fit_logistic, probabilities
from sourcewise.core.logistic_grid import (
    GridProblem,
    SourceGradients,
    fast_exp,
    solve_grid,
    to_probabilities,
)


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
    return GridProblem(
        data=data,
        weights=a,
        C=np.tile([0.01, 1.0, 100.0], 4),
        fold=np.repeat([0, 1], 6),
        reference_shares=np.stack([own, left_out / left_out.sum()]),
        penalty=np.array([1.0, 1.0, 1.0, 1.0, 1e-3]),
    )


def row_weights(problem):
    data = problem.data
    R = np.repeat(problem.weights, data.row_counts, axis=0) * data.row_shares[:, None]
    rows = data.rows(data.reference)
    R[rows] = problem.reference_shares[problem.fold].T * problem.weights[data.reference]
    return R


def objective(problem, weight, q, coef):
    data = problem.data
    p = probabilities(data.X @ coef.T)[np.arange(len(data.y)), data.y]
    return weight @ -np.log(p) + 0.5 / problem.C[q] * np.sum(problem.penalty * coef**2)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_gradients_equal_the_plain_formula(n_classes, weighted):
    problem = grid(n_classes, weighted=weighted)
    outputs = 1 if n_classes == 2 else n_classes
    W = np.random.default_rng(1).normal(size=(5, 12, outputs))
    columns = np.array([0, 3, 4, 7, 11])
    found = SourceGradients(problem)(W[:, columns], columns)
    data, R = problem.data, row_weights(problem)
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
    data = problem.data
    for q in range(12):
        plain = fit_logistic(
            data.X, data.y, R[:, [q]], problem.C[[q]],
            n_classes=n_classes, penalty=problem.penalty, tol=1e-12,
        )[0]  # fmt: skip
        reached, best = (objective(problem, R[:, q], q, w) for w in (found[q], plain))
        assert reached <= best * (1 + 1e-8)


def test_single_precision_stays_single():
    assert solve_grid(grid(dtype=np.float32), tol=1e-6).dtype == np.float32


def test_fast_exponential_and_probabilities_against_the_plain_ones():
    x = np.concatenate([np.linspace(-700, 80, 10_001), np.linspace(-1, 1, 1001)])
    np.testing.assert_allclose(fast_exp(x), np.exp(x), rtol=2e-7, atol=1e-37)
    scores = np.concatenate([x, [1e5, -1e5]])[:, None, None].copy()
    plain = probabilities(scores[:, :, 0])[:, 1]
    to_probabilities(scores)
    np.testing.assert_allclose(scores[:, 0, 0], plain, atol=1e-7)
    many = np.random.default_rng(0).normal(size=(50, 3, 4)) * 30
    expected = probabilities(many)
    to_probabilities(many)
    np.testing.assert_allclose(many, expected, atol=1e-7)
