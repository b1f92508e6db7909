"""Models that tell a source from the reference, and what counts as their error."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import ortho_group

from sourcewise.core.discrepancy.moments import concat_moments, counted_rows, moments_of
from sourcewise.core.discrepancy.plug_in_queries import PER_ROUND, find_by_gradients
from sourcewise.core.discrepancy.separation import (
    extreme_models,
    loss_moments,
    model_losses,
    separating_models,
    separation_discrepancies,
    separation_values,
)


def rows_of(seed, n, d, n_classes=2):
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.normal(size=(n, d)), np.ones(n)])
    return counted_rows(X, rng.integers(n_classes, size=n), np.full(n, 1.0 / n), n_classes)


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("seed", range(3))
def test_rows_orthogonal_to_a_model_are_no_error_in_any_basis(n_classes, scale, seed):
    rng = np.random.default_rng(seed)
    n_models = 1 if n_classes == 2 else n_classes
    # Models of the first coordinates; every second row has none of these.
    models = scale * np.column_stack([rng.normal(size=(n_models, 4)), np.zeros((n_models, 26))])
    X = rng.normal(size=(40, 30))
    X[::2, :4] = 0.0
    targets = rng.choice([-1.0, 1.0], size=(40, n_models))
    plain = model_losses(X, targets, models, n_classes)
    assert not plain[::2].any()
    assert 0 < plain[1::2].sum() < 20 * n_models
    basis = ortho_group.rvs(30, random_state=seed)
    assert (X @ basis @ basis.T @ models.T)[::2].any()  # rounding leaves something of nothing
    np.testing.assert_array_equal(
        model_losses(X @ basis, targets, models @ basis, n_classes), plain
    )


def test_a_margin_beyond_rounding_counts_however_small_next_to_others():
    X = np.array([[1.0, 0.0], [1e-9, 1.0]])
    models, targets = np.array([[-1.0, 0.0]]), np.ones((2, 1))
    assert model_losses(X, targets, models, 2).tolist() == [[1.0], [1.0]]
    assert model_losses(X, -targets, models, 2).tolist() == [[0.0], [0.0]]


def test_losses_of_regression_are_squares():
    X, targets = np.array([[1.0, 2.0]]), np.array([[3.0]])
    assert model_losses(X, targets, np.array([[1.0, 0.0], [0.0, 3.0]]), 0).tolist() == [[4.0, 9.0]]


@pytest.mark.parametrize("d", [3, 80])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_nothing_separates_the_reference_from_its_copy(d, n_classes):
    rows = rows_of(0, 30, d, n_classes)
    other = np.random.default_rng(1).permutation(30)
    copy = counted_rows(rows.X[other], np.zeros(30, int), rows.shares, n_classes)
    copy = type(copy)(copy.X, rows.targets[other], copy.shares, copy.positions)
    assert not separating_models(moments_of(copy), moments_of(rows), ridge=1e-6).any()


def test_separating_models_minimise_the_flipped_problem():
    source, reference = rows_of(2, 20, 4), rows_of(3, 35, 4)
    ridges = np.array([1e-3, 0.5])
    found = separating_models(
        concat_moments([moments_of(source)] * 2), moments_of(reference), ridge=ridges
    )
    for w, ridge in zip(found[:, 0], ridges, strict=True):
        gradient = ridge * w
        for rows, sign in ((source, 1.0), (reference, -1.0)):
            residual = rows.X @ w + sign * rows.targets[:, 0]
            gradient = gradient + rows.X.T @ (rows.shares * residual)
        np.testing.assert_allclose(gradient, 0.0, atol=1e-12)


def test_moments_of_losses():
    losses = np.random.default_rng(0).random((10, 3))
    shares = np.random.default_rng(1).dirichlet(np.ones(10))
    means, variances = loss_moments(losses, shares)
    for k in range(3):
        mean = sum(s * x for s, x in zip(shares, losses[:, k], strict=True))
        variance = sum(s**2 * (x - mean) ** 2 for s, x in zip(shares, losses[:, k], strict=True))
        assert means[k] == pytest.approx(mean)
        assert variances[k] == pytest.approx(variance)


def test_the_witness_is_the_model_of_the_largest_difference():
    whole = np.array([[0.1, -0.2, 0.0], [-0.3, 0.1, 0.0]])  # (n_targets, n_sources)
    found = {
        "differences": np.stack([whole, 2.0 * whole]),
        "difference_errors": np.array([[0.01, 0.02, 0.03], [0.04, 0.05, 0.06]]),
        "p_values": np.array([0.5, 0.6, 0.7]),
    }
    np.testing.assert_allclose(separation_values(found), [[0.3, 0.2, 0.0], [0.6, 0.4, 0.0]])
    result = separation_discrepancies(found, n_classes=3)
    np.testing.assert_allclose(result.values, [0.3, 0.2, 0.0])
    np.testing.assert_allclose(result.standard_errors, [0.04, 0.02, 0.03])
    np.testing.assert_array_equal(result.p_values, [0.5, 0.6, 0.7])
    assert [(w.hypothesis, w.worse_on) for w in result.witnesses] == [
        ("separating model of class 1", "reference"),
        ("separating model of class 0", "reference"),
        ("separating model of class 0", "source"),
    ]


@pytest.mark.parametrize("d", [4, 50])
@pytest.mark.parametrize("n_classes", [0, 2, 3])
def test_gradients_at_hypotheses_find_what_all_rows_would(n_classes, d):
    def targets(rows):
        return rows if n_classes else replace(rows, targets=rows.X[:, :1] + rows.targets)

    sources = [targets(rows_of(seed, 90, d, max(n_classes, 2))) for seed in (1, 2)]
    sets = [targets(rows_of(seed, 70, d, max(n_classes, 2))) for seed in (3, 4, 5)]
    reference = concat_moments([moments_of(rows) for rows in sets])
    norms, rounds = np.array([0.5, 1.0, 2.0]), []

    def ask(models):
        rounds.append([len(some) for some in models])
        return [
            np.einsum("n,nmt,nd->mtd", rows.shares, off, rows.X)
            for rows, some in zip(sources, models, strict=True)
            for off in [(rows.X @ some.T)[:, :, None] - rows.targets[:, None]]
        ]

    found = find_by_gradients(reference, 0.1, norms, n_classes, len(sources), ask)
    for rows, models in zip(sources, found, strict=True):
        own = concat_moments([moments_of(rows)] * len(sets))
        exact = (
            separating_models(own, reference, ridge=0.1)
            if n_classes
            else extreme_models(own, reference, norm_bound=norms)
        )
        np.testing.assert_allclose(models, exact, atol=1e-7)
    assert max(map(max, rounds)) <= PER_ROUND + 1
    assert len(rounds) == (1 if d < PER_ROUND else 2)
