"""A fit to sources elsewhere is the fit to their rows."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pandas
import pytest
from sklearn.linear_model import LogisticRegression
from sources_elsewhere import Elsewhere
from test_invariance import assert_same, unequal

import sourcewise as sw
from sourcewise import state, validation


def model_for(kind, **options):
    make = sw.SourceWeightedRegressor if kind == "regression" else sw.SourceWeightedClassifier
    return make(reference="s9", random_state=0, **options)


@pytest.fixture(scope="module")
def fitted():
    """Fit a model of two classes to a frame, and another to the same rows elsewhere."""
    X, y, source, _, _ = unequal("two classes")
    X = pandas.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])
    y = np.where(y == 1, "yes", "no")
    here = model_for("").fit(X, y, sources=source)
    return X, y, source, here, model_for("").fit_sources(Elsewhere(X, y, source))


@pytest.mark.parametrize("kind", ["two classes", "regression", "sample weights", "wide"])
def test_the_result_is_that_of_all_rows_at_hand(kind):
    X, y, source, _, weight = unequal(kind)
    here = model_for(kind).fit(X, y, sources=source, sample_weight=weight)
    there = model_for(kind).fit_sources(Elsewhere(X, y, source, weight, per_piece=3))
    assert there.sources_.tolist() == here.sources_.tolist()
    assert there.reference_index_ == here.reference_index_
    assert_same(here, there)
    np.testing.assert_allclose(there.source_sizes_, here.source_sizes_)


@pytest.mark.parametrize(
    "options",
    [
        {"discrepancy": "local"},
        {"discrepancy": "cross-fit"},
        {"discrepancy": "plug-in"},
        {"protocol": "paper"},
        {"trade_off": 2.0},
        {"trade_off": float("inf")},
        {"keep_data": False},
    ],
)
def test_the_result_is_the_same_under_any_options(options):
    X, y, source, _, _ = unequal("two classes")
    here = model_for("", **options).fit(X, y, sources=source)
    assert_same(here, model_for("", **options).fit_sources(Elsewhere(X, y, source)))


def test_all_that_a_fitted_model_offers_is_there(fitted, tmp_path):
    X, y, _, here, there = fitted
    assert there.feature_names_in_.tolist() == list(X.columns)
    assert there.predict(X).tolist() == here.predict(X).tolist()
    np.testing.assert_allclose(there.predict_proba(X), here.predict_proba(X), atol=1e-6)
    assert [row.reason for row in there.report().sources] == [
        row.reason for row in here.report().sources
    ]
    assert str(there.report()).startswith(str(here.report()))  # and why no copies were looked for
    known = here.reference_adequacy()
    classes = tuple(part for part in known.parts if part.of == "class")
    assert len(known.parts) > len(classes)  # regions are found where the rows are
    assert str(there.reference_adequacy()) == str(replace(known, parts=classes))
    sw.save(there, tmp_path / "model.skops")
    assert sw.load(tmp_path / "model.skops").predict(X).tolist() == here.predict(X).tolist()
    assert pickle.loads(pickle.dumps(there)).predict(X).tolist() == here.predict(X).tolist()


@pytest.mark.parametrize("trade_off", [0.0, 3.0, float("inf")])
def test_another_trade_off_needs_no_new_look(fitted, trade_off):
    *_, here, there = fitted
    assert_same(here.at_trade_off(trade_off), there.at_trade_off(trade_off))


def test_the_reference_alone_is_a_fit_too():
    X, y, source, _, _ = unequal("two classes")
    own = source == "s9"
    model = model_for("").fit_sources(Elsewhere(X[own], y[own], source[own]))
    assert model.source_weights_.tolist() == [1.0]
    assert_same(model_for("").fit(X[own], y[own], sources=source[own]), model)


def test_what_rows_here_are_needed_for_is_refused_in_words(fitted, tmp_path):
    X, y, source, _, there = fitted
    for model, call, sentence in (
        (there, lambda m: m.add_source(X[:5], y[:5], "new"), validation.NO_ADDING_ELSEWHERE),
        (there, lambda m: sw.save(m, tmp_path / "m", include_data=True), state.NOT_HERE),
        (
            model_for("", estimator=LogisticRegression()),
            lambda m: m.fit_sources(Elsewhere(X, y, source)),
            validation.ROWS_ELSEWHERE.format(estimator="LogisticRegression"),
        ),
        (
            model_for("", protocol="paper"),
            lambda m: m.fit_sources(Elsewhere(X.assign(one=1.0), y, source)),
            validation.CONSTANT_COLUMN,
        ),
    ):
        with pytest.raises(ValueError) as error:
            call(model)
        assert str(error.value) == sentence
    assert not list(tmp_path.iterdir())


def test_a_mistake_in_rows_elsewhere_names_their_source_and_leaves_the_model_alone(fitted):
    X, y, source, here, _ = fitted
    model = model_for("").fit_sources(Elsewhere(X, y, source))
    before = model.source_weights_
    hole = X.copy()
    hole.loc[source == "s4", "x3"] = np.nan
    infinite = unequal("regression")[1]
    infinite[source == "s2"] = np.inf
    unknown = np.where(source == "s7", "perhaps", y)
    for broken, model_, sentence in (
        (Elsewhere(hole, y, source), model, "Source 's4' has NaN in column 'x3' (40 rows)"),
        (Elsewhere(X, unknown, source), model, "Source 's7' has the label 'perhaps'"),
        (Elsewhere(X, infinite, source), model_for("regression"), "Source 's2' has infinity in"),
        (Elsewhere(X, y, source, -np.ones(len(y))), model, "Sample weights must not be negative"),
    ):
        with pytest.raises(ValueError, match=sentence.replace("(", r"\(").replace(")", r"\)")):
            model_.fit_sources(broken)
    assert model.source_weights_ is before


def test_what_travels_to_the_rows_holds_numbers_and_names_only(fitted):
    X, y, source, *_ = fitted
    elsewhere = Elsewhere(X, y, source)
    model_for("").fit_sources(elsewhere)
    rules = elsewhere.rules
    parts = {**vars(rules), **vars(rules.features)}
    del parts["features"]
    plain = (np.ndarray, float, int, str, tuple, bool, type(None))
    assert all(isinstance(part, plain) for part in parts.values())
    reference = X[source == "s9"].to_numpy()
    assert not any(
        isinstance(part, np.ndarray) and part.shape == reference.shape for part in parts.values()
    )
