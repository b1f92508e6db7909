"""Fits of many sparse rows come to the models of the same rows in an array."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from plain_logistic import fit_logistic

from sourcewise.core import sparse_fits
from sourcewise.core.loss import Logistic, Squared
from sourcewise.core.sparse_fits import fit_sparse_rows, leading_directions
from sourcewise.core.sparse_rows import SparseRows

N, D = 300, 90


@pytest.fixture
def made_up():
    rng = np.random.default_rng(0)
    features = scipy.sparse.random_array((N, D), density=0.1, rng=rng, format="csr")
    shift = features.mean(axis=0)
    X = np.column_stack([features.toarray() - shift, np.ones(N)])
    weights = rng.random((N, 5)) * (rng.random((N, 5)) < 0.8)
    penalty = np.append(np.ones(D), 1e-3)
    return SparseRows.of(features, shift, np.ones(N)), X, weights, penalty


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("coefficients", [1, 2_000_000])
def test_logistic(made_up, n_classes, coefficients, monkeypatch):
    monkeypatch.setattr(sparse_fits, "COEFFICIENTS", coefficients)
    rows, X, weights, penalty = made_up
    y = (3.0 * X[:, :n_classes] + np.random.default_rng(1).normal(size=(N, n_classes))).argmax(1)
    C = np.logspace(-2, 2, 5)
    wanted = fit_logistic(X, y, weights, C, n_classes=n_classes, penalty=penalty, tol=1e-14)
    how = {"loss": Logistic(n_classes), "penalty": penalty, "tol": 1e-12}
    found = fit_sparse_rows(rows, y, weights, C, **how)
    np.testing.assert_allclose(found, wanted, atol=1e-4 * np.abs(wanted).max())
    again = fit_sparse_rows(rows, y, weights, C, start=wanted, **how)
    np.testing.assert_allclose(again, wanted, atol=1e-4 * np.abs(wanted).max())


def test_squared(made_up):
    rows, X, weights, penalty = made_up
    y = X[:, 0] - X[:, 1] + np.random.default_rng(1).normal(size=N)
    C = np.logspace(-2, 2, 5)
    found = fit_sparse_rows(rows, y, weights, C, loss=Squared(), penalty=penalty, tol=1e-14)
    for r, c, model in zip(weights.T, C, found, strict=True):
        wanted = np.linalg.solve((X.T * r) @ X + np.diag(penalty / c), X.T @ (r * y))
        np.testing.assert_allclose(model[0], wanted, atol=1e-5 * np.abs(wanted).max())


def test_directions_hold_most_of_rows_that_vary_in_few():
    rng = np.random.default_rng(0)
    few = scipy.sparse.csr_array(rng.normal(size=(N, 3)) @ rng.normal(size=(3, D)))
    rows = SparseRows.of(few, np.zeros(D), np.ones(N))
    basis = leading_directions(rows, 5)
    np.testing.assert_allclose(basis.T @ basis, np.eye(5), atol=1e-9)
    np.testing.assert_allclose(few @ basis @ basis.T, few.toarray(), atol=1e-8)
