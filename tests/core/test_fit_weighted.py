"""A grid solved in coordinates of the rows is the one solved in all features."""

import numpy as np
import pytest
from scipy.special import expit

from sourcewise.core import grid_steps
from sourcewise.core.data import group_rows
from sourcewise.core.family import given_problems
from sourcewise.core.linear import LogisticFamily
from sourcewise.core.linear_grid import fit_weighted
from sourcewise.core.ridge import RidgeFamily
from sourcewise.engines import memory
from sourcewise.engines.memory import MemorySources

SETTINGS = np.array([0.01, 1.0])


def problems(n_classes, d=120, n=60):
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=(n, d - 1)), np.ones(n)])
    y = rng.integers(n_classes, size=n) if n_classes else X[:, 0] + rng.normal(size=n)
    data = group_rows(X, y, np.repeat([0, 1, 2], n // 3), reference=0, n_classes=n_classes)[0]
    held_out = np.arange(n // 3) % 2 == np.arange(2)[:, None]
    weights = np.array([[1.0, 0.0, 0.0], [0.4, 0.3, 0.3], [0.4, 0.6, 0.0], [0.5, 0.0, 0.5]])
    return given_problems(
        MemorySources(data, ["a", "b"]),
        data,
        weights,
        np.full(4, 40.0),
        held_out,
        np.array([-1, 0, 1, -1]),
    )


def families(n_classes):
    if not n_classes:
        return RidgeFamily(SETTINGS)
    return LogisticFamily(n_classes, SETTINGS, grid_tol=1e-13, final_tol=1e-13)


@pytest.mark.parametrize("n_classes", [0, 2, 3])
def test_the_span_of_the_rows_loses_nothing(n_classes, monkeypatch):
    family, given = families(n_classes), problems(n_classes)
    monkeypatch.setattr(grid_steps, "FULL", 10)
    monkeypatch.setattr(grid_steps, "RANK", 8)
    inside = family.fit_grid(given, SETTINGS)
    monkeypatch.setattr(memory, "saves_coordinates", lambda *shape: False)
    np.testing.assert_allclose(inside, family.fit_grid(given, SETTINGS), atol=2e-5)


@pytest.mark.parametrize("n_classes", [0, 2, 3])
def test_pairs_and_a_walk_find_the_models_of_the_whole_grid(n_classes):
    family, given = families(n_classes), problems(n_classes)
    whole = family.fit_grid(given, SETTINGS).reshape(4, 2, -1, 120)
    which, setting = np.array([3, 0, 1]), np.array([1, 0, 1])
    pairs = family.fit_pairs(given, which, SETTINGS[setting], None)
    np.testing.assert_allclose(pairs, whole[which, setting], atol=2e-5)
    seen = {}

    def visit(C, chosen, models):
        seen.update({(int(p), C): w for p, w in zip(chosen, models, strict=True)})
        return np.ones(4, dtype=bool)

    family.walk_grid(given, SETTINGS, visit)
    for p in range(4):
        for k, C in enumerate(SETTINGS):
            np.testing.assert_allclose(seen[p, C], whole[p, k], atol=2e-5)


def test_at_a_solution_no_coefficient_is_worth_changing():
    """The gradient of every column's own objective, written out, is next to nothing."""
    given, which, C = problems(2), np.array([0, 1, 2, 3, 3]), np.array([1.0, 1.0, 0.1, 0.1, 3.0])
    found = fit_weighted(given, np.ones, which, C, tol=1e-14)[:, 0]
    data = given.sources.data
    for p, strength, w in zip(which, C, found, strict=True):
        residuals = expit(data.X @ w) - data.y
        gradient = data.X.T @ (given.row_weights(data, p) * residuals) + w / strength
        np.testing.assert_allclose(gradient, 0.0, atol=1e-4)
