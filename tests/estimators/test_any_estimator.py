"""Any scikit-learn estimator that takes sample_weight will do; others are refused in words."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.compose import make_column_transformer
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
)
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from sourcewise import SourceWeightedClassifier, SourceWeightedRegressor, validation
from sourcewise.core.choices import DEFAULT
from sourcewise.estimators.pool import Options
from sourcewise.estimators.task import Classes
from sourcewise.estimators.wrapped import EstimatorFamily, Job

CLASSIFIERS = [
    HistGradientBoostingClassifier(max_iter=5, min_samples_leaf=5),
    RandomForestClassifier(n_estimators=10, max_depth=4),
    make_pipeline(StandardScaler(), LogisticRegression()),
    make_pipeline(StandardScaler(), make_pipeline(StandardScaler(), LogisticRegression())),
    RidgeClassifier(),
]
REGRESSORS = [HistGradientBoostingRegressor(max_iter=20, min_samples_leaf=5), Ridge()]


def classifier(estimator, **parameters):
    return SourceWeightedClassifier(estimator, reference="gold", cv=3, random_state=0, **parameters)


def weights_of(model):
    return dict(zip(model.sources_.tolist(), model.source_weights_, strict=True))


def assert_refused(model, X, y, sentence, sources=None):
    with pytest.raises(ValueError) as error:
        model.fit(X, y, sources=sources)
    assert str(error.value) == sentence


@pytest.mark.parametrize("routing", [False, True])
@pytest.mark.parametrize("estimator", CLASSIFIERS, ids=lambda e: type(e).__name__)
def test_classifiers_find_the_bad_source(class_pool, estimator, routing):
    X, y, sources = class_pool(labels=["no", "yes"])
    with config_context(enable_metadata_routing=routing):
        model = classifier(estimator).fit(X, y, sources=sources)
    weights = weights_of(model)
    assert weights["bad"] < 0.5 * weights["good"]
    assert set(model.predict(X)) == {"no", "yes"}
    assert model.score(X[sources == "good"], y[sources == "good"]) > 0.8


# SVC(probability=True) is deprecated since scikit-learn 1.9 but still taken by the range of
# versions we support, and an estimator that calibrates within its own fit is worth a test.
@pytest.mark.filterwarnings("ignore:The `probability` parameter:FutureWarning")
def test_a_support_vector_machine_with_probabilities(class_pool):
    X, y, sources = class_pool()
    model = classifier(SVC(probability=True), trade_off="theory").fit(X, y, sources=sources)
    weights = weights_of(model)
    assert weights["bad"] < weights["good"]
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)


@pytest.mark.parametrize("discrepancy", validation.DISCREPANCIES)
@pytest.mark.parametrize("estimator", REGRESSORS, ids=lambda e: type(e).__name__)
def test_regressors_find_the_bad_source(number_pool, estimator, discrepancy):
    X, y, sources = number_pool()
    model = SourceWeightedRegressor(
        estimator, reference="gold", discrepancy=discrepancy, cv=3, random_state=0
    ).fit(X, y, sources=sources)
    weights = weights_of(model)
    assert weights["bad"] < 0.5 * weights["good"]
    assert model.score(X[sources == "good"], y[sources == "good"]) > 0.8


@pytest.mark.parametrize("discrepancy", ["cross-fit", "plug-in"])
def test_linear_discrepancies_do_not_depend_on_the_estimator(number_pool, discrepancy):
    X, y, sources = number_pool()
    options = {"reference": "gold", "discrepancy": discrepancy, "random_state": 0}
    own = SourceWeightedRegressor(Ridge(), **options).fit(X, 1000.0 * y, sources=sources)
    default = SourceWeightedRegressor(**options).fit(X, y, sources=sources)
    np.testing.assert_allclose(own.discrepancies_, default.discrepancies_, rtol=1e-6)


def test_a_linear_discrepancy_needs_numbers(class_pool):
    X, y, sources = class_pool()
    frame = pd.DataFrame({"city": np.where(X[:, 0] > 0, "Oslo", "Bergen")})
    pipe = make_pipeline(OneHotEncoder(), LogisticRegression())
    model = classifier(pipe, discrepancy="plug-in")
    with pytest.raises(ValueError, match="^discrepancy='plug-in' compares rows of numbers"):
        model.fit(frame, y, sources=sources)


def test_estimators_that_ignore_weights_are_refused(class_pool):
    X, y, sources = class_pool()
    sentence = validation.NO_SAMPLE_WEIGHT.format(estimator="KNeighborsClassifier")
    assert_refused(classifier(KNeighborsClassifier()), X, y, sentence, sources)
    pipe = make_pipeline(StandardScaler(), KNeighborsClassifier())
    assert_refused(classifier(pipe), X, y, sentence, sources)
    assert_refused(
        SourceWeightedRegressor(KNeighborsRegressor()),
        X,
        y,
        validation.NO_SAMPLE_WEIGHT.format(estimator="KNeighborsRegressor"),
    )


def test_a_search_belongs_around_the_model(class_pool):
    X, y, sources = class_pool()
    search = GridSearchCV(DecisionTreeClassifier(), {"max_depth": [1, 2]})
    sentence = validation.SEARCH_WITHIN.format(
        estimator="GridSearchCV", model="SourceWeightedClassifier"
    )
    assert_refused(classifier(search), X, y, sentence, sources)


def test_the_wrong_kind_of_estimator_is_refused(class_pool):
    X, y, sources = class_pool()
    sentence = validation.CLASSIFIER_WANTED.format(estimator="Ridge")
    assert_refused(classifier(Ridge()), X, y, sentence, sources)
    sentence = validation.REGRESSOR_WANTED.format(estimator="LogisticRegression")
    assert_refused(SourceWeightedRegressor(LogisticRegression()), X, y, sentence)


def test_frames_with_strings(class_pool):
    X, y, sources = class_pool()
    frame = pd.DataFrame(X[:, 1:], columns=["a", "b", "c"])
    frame["city"] = np.where(X[:, 0] > 0, "Oslo", "Bergen")
    pipe = make_pipeline(
        make_column_transformer(
            (OneHotEncoder(handle_unknown="ignore"), ["city"]), (StandardScaler(), ["a", "b", "c"])
        ),
        LogisticRegression(),
    )
    model = classifier(pipe).fit(frame, y, sources=sources)
    assert model.feature_names_in_.tolist() == ["a", "b", "c", "city"]
    weights = weights_of(model)
    assert weights["bad"] < weights["good"]
    assert model.score(frame[sources == "good"], y[sources == "good"]) > 0.8


def test_rows_of_text(class_pool):
    X, y, sources = class_pool()
    texts = ["good fine" if v > 0 else "poor broken" for v in X[:, 0]]
    model = classifier(make_pipeline(CountVectorizer(), LogisticRegression()))
    model.fit(texts, y, sources=sources)
    weights = weights_of(model)
    assert weights["bad"] < weights["good"]
    assert model.predict(["poor poor", "fine"]).tolist() == [0, 1]


def test_sparse_rows(class_pool):
    X, y, sources = class_pool()
    dense = classifier(LogisticRegression()).fit(X, y, sources=sources)
    sparse = classifier(LogisticRegression()).fit(scipy.sparse.coo_array(X), y, sources=sources)
    np.testing.assert_allclose(sparse.source_weights_, dense.source_weights_, rtol=1e-4)


def test_missing_values_are_the_estimators_business(class_pool):
    X, y, sources = class_pool()
    X[::7, 2] = np.nan
    model = classifier(HistGradientBoostingClassifier(max_iter=5)).fit(X, y, sources=sources)
    weights = weights_of(model)
    assert weights["bad"] < weights["good"]
    assert model.predict(X).shape == y.shape


def test_missing_values_cannot_be_compared_linearly(class_pool):
    X, y, sources = class_pool()
    X[np.flatnonzero(sources == "good")[:3], 2] = np.nan
    model = classifier(HistGradientBoostingClassifier(max_iter=5), discrepancy="cross-fit")
    sentence = validation.NOT_FINITE.format(source="good", what="NaN", column=2, count=3)
    assert_refused(model, X, y, sentence, sources)


def test_a_source_with_one_class_where_the_estimator_needs_two(class_pool):
    X, y, sources = class_pool({"gold": 40, "good": 60, "mute": 60})
    y[sources == "mute"] = 1
    with pytest.raises(ValueError, match="class"):
        LogisticRegression().fit(X[sources == "mute"], y[sources == "mute"])
    model = classifier(LogisticRegression()).fit(X, y, sources=sources)
    weights = weights_of(model)
    assert weights["mute"] < weights["good"]


def test_class_weights_by_label(class_pool):
    X, y, sources = class_pool(labels=["no", "yes"])
    estimator = LogisticRegression(class_weight={"no": 1.0, "yes": 3.0})
    model = classifier(estimator).fit(X, y, sources=sources)
    plain = classifier(LogisticRegression()).fit(X, y, sources=sources)
    assert (model.predict(X) == "yes").sum() > (plain.predict(X) == "yes").sum()


def test_a_rare_class_may_be_missing_from_a_fold(class_pool):
    X, y, sources = class_pool(labels=["no", "yes"])
    y = y.astype(object)
    y[np.flatnonzero(sources == "gold")[0]] = "rare"
    y[np.flatnonzero(sources == "good")[0]] = "rare"
    model = classifier(DecisionTreeClassifier(max_depth=3)).fit(X, y, sources=sources)
    assert model.classes_.tolist() == ["no", "rare", "yes"]
    assert model.predict_proba(X).shape == (len(X), 3)


def test_no_probabilities_where_the_estimator_has_none(class_pool):
    X, y, sources = class_pool()
    assert not hasattr(classifier(RidgeClassifier()), "predict_proba")
    assert hasattr(classifier(LogisticRegression()), "predict_proba")
    assert hasattr(classifier(None), "predict_proba")
    model = classifier(RidgeClassifier()).fit(X, y, sources=sources)
    assert not hasattr(model, "predict_proba")


def test_trade_off_zero_trains_on_the_reference_alone(class_pool):
    X, y, sources = class_pool()
    model = classifier(LogisticRegression(tol=1e-8), trade_off=0).fit(X, y, sources=sources)
    gold = sources == "gold"
    alone = LogisticRegression(tol=1e-8).fit(X[gold], y[gold])
    np.testing.assert_allclose(model.estimator_.coef_, alone.coef_, rtol=1e-5)


class Counting(ClassifierMixin, BaseEstimator):
    """Counts its fits, and keeps the weights of each."""

    fits: list[bytes] = []

    def fit(self, X, y, sample_weight=None):
        type(self).fits.append(np.round(sample_weight, 9).tobytes() + X.tobytes())
        self.model_ = DecisionTreeClassifier(max_depth=1).fit(X, y, sample_weight)
        self.classes_ = self.model_.classes_
        return self

    def predict(self, X):
        return self.model_.predict(X)

    def predict_proba(self, X):
        return self.model_.predict_proba(X)


def test_the_reference_is_fitted_once_for_discrepancies_and_average(class_pool):
    Counting.fits = []
    X, y, sources = class_pool({"gold": 30, "good": 30})
    classifier(Counting(), trade_off=0.0).fit(X, y, sources=sources)
    assert len(Counting.fits) == 3 + 1  # without each fold, and the final one

    Counting.fits = []
    model = classifier(Counting()).fit(X, y, sources=sources)
    assert len(Counting.fits) == len(set(Counting.fits))
    # Three members without each of three folds, and those of the average once more.
    members = [member for member in model.estimator_.members if member.name != "linear default"]
    assert len(Counting.fits) == 3 * 3 + len(members)


def test_at_most_eighteen_fits_however_many_sources(class_pool):
    Counting.fits = []
    X, y, sources = class_pool({"gold": 40} | {f"source {k}": 10 for k in range(20)})
    SourceWeightedClassifier(Counting(), reference="gold", random_state=0).fit(
        X, y, sources=sources
    )
    assert len(Counting.fits) <= 18


@pytest.mark.parametrize("n_jobs", [2])
def test_parallel_fits_change_nothing(class_pool, n_jobs):
    X, y, sources = class_pool()
    forest = RandomForestClassifier(n_estimators=5, max_depth=3)
    one = classifier(forest).fit(X, y, sources=sources)
    two = classifier(forest, n_jobs=n_jobs).fit(X, y, sources=sources)
    np.testing.assert_array_equal(one.source_weights_, two.source_weights_)
    np.testing.assert_array_equal(one.predict_proba(X), two.predict_proba(X))


def test_models_stay_behind_when_a_job_goes_to_another_process():
    # They grow in number while jobs are sent, and a dictionary that grows cannot be written.
    X, labels = np.eye(4), np.array([0, 1, 0, 1])
    task = Classes(np.arange(2), np.array([2, 2]))
    options = Options("reference", task, 0, DEFAULT, estimator=LogisticRegression())
    family = EstimatorFamily(options, X, labels)
    family.fit_all([Job(np.arange(4), labels, np.ones(4))])
    sent = pickle.loads(pickle.dumps(family))
    assert len(family._known) == 1 and not sent._known


def test_the_given_estimator_is_not_touched(class_pool):
    X, y, sources = class_pool()
    forest = RandomForestClassifier(n_estimators=3)
    model = classifier(forest).fit(X, y, sources=sources)
    assert forest.random_state is None
    assert not hasattr(forest, "estimators_")
    fitted = model.at_trade_off(1.0).estimator_
    assert fitted.random_state is not None
