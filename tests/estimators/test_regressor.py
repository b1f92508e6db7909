from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import Ridge

from sourcewise import SourceWeightedRegressor, theory_trade_off, validation
from sourcewise.core import choices


@pytest.fixture(autouse=True)
def copies_stay(monkeypatch):
    """Keep every row: few columns make chance neighbours, and this file counts rows."""
    monkeypatch.setattr(choices, "DEFAULT", replace(choices.DEFAULT, without_copies=False))


def regressor(**parameters):
    return SourceWeightedRegressor(**{"reference": "gold", "random_state": 0, **parameters})


@pytest.mark.parametrize("discrepancy", validation.DISCREPANCIES)
def test_finds_the_bad_source(number_pool, discrepancy):
    X, y, sources = number_pool()
    model = regressor(discrepancy=discrepancy).fit(X, y, sources=sources)
    _, good, bad = model.source_weights_
    assert bad < 0.05
    assert bad <= good
    assert model.discrepancies_[2] > 2.0 * model.discrepancies_[1]
    assert model.score(X[sources == "good"], y[sources == "good"]) > 0.9


def test_attributes(number_pool):
    X, y, sources = number_pool()
    model = regressor().fit(X, y, sources=sources)
    assert model.sources_.tolist() == ["gold", "good", "bad"]
    np.testing.assert_allclose(model.source_weights_.sum(), 1.0)
    assert model.discrepancies_[0] == 0.0
    assert model.discrepancies_.shape == model.source_sizes_.shape == (3,)
    assert model.coef_.shape == (4,)
    assert isinstance(model.intercept_, float)
    np.testing.assert_allclose(model.predict(X), X @ model.coef_ + model.intercept_)
    cut_off = np.clip(1e5 * X, *model.feature_range_)
    np.testing.assert_allclose(
        model.predict(1e5 * X), cut_off @ model.coef_ + model.intercept_, rtol=1e-10
    )
    assert not hasattr(model, "classes_")


def test_discrepancies_do_not_depend_on_the_units(number_pool):
    X, y, sources = number_pool()
    one = regressor().fit(X, y, sources=sources)
    other = regressor().fit(1e3 * X + 5.0, 1e-4 * y - 7.0, sources=sources)
    np.testing.assert_allclose(one.discrepancies_, other.discrepancies_, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(1e-4 * one.predict(X) - 7.0, other.predict(1e3 * X + 5.0))


def test_trade_off_zero_is_ridge_regression_on_the_reference(number_pool):
    X, y, sources = number_pool()
    model = regressor(trade_off=0).fit(X, y, sources=sources)
    np.testing.assert_array_equal(model.source_weights_, [1.0, 0.0, 0.0])
    gold = sources == "gold"
    alone = regressor().fit(X[gold], y[gold], sources=sources[gold])
    np.testing.assert_allclose(model.coef_, alone.coef_, rtol=1e-8)
    # The same in scikit-learn's terms: sum of squares plus |w|^2 / C in the scaled features.
    deviation = X[gold].std(axis=0)
    mapped = np.maximum(deviation / deviation.max(), 0.1)
    scale = deviation / mapped * np.sqrt(np.mean(mapped**2))
    ridge = Ridge(alpha=1.0 / model.C_).fit(X[gold] / scale, y[gold])
    np.testing.assert_allclose(model.coef_, ridge.coef_ / scale, rtol=1e-6)
    np.testing.assert_allclose(model.intercept_, ridge.intercept_, rtol=1e-6)


def test_trade_off_infinity_pools_all_rows(number_pool):
    X, y, sources = number_pool()
    model = regressor(trade_off=np.inf).fit(X, y, sources=sources)
    np.testing.assert_allclose(model.source_weights_, [0.2, 0.4, 0.4])


def test_a_constant_reference_target(number_pool):
    X, y, sources = number_pool()
    y[sources == "gold"] = 3.0
    model = regressor(trade_off=0).fit(X, y, sources=sources)
    np.testing.assert_allclose(model.predict(X), 3.0)


def test_targets_as_objects_and_integers(number_pool):
    X, y, sources = number_pool()
    whole = np.round(10 * y).astype(int)
    expected = regressor().fit(X, whole.astype(float), sources=sources).predict(X)
    for targets in (whole, whole.astype(object), whole.tolist()):
        model = regressor().fit(X, targets, sources=sources)
        np.testing.assert_allclose(model.predict(X), expected)


def test_order_of_sources_does_not_matter(number_pool):
    X, y, sources = number_pool()
    model = regressor().fit(X, y, sources=sources)
    order = np.concatenate([np.flatnonzero(sources == s) for s in ("bad", "gold", "good")])
    other = regressor().fit(X[order], y[order], sources=sources[order])
    assert other.sources_.tolist() == ["bad", "gold", "good"]
    assert other.reference_index_ == 1
    np.testing.assert_allclose(other.source_weights_, model.source_weights_[[2, 0, 1]], rtol=1e-7)
    np.testing.assert_allclose(other.predict(X), model.predict(X), rtol=1e-7)


def test_scaling_the_weights_of_a_source_changes_nothing(number_pool):
    X, y, sources = number_pool()
    weight = np.random.default_rng(1).uniform(0.5, 2.0, size=len(y))
    one = regressor().fit(X, y, sources=sources, sample_weight=weight)
    scaled = np.where(sources == "good", 1000.0 * weight, weight)
    other = regressor().fit(X, y, sources=sources, sample_weight=scaled)
    np.testing.assert_allclose(one.source_weights_, other.source_weights_, rtol=1e-7)
    np.testing.assert_allclose(one.coef_, other.coef_, rtol=1e-7)


def test_weights_matter_within_a_source(number_pool):
    X, y, sources = number_pool()
    weight = np.random.default_rng(1).uniform(0.0, 2.0, size=len(y))
    one = regressor().fit(X, y, sources=sources)
    other = regressor().fit(X, y, sources=sources, sample_weight=weight)
    assert (other.source_sizes_ < one.source_sizes_).all()
    assert not np.allclose(one.coef_, other.coef_)


def test_paper_protocol_finds_the_bad_source(number_pool):
    X, y, sources = number_pool()
    model = regressor(protocol="paper").fit(X, y, sources=sources)
    assert len(model.selection_.trade_offs) == 22
    assert model.source_weights_[2] < 0.5 * model.source_weights_[1]


def test_single_precision(number_pool):
    X, y, sources = number_pool()
    double = regressor().fit(X, y, sources=sources)
    single = regressor().fit(X.astype(np.float32), y.astype(np.float32), sources=sources)
    np.testing.assert_allclose(single.source_weights_, double.source_weights_, atol=1e-3)
    np.testing.assert_allclose(single.predict(X), double.predict(X), rtol=1e-2)


def test_clone_and_theory(number_pool):
    X, y, sources = number_pool()
    model = clone(regressor(trade_off="theory")).fit(X, y, sources=sources)
    assert model.trade_off_ == theory_trade_off()


def test_the_bound_is_told_in_units_of_the_reference(number_pool):
    X, y, sources = number_pool()
    bounds = [
        SourceWeightedRegressor(reference="gold", trade_off=1.0, random_state=0)
        .fit(X, unit * y + shift, sources=sources)
        .generalization_bound(X=X)
        for unit, shift in ((1.0, 0.0), (100.0, -7.0))
    ]
    np.testing.assert_allclose(bounds[0].complexities, bounds[1].complexities, rtol=1e-6)


@pytest.mark.parametrize("seed", [0, 1, 4, 7])
def test_one_wrong_target_in_the_reference_does_not_open_the_door_to_bad_sources(seed):
    # In units of a deviation that one row has blown up, all sources look alike.
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(420, 6))
    y = X @ rng.normal(size=6) + rng.normal(size=420)
    sources = np.repeat(["gold", *"abcdef"], 60)
    wrong = np.isin(sources, ["a", "b", "c"])
    y[wrong] = -y[wrong]
    y[5] = 50.0
    model = regressor(random_state=seed).fit(X, y, sources=sources)
    bad = np.isin(model.sources_, ["a", "b", "c"])
    assert model.source_weights_[bad].sum() < 0.05
