from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.special import expit
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from sourcewise import SourceWeightedClassifier, theory_trade_off, validation
from sourcewise.core import choices


@pytest.fixture(autouse=True)
def copies_stay(monkeypatch):
    """Keep every row: few columns make chance neighbours, and this file counts rows."""
    monkeypatch.setattr(choices, "DEFAULT", replace(choices.DEFAULT, without_copies=False))


def classifier(**parameters):
    return SourceWeightedClassifier(**{"reference": "gold", "random_state": 0, **parameters})


def assert_same_model(one, other, rtol=1e-5):
    """Compare all numbers, whatever the order of the sources."""
    order = [other.sources_.tolist().index(name) for name in one.sources_.tolist()]
    found = one.discrepancy_result_, other.discrepancy_result_.select(order)
    np.testing.assert_allclose(found[1].values, found[0].values, rtol=rtol, atol=1e-9)
    np.testing.assert_allclose(
        found[1].standard_errors, found[0].standard_errors, rtol=rtol, atol=1e-9
    )
    np.testing.assert_allclose(found[1].p_values, found[0].p_values, rtol=rtol, atol=1e-9)
    assert one.trade_off_ == other.trade_off_
    np.testing.assert_allclose(
        other.source_weights_[order], one.source_weights_, rtol=rtol, atol=1e-9
    )
    np.testing.assert_allclose(other.coef_, one.coef_, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(other.intercept_, one.intercept_, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("discrepancy", validation.DISCREPANCIES)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_finds_the_bad_source(class_pool, discrepancy, n_classes):
    X, y, sources = class_pool({"gold": 60, "good": 90, "bad": 90}, n_classes=n_classes)
    model = classifier(discrepancy=discrepancy).fit(X, y, sources=sources)
    _, good, bad = model.source_weights_
    assert bad <= 0.5 * good  # both may be 0: the reference alone
    assert model.discrepancies_[2] > model.discrepancies_[1]
    assert model.score(X[sources == "good"], y[sources == "good"]) > 0.75


def test_a_running_number_costs_no_good_source_its_weight():
    rng = np.random.default_rng(0)
    counts = {"gold": 80, "north": 100, "east": 100, "south": 100}
    sources = np.repeat(list(counts), list(counts.values()))
    X = rng.normal(size=(len(sources), 12))
    y = (X[:, :6] @ rng.normal(size=6) + rng.logistic(size=len(X)) > 0).astype(int)
    running = [1_000_000 * (k + 1) + np.arange(n) for k, n in enumerate(counts.values())]
    X = np.column_stack([X, np.concatenate(running)])
    model = classifier().fit(X, y, sources=sources)
    assert model.source_weights_[1:].min() > 0.2
    # Nor does it matter how far it has got when the model is used.
    later = X + 1e9 * (np.arange(13) == 12)
    assert model.score(later, y) > model.score(X, y) - 0.05


@pytest.mark.parametrize("protocol", [None, "paper"])
def test_rows_beyond_the_range_are_judged_as_those_at_its_end(class_pool, protocol):
    X, y, sources = class_pool()
    model = classifier(protocol=protocol).fit(X, y, sources=sources)
    lowest, highest = model.feature_range_
    if protocol == "paper":  # features as they are
        assert np.isinf([lowest, highest]).all()
    else:
        trusted = X[sources == "gold"]
        assert (lowest < trusted.min(axis=0) - 10 * trusted.std(axis=0)).all()
        assert (highest > trusted.max(axis=0) + 10 * trusted.std(axis=0)).all()
    beyond = X * [1e5, -1e5, 1.0, 1.0]
    scores = np.clip(beyond, lowest, highest) @ model.coef_[0] + model.intercept_
    np.testing.assert_allclose(model.predict_proba(beyond)[:, 1], expit(scores), atol=1e-12)


@pytest.mark.parametrize("labels", [["no", "yes"], ["a", "bb", "ccc"], [10, 20], [True, False]])
def test_attributes(class_pool, labels):
    X, y, sources = class_pool(n_classes=len(labels), labels=labels)
    model = classifier().fit(X, y, sources=sources)
    assert model.sources_.tolist() == ["gold", "good", "bad"]
    np.testing.assert_allclose(model.source_weights_.sum(), 1.0)
    assert model.discrepancies_[0] == 0.0
    assert (model.discrepancies_[1:] > 0).all()
    for array in (model.discrepancies_, model.source_weights_, model.discrepancy_result_.p_values):
        assert array.shape == (3,)
    assert model.source_rows_.tolist() == [40, 80, 80]
    np.testing.assert_allclose(model.source_sizes_, [40, 80, 80])
    assert model.reference_index_ == 0
    assert model.trade_off_ in model.selection_.trade_offs
    assert model.C_ in model.selection_.settings
    fixed = model.at_trade_off(model.trade_off_)
    assert fixed.cutoff_ == model.cutoff_
    assert (fixed.discrepancies_[fixed.source_weights_ > 0] < fixed.cutoff_).all()
    assert model.classes_.tolist() == sorted(labels)
    outputs = 1 if len(labels) == 2 else len(labels)
    assert model.coef_.shape == (outputs, 4)
    assert model.intercept_.shape == (outputs,)
    assert model.n_features_in_ == 4
    probabilities = model.predict_proba(X)
    assert probabilities.shape == (len(X), len(labels))
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    np.testing.assert_array_equal(model.classes_[probabilities.argmax(axis=1)], model.predict(X))


class TestSourceNames:
    @pytest.mark.parametrize(
        "convert",
        [
            list,
            tuple,
            pd.Series,
            pd.Categorical,
            lambda s: pd.Series(s, dtype="category"),
            lambda s: pd.Series(s, dtype="string"),
            pl.Series,
            lambda s: pl.Series(s, dtype=pl.Categorical),
            lambda s: s.astype(object),
            lambda s: s[:, None],
        ],
    )
    def test_any_container(self, class_pool, convert):
        X, y, sources = class_pool()
        expected = classifier(trade_off=1.0).fit(X, y, sources=sources)
        # With the reference last, categories in order of the alphabet would show.
        model = classifier(trade_off=1.0).fit(X, y, sources=convert(sources))
        assert model.sources_.tolist() == ["gold", "good", "bad"]
        assert all(type(name) is str for name in model.sources_.tolist())
        np.testing.assert_array_equal(model.source_weights_, expected.source_weights_)

    @pytest.mark.parametrize("kind", [int, np.uint8, object, float, list])
    def test_numbers(self, class_pool, kind):
        X, y, sources = class_pool()
        numbers = np.select([sources == "gold", sources == "good"], [7, 30], default=2)
        given = numbers.tolist() if kind is list else numbers.astype(kind)
        model = classifier(reference=7, trade_off=1.0).fit(X, y, sources=given)
        assert model.sources_.tolist() == [7, 30, 2]
        assert model.source_rows_.tolist() == [40, 80, 80]
        assert model.report().sources[0].reason == "is the reference"

    def test_mixed_and_tuple_names(self, class_pool):
        X, y, sources = class_pool()
        names = {"gold": ("lab", 1), "good": ("lab", 2), "bad": 3}
        given = np.empty(len(sources), dtype=object)
        given[:] = [names[s] for s in sources]
        model = classifier(reference=("lab", 1), trade_off=1.0).fit(X, y, sources=given)
        assert model.sources_.tolist() == [("lab", 1), ("lab", 2), 3]
        assert len(model.report().sources) == 3

    def test_order_of_first_appearance(self, class_pool):
        X, y, sources = class_pool()
        order = np.concatenate([[150, 41], np.setdiff1d(np.arange(200), [150, 41])])
        model = classifier(trade_off=1.0).fit(X[order], y[order], sources=sources[order])
        assert model.sources_.tolist() == ["bad", "good", "gold"]
        assert model.reference_index_ == 2
        assert model.discrepancies_[2] == 0.0

    def test_none_means_all_rows_are_trusted(self, class_pool):
        X, y, _ = class_pool({"gold": 60})
        with pytest.warns(UserWarning, match="every row counts as one of the reference 'gold'"):
            model = classifier().fit(X, y)
        assert model.sources_.tolist() == ["gold"]
        assert model.source_weights_.tolist() == [1.0]
        assert model.trade_off_ == theory_trade_off()
        assert len(model.selection_.trade_offs) == 1  # nothing to choose between
        assert "is not known" in str(model.reference_adequacy())
        assert str(model.report())
        np.testing.assert_allclose(model.coef_, classifier().fit(X, y, sources=["gold"] * 60).coef_)

    def test_a_reference_that_is_no_name_is_refused_without_sources_too(self, class_pool):
        X, y, _ = class_pool({"gold": 60})
        with pytest.raises(ValueError, match="reference must be the name of one source"):
            classifier(reference=np.array(["gold", "silver"])).fit(X, y)


class TestInvariance:
    @pytest.mark.parametrize("discrepancy", validation.DISCREPANCIES)
    def test_order_of_sources(self, class_pool, discrepancy):
        X, y, sources = class_pool({"gold": 40, "good": 50, "fine": 30, "bad": 50})
        model = classifier(discrepancy=discrepancy).fit(X, y, sources=sources)
        blocks = [np.flatnonzero(sources == name) for name in ("bad", "fine", "gold", "good")]
        order = np.concatenate(blocks)
        other = classifier(discrepancy=discrepancy).fit(X[order], y[order], sources=sources[order])
        assert_same_model(model, other)

    def test_interleaved_sources(self, class_pool):
        X, y, sources = class_pool()
        model = classifier().fit(X, y, sources=sources)
        # Any order that keeps each source's rows in their own order.
        rank = np.concatenate([np.linspace(0, 1, n) for n in (40, 80, 80)])
        order = np.argsort(rank, kind="stable")
        other = classifier().fit(X[order], y[order], sources=sources[order])
        assert_same_model(model, other)

    def test_order_of_a_sources_rows_when_nothing_is_dealt(self, class_pool):
        X, y, sources = class_pool()
        options = {"estimator": LogisticRegression(tol=1e-10), "discrepancy": "plug-in"}
        model = classifier(**options, trade_off=1.0).fit(X, y, sources=sources)
        order = np.random.default_rng(0).permutation(len(y))
        order = order[np.argsort(sources[order] != "gold", kind="stable")]
        other = classifier(**options, trade_off=1.0).fit(X[order], y[order], sources=sources[order])
        place = [other.sources_.tolist().index(name) for name in model.sources_]
        np.testing.assert_allclose(other.discrepancies_[place], model.discrepancies_)
        np.testing.assert_allclose(other.estimator_.coef_, model.estimator_.coef_, rtol=1e-6)

    def test_scaling_the_weights_of_a_source(self, class_pool):
        X, y, sources = class_pool()
        weight = np.random.default_rng(1).uniform(0.5, 2.0, size=len(y))
        model = classifier().fit(X, y, sources=sources, sample_weight=weight)
        scale = np.select([sources == "gold", sources == "good"], [0.01, 7.0], default=300.0)
        other = classifier().fit(X, y, sources=sources, sample_weight=weight * scale)
        assert_same_model(model, other)

    def test_equal_weights_are_no_weights(self, class_pool):
        X, y, sources = class_pool()
        model = classifier().fit(X, y, sources=sources)
        other = classifier().fit(X, y, sources=sources, sample_weight=np.full(len(y), 3.0))
        assert_same_model(model, other)

    @pytest.mark.parametrize("discrepancy", validation.DISCREPANCIES)
    def test_rows_of_weight_zero_are_not_there(self, class_pool, discrepancy):
        X, y, sources = class_pool(n_classes=3)
        rng = np.random.default_rng(2)
        weight = rng.uniform(0.5, 2.0, size=len(y)) * (rng.random(len(y)) > 0.2)
        X[weight == 0] = np.nan
        kept = weight > 0
        model = classifier(discrepancy=discrepancy).fit(X, y, sources=sources, sample_weight=weight)
        other = classifier(discrepancy=discrepancy).fit(
            X[kept], y[kept], sources=sources[kept], sample_weight=weight[kept]
        )
        assert_same_model(model, other)
        assert model.source_rows_.tolist() == other.source_rows_.tolist()

    def test_units_of_the_features(self, class_pool):
        X, y, sources = class_pool()
        model = classifier().fit(X, y, sources=sources)
        other = classifier().fit(1e4 * X - 3.0, y, sources=sources)
        np.testing.assert_allclose(
            other.predict_proba(1e4 * X - 3.0), model.predict_proba(X), atol=1e-6
        )

    def test_single_precision(self, class_pool):
        X, y, sources = class_pool()
        double = classifier().fit(X, y, sources=sources)
        single = classifier().fit(X.astype(np.float32), y, sources=sources)
        np.testing.assert_allclose(single.source_weights_, double.source_weights_, atol=1e-3)
        np.testing.assert_allclose(single.predict_proba(X), double.predict_proba(X), atol=1e-3)

    def test_random_state(self, class_pool):
        X, y, sources = class_pool()
        one, two = (classifier().fit(X, y, sources=sources) for _ in range(2))
        np.testing.assert_array_equal(one.coef_, two.coef_)
        np.testing.assert_array_equal(one.discrepancies_, two.discrepancies_)
        other = classifier(random_state=1).fit(X, y, sources=sources)
        assert (one.discrepancies_[1:] != other.discrepancies_[1:]).all()
        parallel = classifier(n_jobs=2).fit(X, y, sources=sources)
        np.testing.assert_array_equal(one.coef_, parallel.coef_)


class TestTradeOff:
    def test_zero_is_the_reference_alone(self, class_pool):
        X, y, sources = class_pool()
        model = classifier(trade_off=0).fit(X, y, sources=sources)
        gold = sources == "gold"
        alone = classifier().fit(X[gold], y[gold], sources=sources[gold])
        assert model.source_weights_.tolist() == [1.0, 0.0, 0.0]
        np.testing.assert_allclose(model.coef_, alone.coef_, rtol=1e-5)
        np.testing.assert_allclose(model.intercept_, alone.intercept_, rtol=1e-5, atol=1e-8)

    def test_infinity_is_all_data(self, class_pool):
        X, y, sources = class_pool()
        model = classifier(trade_off=np.inf).fit(X, y, sources=sources)
        np.testing.assert_allclose(model.source_weights_, [0.2, 0.4, 0.4])
        assert model.cutoff_ == np.inf

    def test_theory(self, class_pool):
        X, y, sources = class_pool()
        model = classifier(trade_off="theory").fit(X, y, sources=sources)
        assert model.trade_off_ == theory_trade_off()

    def test_a_number_is_taken_as_given_even_with_one_source(self, class_pool):
        X, y, names = class_pool({"gold": 40})
        assert classifier(trade_off=0.5).fit(X, y, sources=names).trade_off_ == 0.5
        unnamed = SourceWeightedClassifier(trade_off=0.5, random_state=0)
        assert unnamed.fit(X, y).trade_off_ == 0.5

    def test_the_choice_is_made_on_the_reference(self, class_pool):
        # All others are bad, and there are many of them.
        X, y, sources = class_pool({"gold": 60, "bad": 200})
        model = classifier().fit(X, y, sources=sources)
        assert model.source_weights_[0] > 0.8


class TestScikitLearn:
    def test_clone_and_parameters(self):
        model = classifier(estimator=LogisticRegression(C=3.0), trade_off=2.0)
        copy = clone(model)
        assert copy.get_params(deep=False).keys() == model.get_params(deep=False).keys()
        assert copy.get_params()["estimator__C"] == 3.0
        assert copy.set_params(estimator__C=5.0).estimator.C == 5.0
        assert model.estimator.C == 3.0

    def test_html(self, class_pool):
        X, y, sources = class_pool()
        model = classifier(estimator=LogisticRegression(), trade_off=1.0)
        assert "SourceWeightedClassifier" in model._repr_html_()
        assert "LogisticRegression" in model.fit(X, y, sources=sources)._repr_html_()

    @pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
    def test_feature_names(self, class_pool, frame):
        X, y, sources = class_pool()
        table = frame(dict(zip("abcd", X.T, strict=True)))
        model = classifier().fit(table, y, sources=sources)
        assert model.feature_names_in_.tolist() == list("abcd")
        np.testing.assert_allclose(model.coef_, classifier().fit(X, y, sources=sources).coef_)
        with pytest.raises(ValueError, match="feature names should match"):
            model.predict(frame(dict(zip("abcx", X.T, strict=True))))

    def test_a_new_fit_forgets_the_old_one(self, class_pool):
        X, y, sources = class_pool()
        model = classifier(trade_off=1.0).fit(X, y, sources=sources)
        model.set_params(estimator=LogisticRegression()).fit(X, y, sources=sources)
        assert not hasattr(model, "coef_")
        assert not hasattr(model, "C_")
        model.set_params(estimator=None).fit(X, y, sources=sources)
        assert not hasattr(model, "estimator_")

    def test_the_bound_at_the_fitted_weights(self, class_pool):
        X, y, sources = class_pool()
        model = classifier(trade_off=1.0).fit(X, y, sources=sources)
        bound = model.generalization_bound(delta=0.1, complexity=0.2)
        assert bound.delta == 0.1
        assert bound.complexity_term == pytest.approx(4 * 0.2)
        assert bound.discrepancy_term == pytest.approx(
            2.0 * model.source_weights_ @ model.discrepancies_
        )

    def test_the_bound_speaks_of_models_like_the_fitted_one(self, class_pool):
        X, y, sources = class_pool()
        for unit in (1.0, 1000.0):
            model = classifier(trade_off=1.0).fit(unit * X, y, sources=sources)
            bound = model.generalization_bound(X=unit * X)
            # Whatever the unit of X, the scores are what they were; the intercept is a feature.
            norm = np.hypot(np.linalg.norm(model.coef_), model.intercept_[0])
            radius = np.hypot(np.linalg.norm(unit * X, axis=1).max(), 1.0)
            expected = norm * radius / np.sqrt(model.source_sizes_)
            np.testing.assert_allclose(bound.complexities, expected)
        given = model.generalization_bound(radius=3.0, norm_bound=2.0)
        np.testing.assert_allclose(given.complexities, 6.0 / np.sqrt(model.source_sizes_))

    def test_the_bound_knows_the_sources_by_name(self, class_pool):
        X, y, sources = class_pool()
        model = classifier(trade_off=1.0).fit(X, y, sources=sources)
        draw = {"complexity": "monte-carlo", "X": X, "random_state": 0}
        named = model.generalization_bound(sources=sources, **draw)
        positions = [model.sources_.tolist().index(name) for name in sources]
        numbered = model.generalization_bound(sources=positions, **draw)
        np.testing.assert_array_equal(named.complexities, numbered.complexities)
        with pytest.raises(ValueError, match="no source 'nobody'"):
            model.generalization_bound(sources=np.append(sources[1:], "nobody"), **draw)


@pytest.mark.parametrize("discrepancy", ["plug-in", "cross-fit"])
def test_p_values_that_wait_are_those_of_a_model_that_keeps_no_data(class_pool, discrepancy):
    X, y, sources = class_pool()
    kept, eager = (
        SourceWeightedClassifier(
            reference="gold",
            discrepancy=discrepancy,
            trade_off=1.0,
            random_state=0,
            keep_data=keep,
        ).fit(X, y, sources=sources)
        for keep in (True, False)
    )
    assert np.isfinite(eager.discrepancy_result_.p_values).all()
    np.testing.assert_array_equal(
        kept.discrepancy_result_.p_values, eager.discrepancy_result_.p_values
    )
    np.testing.assert_array_equal(kept.discrepancies_, kept.discrepancy_result_.values)
