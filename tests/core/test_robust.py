"""Resistant logistic regressions against the formula and an independent solver."""

import numpy as np
import pytest
from plain_logistic import fit_logistic
from scipy.optimize import minimize

from sourcewise.core.robust import (
    THRESHOLD,
    log_losses,
    minimise_robust,
    pregibon_loss,
    pregibon_slope,
)


def problem(n_classes=2, n_rows=150, d=4, dtype=np.float64, columns=2):
    """Rows of which a fifth have another label, and weightings and settings of some columns."""
    rng = np.random.default_rng(0)
    X = np.hstack([rng.normal(size=(n_rows, d - 1)), np.ones((n_rows, 1))])
    y = (X @ rng.normal(size=(d, n_classes)) + rng.gumbel(size=(n_rows, n_classes))).argmax(axis=1)
    y[:30] = (y[:30] + 1) % n_classes
    weights = np.column_stack([np.ones(n_rows), rng.uniform(size=n_rows)])
    return X.astype(dtype), y, weights[:, np.arange(columns) % 2], 1.0 / (0.3 + np.arange(columns))


def zeros(n_columns, n_classes=2, d=4):
    return np.zeros((n_columns, 1 if n_classes == 2 else n_classes, d))


def written_out(given, column, w, n_classes, threshold=THRESHOLD):
    """Write the paper's formula out, term by term."""
    X, y, weights, C = given
    total = 0.5 * np.sum(w**2) / C[column]
    for x, label, weight in zip(X, y, weights[:, column], strict=True):
        if n_classes == 2:
            loss = np.log1p(np.exp(-(2 * label - 1) * (x @ w[:, 0])))
        else:
            loss = np.log(np.exp(x @ w).sum()) - x @ w[:, label]
        total += weight * (loss if loss <= threshold else 2 * np.sqrt(threshold * loss) - threshold)
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
def test_losses_of_any_size_are_those_of_the_formula(n_classes):
    X, y, _, _ = problem(n_classes)
    outputs = 1 if n_classes == 2 else n_classes
    W = 300.0 * np.random.default_rng(1).normal(size=(4, 2, outputs))
    scores = np.einsum("nd,dqk->nqk", X, W)
    if n_classes == 2:
        scores = np.concatenate([np.zeros_like(scores), scores], axis=2)
    expected = (
        np.logaddexp.reduce(scores, axis=2)
        - np.take_along_axis(scores, y[:, None, None], axis=2)[:, :, 0]
    )
    np.testing.assert_allclose(log_losses(X, y, W), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_reaches_a_minimum_as_an_independent_solver_does(n_classes):
    given = problem(n_classes)
    how = {"penalty": np.ones(4), "tol": 1e-12}
    coef, objective = minimise_robust(*given, zeros(2, n_classes), **how)
    for column in range(2):

        def formula(w, column=column):
            return written_out(given, column, w.reshape(4, -1), n_classes)

        assert objective[column] == pytest.approx(formula(coef[column].T.ravel()), rel=1e-10)
        other = minimize(formula, coef[column].T.ravel() + 0.05, method="BFGS")
        assert objective[column] <= other.fun + 1e-5
        np.testing.assert_allclose(coef[column].T.ravel(), other.x, atol=2e-3)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_without_a_threshold_it_is_logistic_regression(n_classes):
    given = problem(n_classes)
    how = {"penalty": np.ones(4), "tol": 1e-13}
    coef, _ = minimise_robust(*given, zeros(2, n_classes), threshold=1e300, **how)
    np.testing.assert_allclose(coef, fit_logistic(*given, n_classes=n_classes, **how), atol=1e-5)


def test_single_precision_is_close():
    how = {"penalty": np.ones(4)}
    full, _ = minimise_robust(*problem(columns=4), zeros(4), tol=1e-11, **how)
    narrow, _ = minimise_robust(*problem(columns=4, dtype=np.float32), zeros(4), tol=1e-7, **how)
    np.testing.assert_allclose(narrow, full, atol=3e-3)


@pytest.mark.parametrize("n_rows", [150, 2000])  # of many rows, some say how curved they are
def test_every_start_descends_to_where_it_is_flat(n_rows):
    X, y, weights, C = given = problem(columns=6, n_rows=n_rows)
    starts = 5.0 * np.random.default_rng(2).normal(size=(6, 1, 4))
    before = [written_out(given, k, starts[k].T, 2) for k in range(6)]
    coef, objective = minimise_robust(*given, starts, penalty=np.ones(4), tol=1e-12)
    assert (objective <= before).all()
    scores = X @ coef[:, 0].T
    losses = log_losses(X, y, coef.transpose(2, 0, 1))
    residuals = 1.0 / (1.0 + np.exp(-scores)) - y[:, None]
    gradients = X.T @ (weights * pregibon_slope(losses) * residuals) + coef[:, 0].T / C
    assert np.abs(gradients).max() < 1e-3 * n_rows**0.5
