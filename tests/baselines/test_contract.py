"""What every baseline promises."""

import inspect
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import sklearn
from baseline_pools import make_pool
from sklearn.base import clone
from sklearn.model_selection import cross_val_score

from sourcewise import ReferenceKFold, SourceWeightedClassifier, baselines, load, save
from sourcewise.baselines import (
    AllData,
    ComponentMedian,
    FLTrust,
    MixMin,
    Oracle,
    PairwiseFilter,
    ProbabilityMedian,
    ReferenceOnly,
    RobustLogistic,
    fit_together,
)
from sourcewise.baselines.base import Baseline
from sourcewise.core import choices


@pytest.fixture
def pool():
    return make_pool


CLASSES = [getattr(baselines, name) for name in baselines.__all__]
CLASSES = [each for each in CLASSES if isinstance(each, type) and issubclass(each, Baseline)]


def make(each, **options):
    return each(reference="gold", random_state=0, **options)


each_class = pytest.mark.parametrize("each", CLASSES)
each_protocol = pytest.mark.parametrize("protocol", [None, "paper"])


@each_class
def test_help_describes_every_parameter_and_fitted_attribute(each, pool):
    X, y, sources = pool()
    model = make(each).fit(X, y, sources=sources)
    shown = inspect.getdoc(each)
    parameters, attributes = shown.split("Parameters\n")[1].split("Attributes\n")
    of_input = {"n_features_in_", "reference_index_"}
    fitted = {name for name in vars(model) if name.endswith("_")} - of_input
    for text, wanted in [(parameters, model.get_params()), (attributes, fitted)]:
        entries = re.findall(r"^(\w+(?:, \w+)*)(?: :|$)", text, flags=re.MULTILINE)
        described = {name for entry in entries for name in entry.split(", ")}
        assert set(wanted) <= described
    assert "%(" not in shown


@each_class
@each_protocol
@pytest.mark.parametrize("n_classes", [2, 3])
def test_learns_from_good_sources(each, protocol, n_classes, pool):
    X, y, sources = pool({"gold": 80, "good": 150, "fine": 150}, n_classes=n_classes)
    model = make(each, protocol=protocol).fit(X, y, sources=sources)
    test = pool({"gold": 400}, n_classes=n_classes, seed=1)
    assert model.score(test.X, test.y) > 0.75
    probabilities = model.predict_proba(test.X)
    assert probabilities.shape == (400, n_classes)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    assert model.sources_.tolist() == ["gold", "good", "fine"]


@each_class
@each_protocol
def test_a_source_with_a_single_class(each, protocol, pool):
    X, y, sources = pool({"gold": 60, "good": 80, "fine": 80, "one": 30})
    y[sources == "one"] = 1
    model = make(each, protocol=protocol).fit(X, y, sources=sources)
    assert np.isfinite(model.predict_proba(X)).all()


@each_class
@each_protocol
def test_a_source_with_constant_features(each, protocol, pool):
    X, y, sources = pool()
    X[sources == "fine"] = 3.0
    model = make(each, protocol=protocol).fit(X, y, sources=sources)
    assert np.isfinite(model.predict_proba(X)).all()


@each_class
@each_protocol
def test_two_sources_one_source_and_no_sources(each, protocol, pool):
    X, y, sources = pool({"gold": 60, "good": 60})
    model = make(each, protocol=protocol).fit(X, y, sources=sources)
    assert model.score(X, y) > 0.7
    trusted = sources == "gold"
    named = clone(model).fit(X[trusted], y[trusted], sources=sources[trusted])
    with pytest.warns(UserWarning, match="No sources were given"):
        alone = clone(model).fit(X[trusted], y[trusted])
    np.testing.assert_allclose(named.predict_proba(X), alone.predict_proba(X))
    if each not in (ComponentMedian, ProbabilityMedian, FLTrust):
        assert alone.score(X, y) > 0.7


@each_class
def test_a_source_of_one_row(each, pool):
    X, y, sources = pool({"gold": 60, "good": 60, "tiny": 1})
    assert make(each).fit(X, y, sources=sources).score(X, y) > 0.7


@each_class
def test_the_order_of_sources_does_not_matter(each, pool):
    X, y, sources = pool()
    one = make(each).fit(X, y, sources=sources)
    kept = np.concatenate([np.flatnonzero(sources == s) for s in ["fine", "gold", "bad", "good"]])
    two = make(each).fit(X[kept], y[kept], sources=sources[kept])
    np.testing.assert_allclose(one.predict_proba(X), two.predict_proba(X), atol=2e-3)


@each_class
def test_frames_words_and_names(each, pool):
    X, y, sources = pool()
    frame = pd.DataFrame(X, columns=list("abcd"))
    words = np.array(["no", "yes"])[y]
    model = make(each).fit(frame, words, sources=pd.Series(sources))
    assert model.classes_.tolist() == ["no", "yes"]
    assert set(model.predict(frame)) <= {"no", "yes"}
    assert model.feature_names_in_.tolist() == list("abcd")
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame.rename(columns={"a": "z"}))


@each_class
def test_bad_input_leaves_a_fitted_model_as_it_was(each, pool):
    X, y, sources = pool()
    model = make(each).fit(X, y, sources=sources)
    before = model.predict_proba(X)
    with pytest.raises(ValueError, match="The reference 'gold' is not among the sources"):
        model.fit(X, y, sources=np.full(len(y), "other"))
    with pytest.raises(ValueError, match="cv must be a whole number"):
        model.set_params(cv=1).fit(X, y, sources=sources)
    with pytest.raises(ValueError, match="protocol must be None or 'paper'"):
        model.set_params(cv=5, protocol="text").fit(X, y, sources=sources)
    np.testing.assert_array_equal(model.predict_proba(X), before)


@each_class
def test_sample_weights_of_zero_leave_rows_out(each, pool):
    X, y, sources = pool()
    weight = np.ones(len(y))
    weight[::9] = 0.0
    kept = weight > 0
    one = make(each).fit(X, y, sources=sources, sample_weight=weight)
    two = make(each).fit(X[kept], y[kept], sources=sources[kept])
    np.testing.assert_allclose(one.predict_proba(X), two.predict_proba(X), atol=1e-6)


@each_class
def test_sources_are_routed_without_asking(each, pool):
    X, y, sources = pool()
    with sklearn.config_context(enable_metadata_routing=True):
        scores = cross_val_score(
            make(each), X, y, cv=ReferenceKFold(3, reference="gold"), params={"sources": sources}
        )
    assert len(scores) == 3


@each_class
def test_save_and_load(each, pool, tmp_path):
    X, y, sources = pool()
    model = make(each).fit(X, y, sources=sources)
    save(model, tmp_path / "model.skops")
    np.testing.assert_array_equal(
        load(tmp_path / "model.skops").predict_proba(X), model.predict_proba(X)
    )


@each_protocol
@pytest.mark.parametrize("n_classes", [2, 3])
def test_together_as_alone(protocol, n_classes, pool):
    X, y, sources = pool(n_classes=n_classes)
    models = {each.__name__: make(each, protocol=protocol) for each in CLASSES}
    fit_together(models, X, y, sources=sources)
    for model in models.values():
        alone = clone(model).fit(X, y, sources=sources)
        assert getattr(model, "C_", None) == getattr(alone, "C_", None)
        np.testing.assert_allclose(model.predict_proba(X), alone.predict_proba(X), atol=1e-3)


def test_together_with_different_options(pool):
    X, y, sources = pool()
    models = {
        "a": AllData(reference="gold", random_state=0),
        "b": AllData(reference="good", random_state=0),
        "c": AllData(reference="gold"),
    }
    fit_together(models, X, y, sources=sources)
    assert [m.reference_index_ for m in models.values()] == [0, 1, 0]


def test_together_all_or_none(pool):
    X, y, sources = pool()
    good = make(AllData)
    with pytest.raises(ValueError, match="C must be a positive number"):
        fit_together({"a": good, "b": make(ComponentMedian, C=0)}, X, y, sources=sources)
    assert not hasattr(good, "coef_")


@each_protocol
def test_all_data_is_the_main_estimator_at_an_infinite_trade_off(protocol, pool, monkeypatch):
    monkeypatch.setattr(choices, "DEFAULT", replace(choices.DEFAULT, without_copies=False))
    X, y, sources = pool({"gold": 60, "good": 60, "fine": 60})
    ours = make(AllData, protocol=protocol).fit(X, y, sources=sources)
    main = SourceWeightedClassifier(
        reference="gold", trade_off=np.inf, protocol=protocol, random_state=0
    ).fit(X, y, sources=sources)
    assert ours.C_ == main.C_
    np.testing.assert_allclose(ours.source_weights_, main.source_weights_)
    np.testing.assert_allclose(ours.predict_proba(X), main.predict_proba(X), atol=5e-4)


@each_protocol
def test_reference_only_is_the_main_estimator_at_trade_off_zero(protocol, pool):
    X, y, sources = pool()
    ours = make(ReferenceOnly, protocol=protocol).fit(X, y, sources=sources)
    main = SourceWeightedClassifier(
        reference="gold", trade_off=0.0, protocol=protocol, random_state=0
    ).fit(X, y, sources=sources)
    assert ours.C_ == main.C_
    np.testing.assert_allclose(ours.predict_proba(X), main.predict_proba(X), atol=1e-4)


def test_an_oracle_that_trusts_all_is_all_data(pool):
    X, y, sources = pool()
    names = ["good", "fine", "bad"]
    one = make(Oracle, clean=names).fit(X, y, sources=sources)
    two = make(AllData).fit(X, y, sources=sources)
    np.testing.assert_array_equal(one.coef_, two.coef_)
    with pytest.raises(ValueError, match="The clean source 'nobody' is not among the sources"):
        make(Oracle, clean=["nobody"]).fit(X, y, sources=sources)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (make(ComponentMedian, C="cv"), "C must be a positive number; got 'cv'"),
        (make(MixMin, C=-1), "C must be 'cv' or a positive number; got -1"),
        (make(PairwiseFilter, threshold=-1.0), "threshold must be None or a number"),
        (make(RobustLogistic, threshold=0.0), "threshold must be positive"),
    ],
)
def test_parameters_are_checked(model, message, pool):
    X, y, sources = pool()
    with pytest.raises(ValueError, match=message):
        model.fit(X, y, sources=sources)
