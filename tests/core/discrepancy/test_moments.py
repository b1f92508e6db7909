from __future__ import annotations

import numpy as np
import pytest

from sourcewise.core.data import group_rows
from sourcewise.core.discrepancy.moments import (
    concat_moments,
    moments_of,
    ridge_solution,
    signed_targets,
    source_rows,
)


def source_moments(data):
    return concat_moments([moments_of(source_rows(data, i)) for i in range(data.n_sources)])


def _weighted_data(n_classes: int):
    rng = np.random.default_rng(0)
    source = rng.permutation(np.repeat([0, 1, 2], [5, 9, 3]))
    X = rng.normal(size=(17, 4)).astype(np.float32)
    y = rng.integers(n_classes, size=17) if n_classes else rng.normal(size=17)
    weight = rng.uniform(0.5, 2.0, size=17)
    weight[np.flatnonzero(source == 1)[:4]] = 0.0
    return group_rows(X, y, source, reference=1, n_classes=n_classes, sample_weight=weight)[0]


@pytest.mark.parametrize("n_classes", [0, 2, 4])
def test_moments_reproduce_the_quadratic_loss_of_any_model(n_classes):
    data = _weighted_data(n_classes)
    moments = source_moments(data)
    w = np.random.default_rng(1).normal(size=4)
    targets = signed_targets(data.y, n_classes)
    for i, rows in enumerate(data.slices()):
        residual = data.X[rows].astype(float) @ w
        naive = data.row_shares[rows] @ (residual[:, None] - targets[rows]) ** 2
        quadratic = w @ moments.gram[i] @ w - 2 * w @ moments.cross[i] + moments.square[i]
        np.testing.assert_allclose(quadratic, naive, rtol=1e-12)


def test_targets_are_signed_per_class():
    assert signed_targets(np.array([0, 1]), 2).tolist() == [[-1.0], [1.0]]
    assert signed_targets(np.array([2, 0]), 3).tolist() == [[-1, -1, 1], [1, -1, -1]]
    assert signed_targets(np.array([0.5, -2.0]), 0).tolist() == [[0.5], [-2.0]]


def test_rows_of_zero_share_leave_no_trace():
    data = _weighted_data(2)
    polluted = data.X.copy()
    polluted[data.row_shares == 0.0] = 1e6
    for name in ("gram", "cross", "square"):
        np.testing.assert_array_equal(
            getattr(source_moments(data), name),
            getattr(source_moments(data.with_features(polluted)), name),
        )


def test_rows_that_count_are_read_in_double_precision():
    data = _weighted_data(2)
    rows = source_rows(data, 1)
    assert (len(rows.shares), rows.X.dtype) == (5, np.float64)
    assert rows.positions.tolist() == np.flatnonzero(data.row_shares[data.rows(1)]).tolist()
    np.testing.assert_array_equal(rows.X, data.X[data.rows(1)][rows.positions])


def test_ridge_solution_solves_each_system_with_its_own_ridge():
    rng = np.random.default_rng(2)
    root = rng.normal(size=(3, 2, 5))
    gram, cross = np.swapaxes(root, 1, 2) @ root, rng.normal(size=(3, 5, 2))
    ridge = np.array([1e-6, 0.1, 3.0])
    solution = ridge_solution(gram, cross, ridge)
    for i in range(3):
        system = gram[i] + ridge[i] * np.eye(5)
        np.testing.assert_allclose(system @ solution[i], cross[i], atol=1e-8)


def test_a_ridge_lost_to_rounding_gives_the_solution_of_least_norm():
    x = np.array([3e8, 4e8])
    gram = np.outer(x, x)
    solution = ridge_solution(gram[None], (2.0 * x)[None, :, None], 1e-6)[0, :, 0]
    np.testing.assert_allclose(solution, 2.0 * x / (x @ x), rtol=1e-6)
    assert not ridge_solution(np.zeros((1, 2, 2)), np.zeros((1, 2, 1)), 0.0).any()
