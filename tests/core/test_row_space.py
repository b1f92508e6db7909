import numpy as np
import pytest

from sourcewise.core.choices import DEFAULT
from sourcewise.core.data import ReferenceRows, group_rows
from sourcewise.core.discrepancy.methods import LINEAR, Survey, measure
from sourcewise.core.discrepancy.reference_folds import ReferenceFolds
from sourcewise.core.family import SourceRuns, given_problems
from sourcewise.core.linear import LogisticFamily
from sourcewise.core.losses import brier_loss
from sourcewise.core.ridge import RidgeFamily
from sourcewise.core.row_space import MIN_FEATURES, RowSpace
from sourcewise.engines.memory import MemorySources


def wide(n=40, d=120, seed=0):
    """Rows with a constant at the end, and labels that the features know something of."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.normal(size=(n, d - 1)), np.ones(n)])
    return X, (X[:, 0] + X[:, 1] + 0.5 * rng.normal(size=n) > 0.3).astype(int)


@pytest.fixture
def as_it_is(monkeypatch):
    """Switch the change of basis off."""

    def switch():
        monkeypatch.setattr("sourcewise.core.row_space.MIN_FEATURES", 10**9)

    return switch


def test_scores_norms_and_models_survive_there_and_back():
    X, _ = wide()
    space = RowSpace.of(X)
    assert space.X.shape == (40, 41)
    np.testing.assert_array_equal(space.X[:, -1], 1.0)
    rng = np.random.default_rng(1)
    models = rng.normal(size=(3, 40)) @ X
    models[:, -1] = rng.normal(size=3)
    inside = space.into(models)
    np.testing.assert_allclose(space.X @ inside.T, X @ models.T, rtol=1e-10)
    np.testing.assert_allclose(np.linalg.norm(inside, axis=1), np.linalg.norm(models, axis=1))
    np.testing.assert_allclose(space.back(inside), models, atol=1e-10)


def test_rows_that_repeat_each_other_and_stacks_of_rows_are_no_trouble():
    X, _ = wide(n=10)
    stack = np.stack([X, np.repeat(X[:1], 10, axis=0)])
    space = RowSpace.of(stack)
    np.testing.assert_allclose(
        space.X @ np.swapaxes(space.X, 1, 2), stack @ np.swapaxes(stack, 1, 2), atol=1e-9
    )
    models = np.ones((2, 5, 10)) @ space.X
    np.testing.assert_allclose(
        np.linalg.norm(space.back(models), axis=2), np.linalg.norm(models, axis=2)
    )


def rows_like(kind, dtype):
    X, _ = wide(n=30)
    if kind == "centred":
        X[:, :-1] -= X[:, :-1].mean(axis=0)
    elif kind == "repeated":
        X[20:] = X[:10]
    elif kind == "nearly repeated":
        X[20:] = X[:10] + 1e-5 * X[10:20]
    elif kind == "one row many times":
        X[:] = X[0]
    elif kind == "nothing":
        X[:, :-1] = 0.0
    elif kind == "some nothing":
        X[::2, :-1] = 0.0
        X[:, 5:40] = 0.0
    elif kind == "few features that vary":
        X[:, 20:-1] = 0.0
        X[:, :-1] -= X[:, :-1].mean(axis=0)
    elif kind == "of all sizes":
        X[:, :-1] *= np.logspace(-6, 6, 30)[:, None]
    return X.astype(dtype)


KINDS = [
    "plain", "centred", "repeated", "nearly repeated", "one row many times", "nothing",
    "some nothing", "few features that vary", "of all sizes",
]  # fmt: skip


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kind", KINDS)
def test_a_basis_is_orthonormal_and_keeps_every_row(kind, dtype):
    X = rows_like(kind, dtype)
    before = X.copy()
    space = RowSpace.of(X)
    np.testing.assert_array_equal(X, before)
    assert space.X.dtype == space.basis.spanning.dtype == space.basis.mixing.dtype == dtype
    rounding = 1e-9 if dtype == np.float64 else 2e-3
    vectors = space.basis.back(np.eye(30, dtype=dtype))
    # Coordinates that the rows do not need have no vector, and no row has a part there.
    needed = (vectors != 0.0).any(axis=1)
    assert needed.sum() >= np.linalg.matrix_rank(X[:, :-1], tol=1e-4 * np.abs(X).max())
    assert (space.X[:, :-1][:, ~needed] == 0.0).all()
    np.testing.assert_allclose(vectors @ vectors.T, np.diag(needed), atol=rounding)
    lengths = np.maximum(np.linalg.norm(X[:, :-1], axis=1), 1e-300)
    error = np.linalg.norm(space.X[:, :-1] @ vectors - X[:, :-1], axis=1)
    # Rows a million times as long as others leave them no more digits than these.
    longest = lengths.max() if kind == "of all sizes" else lengths
    assert (error <= rounding * 1e-2 * longest).all()


@pytest.mark.parametrize("classes", [2, 3, 0])
@pytest.mark.parametrize("kind", KINDS)
def test_models_of_rows_that_are_hard_to_tell_apart_are_those_of_the_original_basis(
    kind, classes, as_it_is
):
    X = rows_like(kind, np.float64)
    if kind == "of all sizes":
        X[:, :-1] = np.clip(X[:, :-1], -1e2, 1e2)
    y = np.arange(30) % max(classes, 2)
    family = LogisticFamily(classes, np.ones(1), tol=1e-13) if classes else RidgeFamily(np.ones(1))
    given = X, y, np.random.default_rng(0).random((30, 2)), np.array([0.1, 10.0])
    rotated = family.predict(family.fit(*given), X)
    as_it_is()
    np.testing.assert_allclose(rotated, family.predict(family.fit(*given), X), atol=5e-5)


@pytest.mark.parametrize("shape", [(40, 41), (10, MIN_FEATURES - 1)])
def test_rows_stay_as_they_are_where_nothing_is_saved(shape):
    X = np.ones(shape)
    assert RowSpace.of(X).X is X


@pytest.mark.parametrize("classes", [2, 3, 0])
def test_all_fits_of_a_family_are_those_in_the_original_basis(classes, as_it_is):
    X, y = wide(n=60, d=90)
    rng = np.random.default_rng(2)
    if classes == 3:
        y = y + (X[:, 2] > 0)
    target = y if classes else X[:, 0] + rng.normal(size=60)
    family = (
        LogisticFamily(classes, np.array([0.01, 1.0]), tol=1e-13)
        if classes
        else RidgeFamily(np.array([0.01, 1.0]))
    )
    data, _ = group_rows(X, target, np.repeat([0, 1, 2], 20), reference=0, n_classes=classes)
    held_out = np.arange(20) < np.array([[5], [0]])
    weights = rng.dirichlet(np.ones(3), size=4)
    problems = given_problems(
        MemorySources(data, [1, 2]),
        data,
        weights,
        np.full(4, 50.0),
        held_out,
        np.array([-1, 0, 0, 1]),
    )
    runs = SourceRuns(X, target, np.ones(60), np.array([20, 40]))
    fold = np.arange(60) % 3

    def fits():
        return (
            family.fit(X, target, rng_weights, np.array([0.1, 10.0])),
            family.fit_folds(runs, fold, np.array([2, 3]), 0.5),
            family.fit_grid(problems, family.settings),
        )

    rng_weights = rng.random((60, 2))
    rotated = fits()
    as_it_is()
    for ours, plain in zip(rotated, fits(), strict=True):
        np.testing.assert_allclose(ours, plain, atol=2e-6)


@pytest.mark.parametrize("classes", [2, 0])
@pytest.mark.parametrize("name", LINEAR)
def test_linear_discrepancies_are_those_in_the_original_basis(name, classes, as_it_is):
    X, y = wide(n=60, d=90)
    X[40:, :3] += 1.0
    target = y if classes else X[:, 0] - X[:, 1]
    data, _ = group_rows(X, target, np.repeat([0, 1, 2], 20), reference=0, n_classes=classes)
    sources, reference = MemorySources(data, [1, 2]), ReferenceRows.of(data)

    def find():
        folds = ReferenceFolds.draw(None, 20, 5, 1, seed=0)
        settings = np.ones(1)
        family = LogisticFamily(classes, settings) if classes else RidgeFamily(settings)
        survey = Survey(
            sources, reference, 0, folds, family, 1.0, brier_loss, 0, DEFAULT,
            numbers=(sources, reference), n_permutations=19,
        )  # fmt: skip
        return measure(name, survey, [0, 1])[0]

    assert sources.in_row_space(reference.X) is not None
    rotated = find()
    as_it_is()
    assert sources.in_row_space(reference.X) is None
    plain = find()
    one, two = rotated.result, plain.result
    np.testing.assert_allclose(one.values, two.values, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(one.standard_errors, two.standard_errors, rtol=1e-5)
    np.testing.assert_allclose(one.p_values, two.p_values)
    np.testing.assert_allclose(rotated.without_fold, plain.without_fold, rtol=1e-6, atol=1e-9)
