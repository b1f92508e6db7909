import numpy as np
import pytest
from scipy.optimize import minimize

from sourcewise.core.logistic import fit_logistic
from sourcewise.core.robust import (
    THRESHOLD,
    RobustProblem,
    descend_plainly,
    minimise_robust,
    pregibon_loss,
    pregibon_slope,
)


def problem(n_classes=2, threshold=THRESHOLD, n_rows=150, d=4, dtype=np.float64, columns=2):
    rng = np.random.default_rng(0)
    X = np.hstack([rng.normal(size=(n_rows, d - 1)), np.ones((n_rows, 1))])
    y = (X @ rng.normal(size=(d, n_classes)) + rng.gumbel(size=(n_rows, n_classes))).argmax(axis=1)
    y[:30] = (y[:30] + 1) % n_classes
    return RobustProblem(
        X.astype(dtype),
        y,
        np.stack([np.ones(n_rows), rng.uniform(size=n_rows)]).astype(dtype),
        np.arange(columns) % 2,
        np.full((d, columns), 0.3, dtype=dtype) * (1 + np.arange(columns, dtype=dtype)),
        n_classes,
        threshold,
    )


def written_out(p, column, w):
    """Write the paper's formula out, term by term."""
    total = 0.5 * np.sum(p.ridge[:, column, None] * w**2)
    for x, label, weight in zip(p.X, p.y, p.row_weights[p.pattern[column]], strict=True):
        if p.n_classes == 2:
            loss = np.log1p(np.exp(-(2 * label - 1) * (x @ w[:, 0])))
        else:
            loss = np.log(np.exp(x @ w).sum()) - x @ w[:, label]
        total += weight * (
            loss if loss <= p.threshold else 2 * np.sqrt(p.threshold * loss) - p.threshold
        )
    return total


def test_threshold_is_the_papers():
    assert pytest.approx(1.809025) == THRESHOLD


def test_loss_and_slope_by_the_formula():
    losses = np.array([0.0, 0.5, THRESHOLD, 4.0, 100.0])
    expected = [0.0, 0.5, THRESHOLD, 2 * np.sqrt(4 * THRESHOLD) - THRESHOLD]
    expected.append(2 * np.sqrt(100 * THRESHOLD) - THRESHOLD)
    np.testing.assert_allclose(pregibon_loss(losses), expected)
    away = losses[[1, 3, 4]]
    numeric = (pregibon_loss(away + 1e-6) - pregibon_loss(away - 1e-6)) / 2e-6
    np.testing.assert_allclose(pregibon_slope(away), numeric, rtol=1e-6)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_objective_against_the_formula_and_gradient_against_finite_differences(n_classes):
    p = problem(n_classes)
    k = 1 if n_classes == 2 else n_classes
    W = 2.0 * np.random.default_rng(1).normal(size=(4, 2, k))  # far enough for large losses
    value, gradient = p.evaluate(W, np.arange(2))
    for column in range(2):
        assert value[column] == pytest.approx(written_out(p, column, W[:, column]))
        for f, o in np.ndindex(4, k):
            step = np.zeros((4, k))
            step[f, o] = 1e-6
            numeric = (
                written_out(p, column, W[:, column] + step)
                - written_out(p, column, W[:, column] - step)
            ) / 2e-6
            assert gradient[f, column, o] == pytest.approx(numeric, rel=1e-5, abs=1e-5)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_reaches_a_minimum_as_an_independent_solver_does(n_classes):
    p = problem(n_classes)
    k = 1 if n_classes == 2 else n_classes
    coef, objective = minimise_robust(p, np.zeros((2, k, 4)), tol=1e-12)
    for column in range(2):
        other = minimize(
            lambda w, column=column: written_out(p, column, w.reshape(4, k)),
            coef[column].T.ravel() + 0.05,
            method="BFGS",
        )
        assert objective[column] <= other.fun + 1e-5
        np.testing.assert_allclose(coef[column].T.ravel(), other.x, atol=2e-3)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_without_a_threshold_it_is_logistic_regression(n_classes):
    p = problem(n_classes, threshold=np.inf)
    k = 1 if n_classes == 2 else n_classes
    coef, _ = minimise_robust(p, np.zeros((2, k, 4)), tol=1e-13)
    expected = fit_logistic(
        p.X, p.y, p.row_weights.T, 1.0 / p.ridge[0], n_classes=n_classes, tol=1e-13
    )
    np.testing.assert_allclose(coef, expected, atol=1e-5)


def test_single_precision_is_close_and_groups_change_nothing():
    full, _ = minimise_robust(problem(columns=4), np.zeros((4, 1, 4)), tol=1e-11)
    narrow, _ = minimise_robust(
        problem(columns=4, dtype=np.float32), np.zeros((4, 1, 4)), tol=1e-7, group=np.zeros(4, int)
    )
    np.testing.assert_allclose(narrow, full, atol=3e-3)


def test_every_start_descends():
    p = problem(columns=6)
    starts = 5.0 * np.random.default_rng(2).normal(size=(6, 1, 4))
    before, _ = p.evaluate(starts.transpose(2, 0, 1), np.arange(6))
    coef, objective = minimise_robust(p, starts)
    assert (objective <= before).all()
    _, gradient = p.evaluate(coef.transpose(2, 0, 1), np.arange(6))
    assert np.abs(gradient).max() < 1e-2


def test_many_rows_sample_their_curvature():
    p = problem(n_rows=2000)
    coef, _ = minimise_robust(p, np.zeros((2, 1, 4)), tol=1e-12)
    _, gradient = p.evaluate(coef.transpose(2, 0, 1), np.arange(2))
    assert np.abs(gradient).max() < 1e-2


def test_plain_descent_takes_the_steps_it_is_told():
    p = problem()
    start = np.zeros((2, 1, 4))
    _, gradient = p.evaluate(start.transpose(2, 0, 1), np.arange(2))
    one = descend_plainly(p, start, n_steps=1, learning_rate=0.1)
    totals = p.row_weights.sum(axis=1)
    np.testing.assert_allclose(one[:, 0], -0.1 * gradient[:, :, 0].T / totals[:, None])
    short = p.evaluate(
        descend_plainly(p, start, n_steps=20, learning_rate=0.1).transpose(2, 0, 1), np.arange(2)
    )[0]
    assert (short > minimise_robust(p, start)[1]).all()
