"""Learners that people use, each by name."""

from __future__ import annotations

import importlib

import numpy as np
import pandas as pd
import pytest
from sklearn.base import is_classifier
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    RandomForestRegressor,
    StackingClassifier,
    VotingClassifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.svm import SVC, SVR

from sourcewise import SourceWeightedClassifier, SourceWeightedRegressor, validation
from sourcewise.baselines import compare
from sourcewise.estimators.fitting import resample

CATBOOST = {"iterations": 10, "verbose": 0, "thread_count": 1, "allow_writing_files": False}
FURTHER = {  # modules that are asked for where they are installed
    "LGBMClassifier": ("lightgbm", {"n_estimators": 10, "verbose": -1, "n_jobs": 1}),
    "LGBMRegressor": ("lightgbm", {"n_estimators": 10, "verbose": -1, "n_jobs": 1}),
    "XGBClassifier": ("xgboost", {"n_estimators": 10, "n_jobs": 1}),
    "XGBRegressor": ("xgboost", {"n_estimators": 10, "n_jobs": 1}),
    "CatBoostClassifier": ("catboost", CATBOOST),
    "CatBoostRegressor": ("catboost", CATBOOST),
}
OURS = [
    ExtraTreesClassifier(n_estimators=10, max_depth=4),
    SVC(),
    MLPClassifier(hidden_layer_sizes=4, solver="lbfgs", max_iter=20),
    ExtraTreesRegressor(n_estimators=10),
    RandomForestRegressor(n_estimators=10),
    MLPRegressor(hidden_layer_sizes=4, solver="lbfgs", max_iter=20),
    SVR(),
]


def assert_bad_source_found(estimator, class_pool, number_pool, **parameters):
    options = {"reference": "gold", "cv": 3, "random_state": 0, **parameters}
    if is_classifier(estimator):
        X, y, sources = class_pool()
        model = SourceWeightedClassifier(estimator, **options)
    else:
        X, y, sources = number_pool()
        model = SourceWeightedRegressor(estimator, **options)
    model.fit(X, y, sources=sources)
    weights = dict(zip(model.sources_.tolist(), model.source_weights_, strict=True))
    assert weights["bad"] < 0.5 * weights["good"]
    assert model.score(X[sources == "good"], y[sources == "good"]) > 0.75
    return model


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("estimator", OURS, ids=lambda e: type(e).__name__)
def test_of_scikit_learn(estimator, class_pool, number_pool):
    assert_bad_source_found(estimator, class_pool, number_pool)


@pytest.mark.parametrize("name", FURTHER)
def test_of_other_packages(name, class_pool, number_pool, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    module, parameters = FURTHER[name]
    pytest.importorskip(module, reason=f"{module} is not installed")
    estimator = getattr(importlib.import_module(module), name)(**parameters)
    assert_bad_source_found(estimator, class_pool, number_pool)
    assert not list(tmp_path.iterdir())  # no diary of the training is left behind


def test_catboost_with_columns_of_categories(class_pool, tmp_path, monkeypatch):
    # It copies the list it is given, and scikit-learn's clone refuses what does.
    monkeypatch.chdir(tmp_path)
    catboost = pytest.importorskip("catboost", reason="catboost is not installed")
    X, y, sources = class_pool({"gold": 40, "good": 80, "bad": 80})
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"]).assign(
        city=np.where(X[:, 0] > 0, "Oslo", "Bergen")
    )
    estimator = catboost.CatBoostClassifier(cat_features=["city"], **CATBOOST)
    model = SourceWeightedClassifier(estimator, reference="gold", cv=3, random_state=0)
    model.fit(frame, y, sources=sources)
    assert model.source_weights_[2] < 0.5 * model.source_weights_[1]
    found = compare(
        frame, y, sources=sources, reference="gold", estimator=estimator, n_splits=2, cv=3
    )
    assert found.methods[1:3] == ("reference only", "all data")


@pytest.fixture
def single_precision(class_pool, number_pool):
    """Pools as networks want them, who do not take double precision."""

    def of(make):
        X, y, sources = make()
        return lambda: (X.astype("f4"), y.astype("f4") if y.dtype == "f8" else y, sources)

    return {"class_pool": of(class_pool), "number_pool": of(number_pool)}


@pytest.mark.parametrize("kind", ["NeuralNetClassifier", "NeuralNetRegressor"])
def test_skorch_draws_rows_by_weight(kind, single_precision):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    skorch = pytest.importorskip("skorch", reason="skorch is not installed")

    class Network(torch.nn.Module):
        """Takes as many columns as there are, so that it can be told the sources."""

        def __init__(self, n_outputs):
            super().__init__()
            hidden, out = torch.nn.LazyLinear(8), torch.nn.Linear(8, n_outputs)
            self.layers = torch.nn.Sequential(hidden, torch.nn.Tanh(), out)

        def forward(self, X):
            return self.layers(X).squeeze(-1)

    classes = kind == "NeuralNetClassifier"
    network = getattr(skorch, kind)(
        Network,
        module__n_outputs=2 if classes else 1,
        **({"criterion": torch.nn.CrossEntropyLoss} if classes else {}),
        max_epochs=20,
        lr=0.1 if classes else 0.01,
        train_split=None,
        verbose=0,
    )
    torch.manual_seed(0)
    model = assert_bad_source_found(network, **single_precision, via="resample")
    X, y, sources = single_precision["class_pool" if classes else "number_pool"]()
    alone = model.at_trade_off(0.0).estimator_
    assert isinstance(alone, type(network)) and alone.predict(X).shape == y.shape
    with pytest.raises(ValueError) as error:
        model.set_params(via="weights").fit(X, y, sources=sources)
    assert str(error.value) == validation.NO_SAMPLE_WEIGHT.format(estimator=kind)


def test_labels_that_are_not_numbered_are_refused_where_numbers_are_needed(class_pool):
    xgboost = pytest.importorskip("xgboost", reason="xgboost is not installed")
    X, y, sources = class_pool(labels=["no", "yes"])
    model = SourceWeightedClassifier(xgboost.XGBClassifier(), reference="gold")
    with pytest.raises(ValueError) as error:
        model.fit(X, y, sources=sources)
    assert str(error.value) == validation.LABELS_NOT_NUMBERED.format(
        estimator="XGBClassifier", labels="'no', 'yes'"
    )


@pytest.mark.parametrize("kind", [VotingClassifier, StackingClassifier])
def test_parts_that_are_handed_no_weights(kind, class_pool):
    X, y, sources = class_pool()
    estimator = kind([("one", LogisticRegression())])
    with pytest.raises(ValueError) as error:
        SourceWeightedClassifier(estimator, reference="gold").fit(X, y, sources=sources)
    assert str(error.value) == validation.PARTS_WITHOUT_WEIGHT.format(estimator=kind.__name__)


@pytest.mark.parametrize(
    "estimator",
    [
        KNeighborsClassifier(),
        VotingClassifier([("one", LogisticRegression())], voting="soft"),
        KNeighborsRegressor(),
    ],
    ids=lambda e: type(e).__name__,
)
def test_rows_are_drawn_by_weight_for_those_that_take_none(estimator, class_pool, number_pool):
    model = assert_bad_source_found(estimator, class_pool, number_pool, via="resample")
    assert not hasattr(model.at_trade_off(1.0).estimator_, "sample_weight")


def test_draws_are_as_even_as_can_be():
    weights = np.random.default_rng(0).uniform(0.0, 3.0, size=200)
    counts = np.bincount(resample(weights, 0), minlength=200)
    expected = weights * round(weights.sum()) / weights.sum()
    assert (np.abs(counts - expected) < 1.0).all()
    assert counts.sum() == round(weights.sum())
    np.testing.assert_array_equal(resample(np.ones(50), 3), np.arange(50))


def test_another_way_is_refused(class_pool):
    X, y, sources = class_pool()
    with pytest.raises(ValueError) as error:
        SourceWeightedClassifier(LogisticRegression(), reference="gold", via="luck").fit(
            X, y, sources=sources
        )
    assert str(error.value) == validation.BAD_VIA.format(value="luck")
