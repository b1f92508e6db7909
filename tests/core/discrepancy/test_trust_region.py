from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import ortho_group

from sourcewise.core.discrepancy.trust_region import minimise_quadratic_on_ball


def _certify(A, c, radius, w, value):
    """Check the conditions that hold at a global minimum and nowhere else."""
    scale = np.abs(A).max() + np.abs(c).max() / radius
    norm = np.linalg.norm(w)
    assert norm <= radius * (1 + 1e-12)
    multiplier = w @ (c - A @ w) / norm**2 if norm > 0 else 0.0
    assert multiplier >= -1e-9 * scale
    assert multiplier * (radius - norm) <= 1e-8 * scale * radius
    np.testing.assert_allclose(A @ w + multiplier * w, c, atol=1e-8 * scale * radius)
    # At w = 0 any multiplier satisfies the equation, so only A itself can be the certificate.
    assert np.linalg.eigvalsh(A)[0] + multiplier >= -1e-8 * scale
    assert value == pytest.approx(w @ A @ w - 2 * c @ w, rel=1e-9, abs=1e-12 * scale * radius**2)


def _symmetric(rng, values):
    basis, _ = np.linalg.qr(rng.normal(size=(len(values), len(values))))
    return (basis * values) @ basis.T, basis


@pytest.mark.parametrize("n_features", [1, 2, 7, 40])
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_random_stacks_carry_their_certificate(n_features, scale):
    rng = np.random.default_rng(n_features)
    A = rng.normal(size=(30, n_features, n_features)) * scale
    A = A + np.swapaxes(A, 1, 2)
    c = rng.normal(size=(30, n_features)) * 10.0 ** rng.uniform(-8, 4, size=(30, 1))
    radius = 10.0 ** rng.uniform(-3, 3, size=30)
    w, value = minimise_quadratic_on_ball(A, c, radius)
    for k in range(30):
        _certify(A[k], c[k], radius[k], w[k], value[k])


def test_interior_solution_of_a_definite_form():
    A, c = np.diag([1.0, 4.0]), np.array([0.5, 1.0])
    w, value = minimise_quadratic_on_ball(A[None], c[None], 10.0)
    np.testing.assert_allclose(w[0], [0.5, 0.25], rtol=1e-14)
    assert value[0] == pytest.approx(-0.5)


@pytest.mark.parametrize("leak", [0.0, 1e-17, 1e-12, 1e-6])
@pytest.mark.parametrize("multiplicity", [1, 3])
def test_hard_case_and_its_neighbours(leak, multiplicity):
    rng = np.random.default_rng(0)
    values = np.array([-2.0] * multiplicity + [-1.0, 0.0, 3.0])
    A, basis = _symmetric(rng, values)
    c = basis[:, multiplicity:] @ np.array([0.1, -0.2, 0.3]) + leak * basis[:, 0]
    w, value = minimise_quadratic_on_ball(A[None], c[None], 1.5)
    assert np.linalg.norm(w[0]) == pytest.approx(1.5)
    _certify(A, c, 1.5, w[0], value[0])


def test_exact_hard_case_is_filled_up_to_the_sphere():
    A, c = np.diag([-1.0, 1.0]), np.array([0.0, 1.0])
    w, value = minimise_quadratic_on_ball(A[None], c[None], 1.0)
    np.testing.assert_allclose(np.abs(w[0]), [np.sqrt(0.75), 0.5], rtol=1e-14)
    assert value[0] == pytest.approx(-1.5)


def test_lowest_direction_without_slope_but_a_solution_on_the_sphere():
    A, c = np.diag([-1.0, 1.0]), np.array([0.0, 30.0])
    w, value = minimise_quadratic_on_ball(A[None], c[None], 1.0)
    np.testing.assert_allclose(w[0], [0.0, 1.0], atol=1e-14)
    assert value[0] == pytest.approx(-59.0)


def test_zero_slope():
    A = np.stack([np.diag([-3.0, 1.0]), np.diag([3.0, 1.0]), np.zeros((2, 2))])
    w, value = minimise_quadratic_on_ball(A, np.zeros((3, 2)), 2.0)
    np.testing.assert_allclose(value, [-12.0, 0.0, 0.0])
    np.testing.assert_allclose(np.abs(w), [[2.0, 0.0], [0.0, 0.0], [0.0, 0.0]])


def test_linear_form_and_zero_radius():
    w, value = minimise_quadratic_on_ball(np.zeros((1, 2, 2)), np.array([[3.0, 4.0]]), 2.0)
    np.testing.assert_allclose(w[0], [1.2, 1.6])
    assert value[0] == pytest.approx(-20.0)
    w, value = minimise_quadratic_on_ball(np.eye(2)[None], np.array([[3.0, 4.0]]), 0.0)
    assert not w.any()
    assert not value.any()


def test_one_dimension_against_its_three_candidates():
    rng = np.random.default_rng(3)
    a, c = rng.normal(size=50), rng.normal(size=50)
    _, value = minimise_quadratic_on_ball(a[:, None, None], c[:, None], 1.0)
    for k in range(50):
        candidates = [-1.0, 1.0] + ([c[k] / a[k]] if abs(c[k]) < a[k] else [])
        assert value[k] == pytest.approx(min(a[k] * w**2 - 2 * c[k] * w for w in candidates))


def test_no_other_solver_finds_anything_lower():
    rng = np.random.default_rng(4)
    A = rng.normal(size=(4, 4))
    A, c = A + A.T, 0.3 * rng.normal(size=4)
    _, value = minimise_quadratic_on_ball(A[None], c[None], 1.2)
    draws = rng.normal(size=(20_000, 4))
    draws *= 1.2 * rng.uniform(size=(20_000, 1)) ** 0.25 / np.linalg.norm(draws, axis=1)[:, None]
    assert value[0] <= np.min(np.einsum("ki,ij,kj->k", draws, A, draws) - 2 * draws @ c)
    ball = {"type": "ineq", "fun": lambda w: 1.44 - w @ w}
    found = [
        minimize(lambda w: w @ A @ w - 2 * c @ w, start, method="SLSQP", constraints=ball).fun
        for start in draws[:20]
    ]
    assert value[0] == pytest.approx(min(found), abs=1e-6)


@pytest.mark.parametrize("seed", range(5))
def test_the_shortest_of_many_minimisers_in_any_basis(seed):
    # Six rows in twenty dimensions: what is orthogonal to them changes nothing.
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(6, 20)), rng.normal(size=6)
    shortest = np.linalg.pinv(X) @ y
    basis = ortho_group.rvs(20, random_state=seed)
    for radius in (2.0 * np.linalg.norm(shortest), 1e3):
        plain, _ = minimise_quadratic_on_ball((X.T @ X)[None], (X.T @ y)[None], radius)
        np.testing.assert_allclose(plain[0], shortest, atol=1e-9)
        Z = X @ basis
        rotated, value = minimise_quadratic_on_ball((Z.T @ Z)[None], (Z.T @ y)[None], radius)
        np.testing.assert_allclose(basis @ rotated[0], shortest, atol=1e-9)
        assert value[0] == pytest.approx(-y @ y)
