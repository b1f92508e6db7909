import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import minimize

from sourcewise.core.aggregation import (
    component_median,
    geometric_median,
    median_probabilities,
    mixture_weights,
    rectified_cosines,
    trusted_average,
)


def summed_distance(points, z):
    return np.linalg.norm(points - z, axis=1).sum()


def test_geometric_median_of_a_triangle_is_its_fermat_point():
    # Equilateral: the centre. With an angle of 120 degrees or more: that corner.
    corners = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, np.sqrt(0.75)]])
    np.testing.assert_allclose(geometric_median(corners), corners.mean(axis=0), atol=1e-9)
    flat = np.array([[-1.0, 0.0], [1.0, 0.0], [0.0, 0.1]])
    np.testing.assert_allclose(geometric_median(flat), flat[2], atol=1e-12)


def test_geometric_median_of_a_right_triangle():
    # Isosceles, legs 1: on the axis of symmetry, at (3 - sqrt 3) / 6 from both legs.
    corners = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    np.testing.assert_allclose(geometric_median(corners), (3 - np.sqrt(3)) / 6, atol=1e-9)


def test_geometric_median_on_a_line_is_the_median():
    points = np.array([[3.0], [-50.0], [1.0], [2.0], [1000.0]])
    np.testing.assert_allclose(geometric_median(points), [2.0])


def test_geometric_median_starting_on_a_point():
    # The mean, where the iteration begins, is one of the points and not the median.
    points = np.array([[0.0, 0.0], [0.0, 3.0], [0.0, -3.0], [9.0, 0.0], [-9.0, 0.0], [1.0, 1.0]])
    points = np.vstack([points, [[-1.0, -1.0]], [[4.0, 7.0]], [[-4.0, -7.0]]])
    np.testing.assert_allclose(geometric_median(points), 0.0, atol=1e-9)
    offset = np.vstack([points, np.full((4, 2), 5.0)])
    offset = np.vstack([offset, offset.mean(axis=0, keepdims=True)])
    found = geometric_median(offset)
    best = minimize(lambda z: summed_distance(offset, z), found + 0.3, method="Nelder-Mead").fun
    assert summed_distance(offset, found) <= best + 1e-6


@given(arrays(np.float64, (7, 3), elements=st.floats(-10, 10)))
@settings(max_examples=50, deadline=None)
def test_no_direction_improves_a_geometric_median(points):
    found = geometric_median(points, tol=1e-12, max_iter=5000)
    value = summed_distance(points, found)
    spread = 1e-9 + np.ptp(points)
    for step in np.vstack([np.eye(3), -np.eye(3)]):
        assert summed_distance(points, found + 1e-2 * spread * step) >= value - 1e-6 * spread


def test_geometric_median_moves_with_the_points():
    points = np.random.default_rng(0).normal(size=(9, 4))
    rotation, _ = np.linalg.qr(np.random.default_rng(1).normal(size=(4, 4)))
    moved = geometric_median(3.0 * points @ rotation + 5.0)
    np.testing.assert_allclose(moved, 3.0 * geometric_median(points) @ rotation + 5.0, atol=1e-7)


def test_geometric_median_resists_a_minority():
    points = np.vstack([np.random.default_rng(0).normal(size=(6, 3)), np.full((5, 3), 1e6)])
    assert np.linalg.norm(geometric_median(points)) < 20


def test_equal_points():
    np.testing.assert_array_equal(geometric_median(np.full((4, 2), 3.0)), [3.0, 3.0])


def test_component_median_of_three_models():
    models = np.array([[[1.0, 9.0]], [[2.0, -7.0]], [[50.0, 0.0]]])
    np.testing.assert_array_equal(component_median(models), [[2.0, 0.0]])


def test_median_probabilities_of_three_models():
    two = np.array([[[0.9, 0.1]], [[0.4, 0.6]], [[0.2, 0.8]]])
    np.testing.assert_allclose(median_probabilities(two), [[0.4, 0.6]])
    three = np.array([[[0.8, 0.1, 0.1]], [[0.5, 0.3, 0.2]], [[0.1, 0.1, 0.8]]])
    np.testing.assert_allclose(median_probabilities(three), np.array([[5, 1, 2]]) / 8)


def test_certain_models_that_all_disagree_are_averaged():
    np.testing.assert_allclose(median_probabilities(np.eye(3)[:, None, :]), np.full((1, 3), 1 / 3))


def test_rectified_cosines_and_average_by_hand():
    updates = np.array([[2.0, 0.0], [0.0, 5.0], [-1.0, 0.0], [3.0, 3.0], [0.0, 0.0]])
    trust = rectified_cosines(updates, np.array([1.0, 0.0]))
    np.testing.assert_allclose(trust, [1.0, 0.0, 0.0, np.sqrt(0.5), 0.0], atol=1e-15)
    average = trusted_average(updates, np.array([1.0, 0.0]), trust)
    np.testing.assert_allclose(average, np.array([1.5, 0.5]) / (1 + np.sqrt(0.5)))


@pytest.mark.parametrize("n_components", [2, 8, 40])
def test_mixture_weights_satisfy_the_optimality_conditions(n_components):
    rng = np.random.default_rng(n_components)
    P = rng.uniform(0.01, 1.0, size=(n_components, 30))
    shares = rng.dirichlet(np.ones(30))
    weights = mixture_weights(P, shares)
    np.testing.assert_allclose(weights.sum(), 1.0)
    assert (weights >= 0).all()
    score = P @ (shares / (weights @ P))
    assert score.max() <= 1 + 1e-7
    np.testing.assert_allclose(score[weights > 1e-4], 1.0, atol=1e-5)


def test_mixture_weights_ignore_rows_without_share_and_useless_components():
    P = np.array([[0.9, 0.8, 0.1], [0.1, 0.2, 0.9]])
    np.testing.assert_allclose(mixture_weights(P, np.array([0.5, 0.5, 0.0])), [1.0, 0.0], atol=1e-7)
    same = np.vstack([P[:1], P[:1]])
    np.testing.assert_allclose(mixture_weights(same, np.full(3, 1 / 3)).sum(), 1.0)
