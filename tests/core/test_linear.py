from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge

from sourcewise.core.data import group_rows
from sourcewise.core.family import given_problems, kept_shares
from sourcewise.core.linear import LogisticFamily
from sourcewise.core.ridge import RidgeFamily
from sourcewise.engines.memory import MemorySources

ALPHA = np.array([[0.1, 0.4, 0.2, 0.3], [0, 1, 0, 0], [0.0, 0.5, 0.0, 0.5], [0.25] * 4])


def pool(n_classes, seed=0):
    rng = np.random.default_rng(seed)
    counts = [30, 50, 20, 45]
    n = sum(counts)
    X = np.column_stack([rng.normal(size=(n, 4)), np.ones(n)])
    score = X @ rng.normal(size=(5, max(n_classes, 1)))
    y = score[:, 0] + rng.normal(size=n) if n_classes == 0 else score.argmax(axis=1)
    if n_classes == 2:
        y = (score[:, 0] + rng.normal(size=n) > 0).astype(int)
    data, _ = group_rows(X, y, np.repeat(np.arange(4), counts), reference=1, n_classes=n_classes)
    held_out = np.zeros((2, 50), dtype=bool)
    held_out[0, :10] = held_out[1, 40:] = True
    return given_problems(
        MemorySources(data, [0, 2, 3]),
        data,
        ALPHA,
        np.array([145.0, 50.0, 70.0, 99.0]),
        held_out,
        np.array([0, 1, -1, -1]),
    )


def plain_row_weights(problems, p):
    """Spell out the weights of the rows."""
    data, result = problems.sources.data, []
    for i in range(4):
        share = np.full(data.row_counts[i], 1.0 / data.row_counts[i])
        if i == 1 and problems.fold[p] >= 0:
            out = problems.held_out[problems.fold[p]]
            share = np.where(out, 0.0, 1.0 / np.sum(~out))
        result.append(problems.totals[p] * ALPHA[p, i] * share)
    return np.concatenate(result)


def test_row_weights_are_total_times_alpha_over_size():
    problems = pool(2)
    for p in range(4):
        found = problems.row_weights(problems.sources.data, p)
        np.testing.assert_allclose(found, plain_row_weights(problems, p))
        assert found.sum() == pytest.approx(problems.totals[p])


def test_problems_are_found_again_among_others():
    problems = pool(2)
    assert problems.find(problems).tolist() == [0, 1, 2, 3]
    assert problems.only([3, 1]).find(problems).tolist() == [-1, 1, -1, 0]
    assert problems.find(problems.only(np.array([False, True, True, False]))).tolist() == [1, 2]
    otherwise = replace(problems, totals=problems.totals + [0.0, 1.0, 0.0, 1e-14])
    assert problems.find(otherwise).tolist() == [0, -1, 2, 3]
    other_fold = replace(problems, fold=np.array([0, 0, -1, 1]))
    assert problems.find(other_fold).tolist() == [0, -1, 2, -1]


@pytest.mark.parametrize("n_classes", [2, 3])
def test_logistic_grid_equals_one_fit_after_another(n_classes):
    problems = pool(n_classes)
    settings = np.array([0.01, 1.0, 100.0])
    family = LogisticFamily(n_classes, settings, penalise_constant=True, tol=1e-11)
    models = family.fit_grid(problems, settings)
    data = problems.sources.data
    for p in range(4):
        weight = plain_row_weights(problems, p)
        used = weight > 0
        for c, C in enumerate(settings):
            theirs = LogisticRegression(C=C, fit_intercept=False, tol=1e-10, max_iter=10_000)
            theirs.fit(data.X[used], data.y[used], sample_weight=weight[used])
            ours = family.predict(models[[3 * p + c]], data.X)[0]
            np.testing.assert_allclose(ours, theirs.predict_proba(data.X), atol=2e-4)


def test_ridge_grid_equals_one_fit_after_another():
    problems = pool(0)
    settings = np.array([0.01, 1.0, 100.0])
    family = RidgeFamily(settings)
    models = family.fit_grid(problems, settings)
    data = problems.sources.data
    for p in range(4):
        weight = plain_row_weights(problems, p)
        for c, C in enumerate(settings):
            theirs = Ridge(alpha=1.0 / C).fit(data.X[:, :-1], data.y, sample_weight=weight)
            ours = family.predict(models[[3 * p + c]], data.X)[0]
            np.testing.assert_allclose(ours, theirs.predict(data.X[:, :-1]), atol=1e-5)
        one = family.fit(data.X, data.y, np.repeat(weight[:, None], 3, axis=1), settings)
        np.testing.assert_allclose(one, models[3 * p : 3 * p + 3], rtol=1e-7, atol=1e-9)


def test_kept_shares_sum_to_one():
    shares = np.array([0.1, 0.2, 0.3, 0.4])
    kept = kept_shares(shares, np.array([True, False, False, True]))
    np.testing.assert_allclose(kept, [0, 0.4, 0.6, 0])
