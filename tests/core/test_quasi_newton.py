import numpy as np

from sourcewise.core.quasi_newton import Gradient, minimise_columns


def quadratics(columns=6, d=4, seed=0):
    rng = np.random.default_rng(seed)
    factors = rng.normal(size=(columns, d, d))
    A = factors @ factors.transpose(0, 2, 1) + 0.1 * np.eye(d)
    b = rng.normal(size=(columns, d))
    return A, b


def solve(A, b, precondition, **options):
    asked = []

    def evaluate(W, columns):
        asked.append(columns)
        value = np.einsum("pij,jpk->ipk", A[columns], W) - b[columns].T[:, :, None]
        return Gradient(value, np.ones(len(columns)))

    start = np.zeros((A.shape[1], len(A), 1))
    solution, _ = minimise_columns(start, evaluate, precondition, **options)
    return solution[:, :, 0].T, asked


def test_quadratics_without_any_curvature_to_start_from():
    A, b = quadratics()
    found, _ = solve(A, b, lambda v, columns: v, tol=1e-14, max_iter=500)
    np.testing.assert_allclose(found, np.linalg.solve(A, b[:, :, None])[:, :, 0], atol=1e-5)


def test_exact_curvature_needs_one_step_and_columns_leave_when_done():
    A, b = quadratics()
    b[0] = 0.0
    inverse = np.linalg.inv(A)

    def precondition(v, columns):
        return np.einsum("pij,jpk->ipk", inverse[columns], v)

    found, asked = solve(A, b, precondition, tol=1e-12, max_iter=500)
    np.testing.assert_allclose(found, np.linalg.solve(A, b[:, :, None])[:, :, 0], atol=1e-8)
    assert len(asked) == 2
    np.testing.assert_array_equal(asked[1], np.arange(1, 6))


def test_renewed_curvature_forgets_the_old_pairs():
    A, b = quadratics()
    inverse = np.repeat(np.eye(4)[None], 6, axis=0)

    def renew(W, columns):
        inverse[columns] = np.linalg.inv(A[columns])
        return np.ones(len(columns), dtype=bool)

    def precondition(v, columns):
        return np.einsum("pij,jpk->ipk", inverse[columns], v)

    found, asked = solve(
        A, b, precondition, tol=1e-14, max_iter=500, refresh=renew, refresh_every=2
    )
    np.testing.assert_allclose(found, np.linalg.solve(A, b[:, :, None])[:, :, 0], atol=1e-7)
    assert len({len(columns) for columns in asked}) <= 2


def test_a_step_that_overshoots_is_shortened():
    A, b = quadratics()

    def much_too_far(v, columns):
        return 50.0 * v

    found, _ = solve(A, b, much_too_far, tol=1e-14, max_iter=500)
    np.testing.assert_allclose(found, np.linalg.solve(A, b[:, :, None])[:, :, 0], atol=1e-5)
