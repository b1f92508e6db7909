"""One fit of an estimator of the user's own."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
from sklearn.compose import make_column_transformer
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression, QuantileRegressor, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from sourcewise.estimators.fitting import (
    ToldSources,
    aims_as_default,
    beside,
    coarse,
    fit_told,
    fit_weighted,
    with_coarse_values,
)
from sourcewise.estimators.rows import FilledRows


def rows(n=400, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, (X[:, 0] + 0.3 * rng.normal(size=n) > 0).astype(int), rng.uniform(0.5, 2.0, size=n)


def test_coarse_values_are_bins_in_order():
    values = np.random.default_rng(0).normal(size=5000)
    values[::50] = np.nan
    found = coarse(values, 255)
    known = np.isfinite(values)
    np.testing.assert_array_equal(np.isnan(found), ~known)
    distinct, counts = np.unique(found[known], return_counts=True)
    assert len(distinct) == 255
    assert counts.max() <= counts.min() + 1
    order = np.argsort(values[known])
    assert (np.diff(found[known][order]) >= 0).all()
    np.testing.assert_array_equal(coarse(values[:200], 255), values[:200])


def test_columns_that_are_no_numbers_stay():
    frame = pd.DataFrame({"a": np.linspace(0, 1, 300), "b": ["x"] * 300, "c": range(300)})
    found = with_coarse_values(frame, 10)
    assert found["a"].nunique() == 10
    pd.testing.assert_frame_equal(found[["b", "c"]], frame[["b", "c"]])


@pytest.mark.parametrize("piped", [False, True])
def test_boosting_on_coarse_values_is_boosting(piped):
    X, y, weight = rows(900)
    boosting = HistGradientBoostingClassifier(max_iter=20, random_state=0)
    model = fit_weighted(
        make_pipeline(StandardScaler(), boosting) if piped else boosting, X, y, weight, 0
    )
    direct = HistGradientBoostingClassifier(max_iter=20, random_state=0)
    direct.fit(X, y, sample_weight=weight)
    X_new = rows(500, seed=1)[0]
    off = np.abs(model.predict_proba(X_new) - direct.predict_proba(X_new))
    assert np.median(off) < 0.02


def test_equal_weights_are_left_out_for_boosting():
    X, y, _ = rows(600)
    boosting = HistGradientBoostingClassifier(max_iter=5, random_state=0)
    found = fit_weighted(boosting, X, y, np.ones(600), 0)
    expected = HistGradientBoostingClassifier(max_iter=5, random_state=0).fit(X, y)
    np.testing.assert_array_equal(found.predict_proba(X), expected.predict_proba(X))


def test_a_model_told_the_sources_predicts_as_for_the_reference():
    X, y, weight = rows()
    told = np.repeat([[0.0], [1.0]], 200, axis=0)
    y[200:] = 1 - y[200:]  # the source has it the other way round
    tree = fit_told(DecisionTreeClassifier(max_depth=3), X, y, weight, told, 0)
    X_new, y_new, _ = rows(seed=1)
    assert np.mean(tree.predict(X_new) == y_new) > 0.8
    by_hand = tree.learner.predict_proba(np.column_stack([X_new, np.zeros(400)]))
    np.testing.assert_array_equal(tree.predict_proba(X_new), by_hand)


def test_in_a_pipeline_the_sources_come_after_the_transformers():
    X, y, weight = rows()
    told = np.repeat([[0.0], [1.0]], 200, axis=0)
    frame = pd.DataFrame({"a": X[:, 0], "town": np.where(X[:, 1] > 0, "Oslo", "Bergen")})
    columns = make_column_transformer((OneHotEncoder(), ["town"]), remainder="passthrough")
    inner = make_pipeline(StandardScaler(with_mean=False), LogisticRegression())
    model = fit_told(make_pipeline(columns, inner), frame, y, weight, told, 0)
    assert model.learner.coef_.shape == (1, 4)
    assert model.predict(frame).shape == (400,)
    texts = ["good" if v > 0 else "bad" for v in X[:, 0]]
    model = fit_told(
        make_pipeline(CountVectorizer(), LogisticRegression()), texts, y, weight, told, 0
    )
    assert model.learner.coef_.shape == (1, 3)
    assert model.predict(["good", "bad"]).tolist() == [1, 0]


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("monotonic_cst", [1, 0, 0]),
        ("monotonic_cst", np.array([0, -1, 0])),
        ("categorical_features", [False, False, True]),
        ("categorical_features", [0, 1, 2]),
    ],
    ids=str,
)
def test_what_is_said_of_every_column_is_said_of_the_sources_too(parameter, value):
    X, y, weight = rows(d=3)
    X = np.round(np.abs(X))
    told = np.repeat([[0.0], [1.0]], 200, axis=0)
    boosting = HistGradientBoostingClassifier(max_iter=5, **{parameter: value})
    model = fit_told(boosting, X, y, weight, told, 0)
    assert isinstance(model, ToldSources)
    # The user's own is left as it is.
    np.testing.assert_array_equal(getattr(boosting, parameter), value)


class FourColumns(LogisticRegression):
    """Takes single precision and just so many columns, as a network does."""

    def fit(self, X, y, sample_weight=None):
        if X.shape[1] != 4 or X.dtype != np.float32:
            raise RuntimeError("shapes cannot be multiplied")
        return super().fit(X, y, sample_weight)


def test_an_estimator_of_just_so_many_columns_is_not_told():
    X, y, weight = rows(d=4)
    X = X.astype(np.float32)
    assert beside(X, np.zeros((400, 2))).dtype == np.float32
    model = fit_told(FourColumns(), X, y, weight, np.zeros((400, 2)), 0)
    untold = fit_weighted(FourColumns(), X, y, weight, 0)
    np.testing.assert_array_equal(model.predict_proba(X), untold.predict_proba(X))
    with pytest.raises(RuntimeError, match="^shapes"):
        fit_told(FourColumns(), X[:, :3], y, weight, np.zeros((400, 2)), 0)


def test_a_classifier_without_probabilities_has_none_when_told():
    X, y, weight = rows()
    told = np.zeros((400, 1))
    assert not hasattr(fit_told(SVC(), X, y, weight, told, 0), "predict_proba")
    assert hasattr(fit_told(LogisticRegression(), X, y, weight, told, 0), "predict_proba")


def test_columns_beside_rows_of_any_kind():
    X, told = np.arange(6.0).reshape(3, 2), np.ones((3, 2))
    assert beside(X, told).tolist() == [[0, 1, 1, 1], [2, 3, 1, 1], [4, 5, 1, 1]]
    sparse = beside(scipy.sparse.csr_matrix(X), told)
    np.testing.assert_array_equal(sparse.toarray(), beside(X, told))
    for kind in (pd.DataFrame, pl.DataFrame):
        frame = kind({"a": [1, 2, 3], "source_1": ["x", "y", "z"]})
        found = beside(frame, told)
        assert list(found.columns) == ["a", "source_1", "_source_0", "_source_1"]
        assert list(frame.columns) == ["a", "source_1"]
    assert beside(["a text", "another"], told[:2]) is None
    assert beside(np.array(["a text", "another"]), told[:2]) is None


@pytest.mark.parametrize(
    ("estimator", "alike"),
    [
        (LogisticRegression(), True),
        (make_pipeline(StandardScaler(), RandomForestClassifier()), True),
        (make_pipeline(StandardScaler(), RandomForestClassifier(class_weight="balanced")), False),
        (HistGradientBoostingRegressor(), True),
        (HistGradientBoostingRegressor(loss="quantile", quantile=0.9), False),
        (HistGradientBoostingRegressor(loss="poisson"), False),
        (RandomForestRegressor(criterion="absolute_error"), False),
        (QuantileRegressor(), False),
        (Ridge(), True),
    ],
    ids=str,
)
def test_whether_an_average_with_the_default_learner_means_the_same(estimator, alike):
    assert aims_as_default(estimator) == alike


def test_gaps_are_filled_by_the_reference():
    X = np.array([[1.0, np.nan], [3.0, np.nan], [np.inf, 5.0], [1e200, np.nan]])
    filled = FilledRows.learn(X, np.array([0, 1]))
    assert filled.medians.tolist() == [2.0, 0.0]
    assert filled(X).tolist() == [[1.0, 0.0], [3.0, 0.0], [2.0, 5.0], [2.0, 0.0]]
    sparse = filled(scipy.sparse.csr_matrix(np.array([[np.nan, 0.0], [0.0, 4.0]])))
    assert sparse.toarray().tolist() == [[2.0, 0.0], [0.0, 4.0]]
    assert FilledRows.learn(["a text"], np.array([0])) is None
    assert FilledRows.learn(pd.DataFrame({"a": ["x", "y"]}), np.array([0])) is None
