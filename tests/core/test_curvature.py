"""Known points change how a grid is solved, not what comes out; merging rows changes nothing."""

from dataclasses import replace

import numpy as np
import pytest
from test_logistic_grid import grid, row_weights

from sourcewise.core.curvature import Pilots, SourceCurvature
from sourcewise.core.logistic_grid import solve_grid
from sourcewise.core.source_gradients import SourceGradients, merge_alike, source_sums


def pilots(problem, points):
    sums, losses = source_sums(problem.data, points)
    n = points.shape[1]
    return Pilots(
        points,
        sums,
        losses,
        SourceCurvature.at(problem.data, points, np.ones(n)),
        np.arange(n),
    )


def test_what_sources_say_of_a_point_is_their_loss_and_its_gradient():
    data = grid(weighted=True).data
    W = np.random.default_rng(1).normal(size=(5, 3, 1))
    sums, losses = source_sums(data, W)
    for i, rows in enumerate(data.slices()):
        X, shares, sign = data.X[rows], data.row_shares[rows], 2.0 * data.y[rows] - 1.0
        margin = sign[:, None] * (X @ W[:, :, 0])
        wrong = 1.0 / (1.0 + np.exp(margin))
        np.testing.assert_allclose(losses[i], shares @ np.log1p(np.exp(-margin)), rtol=1e-10)
        gradient = -X.T @ (shares[:, None] * sign[:, None] * wrong)
        np.testing.assert_allclose(sums[i, :5, :, 0], gradient, rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(sums[i, 5, :, 0], -shares @ wrong, rtol=1e-5)


@pytest.mark.parametrize("scale", [0.0, 0.5, 3.0])
def test_solutions_do_not_depend_on_the_points_that_were_expected(scale):
    problem = grid()
    plain = solve_grid(problem, tol=1e-13)
    points = np.append(
        plain[[0, 5, 8]].transpose(2, 0, 1) * (1.0 + scale), np.zeros((5, 1, 1)), axis=1
    )
    found = solve_grid(problem, tol=1e-13, pilots=pilots(problem, points))
    np.testing.assert_allclose(found, plain, rtol=2e-4, atol=2e-5)


def test_each_column_starts_where_its_objective_is_lowest():
    problem = grid()
    solved = solve_grid(problem, tol=1e-12)
    columns = np.arange(6)  # those that leave no row out
    points = np.append(solved[columns].transpose(2, 0, 1), np.zeros((5, 1, 1)), axis=1)
    chosen = pilots(problem, points).nearest(problem, columns)
    for q, k in zip(columns, chosen, strict=True):
        np.testing.assert_allclose(points[:, k, 0], solved[q, 0], rtol=1e-3, atol=1e-4)


def test_sources_that_count_alike_are_taken_as_one():
    problem = grid(counts=(50, 50, 20, 40, 40, 40))
    weights = problem.weights.copy()
    weights[4] = weights[3]
    weights[1] = weights[0] * 0.5
    problem = replace(problem, weights=weights)
    merged = merge_alike(problem)
    assert merged.data.row_counts.tolist() == [50, 50, 20, 80, 40]
    assert merged.data.reference == 2
    np.testing.assert_allclose(row_weights(merged), row_weights(problem), rtol=1e-12)
    W = np.random.default_rng(0).normal(size=(5, 12, 1))
    columns = np.arange(12)
    apart = SourceGradients(replace(problem, weights=weights + 1e-9 * np.arange(6)[:, None]))
    together = SourceGradients(problem)(W, columns)
    np.testing.assert_allclose(together.value, apart(W, columns).value, rtol=1e-5, atol=1e-5)


def test_neither_the_reference_nor_weighted_rows_are_merged():
    problem = grid(counts=(20, 20, 20, 20))
    alike = replace(problem, weights=np.ones_like(problem.weights))
    assert merge_alike(alike).data.row_counts.tolist() == [40, 20, 20]
    weighted = grid(counts=(20, 20, 20, 20), weighted=True)
    weighted = replace(weighted, weights=np.ones_like(weighted.weights))
    assert merge_alike(weighted) is weighted
