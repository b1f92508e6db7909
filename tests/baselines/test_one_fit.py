"""An estimator by itself beside its weighted self."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from sourcewise.baselines import compare
from sourcewise.baselines.one_fit import OneFit


def pool(seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(300, 3))
    y = (X[:, 0] > 0).astype(int)
    sources = np.repeat(["good", "gold", "bad"], [50, 100, 150])
    y[150:] = 1 - y[150:]
    return X, y, sources


@pytest.mark.parametrize("rows", ["reference", "all"])
def test_rows_that_were_asked_for(rows):
    X, y, sources = pool()
    model = OneFit(LogisticRegression(), rows=rows, reference="gold").fit(X, y, sources=sources)
    used = (sources == "gold") | (rows == "all")
    np.testing.assert_allclose(
        model.estimator_.coef_, LogisticRegression().fit(X[used], y[used]).coef_
    )


def test_told_the_sources_it_predicts_as_for_the_reference():
    X, y, sources = pool()
    tree = DecisionTreeClassifier(max_depth=3, random_state=0)
    told = OneFit(tree, rows="told", reference="gold").fit(X, y, sources=sources)
    clean = (X[:, 0] > 0).astype(int)
    assert told.score(X, clean) > 0.95
    assert told.score(X, clean) >= OneFit(tree, reference="gold").fit(X, y, sources=sources).score(
        X, clean
    )


def test_other_rows_are_refused():
    X, y, sources = pool()
    with pytest.raises(ValueError, match="^rows must be one of"):
        OneFit(LogisticRegression(), rows="some", reference="gold").fit(X, y, sources=sources)


def test_an_estimator_is_compared_with_itself():
    X, y, sources = pool()
    tree = DecisionTreeClassifier(max_depth=2)
    found = compare(
        X, y, sources=sources, reference="gold", estimator=tree, cv=3, n_splits=3, random_state=0
    )
    assert found.methods == (
        "sourcewise",
        "linear default",
        "reference only",
        "all data",
        "all data, source as a feature",
    )
    errors = dict(zip(found.methods, found.errors, strict=True))
    assert errors["sourcewise"] < errors["all data"] - 0.1
    assert max(map(len, str(found).splitlines())) <= 80
    two = compare(
        X, y, sources=sources, reference="gold", estimator=tree, methods="all data", random_state=0
    )
    assert two.methods == ("sourcewise", "all data")
    with pytest.raises(ValueError, match="There is no method 'MixMin'"):
        compare(X, y, sources=sources, reference="gold", estimator=tree, methods=["MixMin"])


def number_pool(seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(300, 3))
    sources = np.repeat(["good", "gold", "bad"], [50, 100, 150])
    y = 10.0 + X[:, 0] + 0.1 * rng.normal(size=300)
    y[sources == "bad"] = 20.0 - y[sources == "bad"]
    return X, y, sources


def test_a_regressor_is_compared_with_itself():
    X, y, sources = number_pool()
    found = compare(
        X,
        y,
        sources=sources,
        reference="gold",
        estimator=DecisionTreeRegressor(max_depth=4, random_state=0),
        n_splits=3,
        cv=3,
        random_state=0,
    )
    assert found.methods[1:] == (
        "linear default",
        "reference only",
        "all data",
        "all data, source as a feature",
    )
    errors = dict(zip(found.methods, found.errors, strict=True))
    assert errors["linear default"] < 0.05 < errors["reference only"] < 0.5
    assert errors["sourcewise"] < 0.5 * errors["all data"]
    assert errors["all data, source as a feature"] < errors["all data"]


def test_rows_with_gaps_are_filled_for_the_linear_default_only():
    X, y, sources = pool()
    X[::9, 1] = np.nan
    tree = DecisionTreeClassifier(max_depth=2, random_state=0)
    options = {"sources": sources, "reference": "gold", "n_splits": 2, "random_state": 0}
    found = compare(X, y, estimator=tree, methods=["linear default"], cv=3, **options)
    medians = np.nanmedian(X[sources == "gold"], axis=0)
    filled = compare(
        np.where(np.isnan(X), medians, X),
        y,
        estimator=tree,
        methods=["linear default"],
        cv=3,
        **options,
    )
    # Each fold fills by the medians of the trusted rows that it sees, which are nearly these.
    np.testing.assert_allclose(found.errors[1], filled.errors[1], atol=0.03)


def test_rows_of_strings_have_no_linear_default():
    X, y, sources = pool()
    frame = pd.DataFrame({"side": np.where(X[:, 0] > 0, "left", "right"), "b": X[:, 1]})
    encoded = make_column_transformer((OneHotEncoder(), ["side"]), remainder="passthrough")
    pipe = make_pipeline(encoded, DecisionTreeClassifier(max_depth=2))
    options = {"sources": sources, "reference": "gold", "n_splits": 2, "cv": 3, "random_state": 0}
    found = compare(frame, y, estimator=pipe, **options)
    assert found.methods == (
        "sourcewise",
        "reference only",
        "all data",
        "all data, source as a feature",
    )
    with pytest.raises(ValueError, match="^Column 'side' of X holds text"):
        compare(frame, y, estimator=pipe, methods=["linear default"], **options)
