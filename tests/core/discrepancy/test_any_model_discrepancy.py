"""What the reference's fold models know of each source, whatever kind of model they are."""

import numpy as np
import pytest
from made_up_sources import fit_reference, make
from sklearn.linear_model import LogisticRegression

from sourcewise.core.choices import DEFAULT
from sourcewise.core.discrepancy.combined import (
    any_model_discrepancies,
    any_model_question,
    any_model_values,
    larger_of,
)
from sourcewise.core.discrepancy.permutation import ask_here
from sourcewise.core.discrepancy.reference_folds import SingleFolds
from sourcewise.core.discrepancy.result import LACKING, NO_WITNESS, Discrepancies
from sourcewise.core.linear import LogisticFamily
from sourcewise.core.losses import BoundedLoss

FAMILY = LogisticFamily(2, np.array([1.0]), penalise_constant=True, tol=1e-10)


def draw(data, n_folds=3, seed=0):
    y = data.y[data.rows(0)]
    return SingleFolds.draw(y, len(y), n_folds, 1, seed)


def ask(data, folds):
    models = fit_reference(data, folds, FAMILY, BoundedLoss(2))
    return ask_here(data, any_model_question(models, DEFAULT))


def test_there_is_one_model_for_each_fold():
    data = make([31, 10])
    folds = draw(data)
    shares = data.row_shares[data.rows(0)]
    assert len(folds.left_out) == 3
    average = folds.average(shares)
    np.testing.assert_allclose(average.sum(axis=1), 1.0)
    np.testing.assert_array_equal(average[1:], np.eye(3))
    losses = np.arange(3.0)[:, None] * np.ones(31)
    found = folds.cross_fitted(losses)
    fold = folds.folds[0]
    np.testing.assert_array_equal(found[0], fold)
    assert np.isnan(found[2][fold == 1]).all()
    np.testing.assert_array_equal(found[2][fold != 1], fold[fold != 1])


def test_without_a_fold_sources_are_judged_by_the_model_that_has_not_seen_it():
    data = make([60, 30, 40], flipped=(2,))
    folds = draw(data)
    found, fold, trusted = ask(data, folds), folds.folds[0], data.rows(0)
    X, y = data.X[trusted], data.y[trusted]

    def model_without(f):
        model = LogisticRegression(C=1.0, fit_intercept=False, tol=1e-10, max_iter=1000)
        return model.fit(X[fold != f], y[fold != f])

    def agreement(f, rows):
        p = model_without(f).predict_proba(data.X[rows])[:, 1]
        return 2.0 * np.cov(p, data.y[rows])[0, 1], 2.0 * np.var(p, ddof=1)

    inside = [fold == f for f in range(3)]
    own, spread, squares = 0.0, 0.0, np.zeros(60)
    for f in range(3):
        p = model_without(f).predict_proba(X)[:, 1]
        mean = np.mean([p[fold != f].mean()])
        by_row = 2.0 * (p - p.mean() - (mean - p.mean())) * (y - y[fold != f].mean())
        own += by_row[inside[f]].sum() / 60
        spread += 2.0 * ((p - mean)[inside[f]] ** 2).sum() / 60
        squares[inside[f]] = by_row[inside[f]]
    error = squares.std() / np.sqrt(59)
    for v in range(3):
        for k, source in enumerate((1, 2)):
            value, variance = agreement(v, data.rows(source))
            expected = own * np.sqrt(min(variance / spread, 1.0)) - value
            expected = np.clip(expected / max(own, 2.0 * error), 0.0, 2.0)
            # What the reference knows of itself differs a little with the rows it is asked for.
            assert found["missing"][1 + v, k] == pytest.approx(expected, abs=0.2)


def test_flipped_labels_stand_out_and_clean_sources_do_not():
    data = make([100, 80, 80, 80], flipped=(3,))
    found = ask(data, draw(data, 5))
    result = any_model_discrepancies(found, 0.25, DEFAULT)
    assert result.values[2] > 5.0 * max(result.values[:2].max(), 0.01)
    assert result.p_values[2] < 1e-4
    assert result.witnesses == (LACKING,) * 3
    values = any_model_values(found, 0.25, DEFAULT)
    assert values.shape == (6, 3)
    assert (values[:, 2] > values[:, :2].max(axis=1)).all()


def test_p_values_keep_their_level():
    p_values = []
    for seed in range(40):
        data = make([60, 40, 40, 40], seed=seed)
        p_values.append(ask(data, draw(data, 5, seed))["p_values"])
    below = np.mean(np.concatenate(p_values) < 0.05)
    assert below <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / 120)


def test_no_source_depends_on_another():
    data = make([50, 30, 20, 1], flipped=(2,))
    folds = draw(data)
    together, apart = ask(data, folds), ask(data.select([0, 2]), folds)
    np.testing.assert_allclose(apart["missing"][:, 0], together["missing"][:, 1])
    np.testing.assert_allclose(apart["p_values"][0], together["p_values"][1])
    assert np.isfinite(together["p_values"]).all() and np.isfinite(together["missing"]).all()


def test_of_two_judgements_the_harder_one_counts():
    half = np.array([0.5, 0.5])
    one = Discrepancies(
        np.array([0.1, 0.3]), np.array([0.01, 0.02]), np.array([0.5, 1e-6]), (NO_WITNESS,) * 2
    )
    other = Discrepancies(np.array([0.2, 0.1]), np.array([0.03, 0.04]), half, (LACKING,) * 2)
    both = larger_of(one, other)
    assert both.values.tolist() == [0.2, 0.3]
    assert both.standard_errors.tolist() == [0.03, 0.02]
    assert both.witnesses == (LACKING, NO_WITNESS)
    assert both.p_values[0] == pytest.approx(0.5)
    assert both.p_values[1] == pytest.approx(2e-6, rel=0.01)  # two tests, one of them sure
