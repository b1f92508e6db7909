"""`sources` reach every step that needs them, under metadata routing and without it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn import config_context
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sourcewise import ReferenceKFold, SourceWeightedClassifier, validation
from sourcewise.core import choices


@pytest.fixture(autouse=True)
def copies_stay(monkeypatch):
    """Keep every row: few columns make chance neighbours, and this file counts rows."""
    monkeypatch.setattr(choices, "DEFAULT", replace(choices.DEFAULT, without_copies=False))


@pytest.fixture
def pool(class_pool):
    return class_pool()


@pytest.fixture
def model():
    return SourceWeightedClassifier(reference="gold", trade_off=2.0, cv=3, random_state=0)


@pytest.fixture
def routing():
    with config_context(enable_metadata_routing=True):
        yield


class Recorder(SourceWeightedClassifier):
    """Notes the source names each fit was given."""

    seen: list[list[str]] = []

    def fit(self, X, y, sources=None, sample_weight=None):
        type(self).seen.append(sorted(sources))
        return super().fit(X, y, sources=sources, sample_weight=sample_weight)


@pytest.fixture
def recorder():
    Recorder.seen = []
    return Recorder(reference="gold", trade_off=2.0, cv=3, random_state=0)


def expected_names(sources, splitter, y):
    return [
        sorted(sources[train])
        for train, _ in splitter.split(np.zeros((len(y), 1)), y, sources=sources)
    ]


def test_pipeline_routes_sources(pool, model, routing):
    X, y, sources = pool
    pipe = make_pipeline(StandardScaler(), model).fit(X, y, sources=sources)
    assert pipe[-1].sources_.tolist() == ["gold", "good", "bad"]
    alone = model.fit(StandardScaler().fit_transform(X), y, sources=sources)
    np.testing.assert_allclose(pipe.predict_proba(X), alone.predict_proba(pipe[0].transform(X)))


def test_pipeline_without_routing_names_the_step(pool, model):
    X, y, sources = pool
    pipe = make_pipeline(StandardScaler(), model)
    pipe.fit(X, y, sourceweightedclassifier__sources=sources)
    assert pipe[-1].sources_.tolist() == ["gold", "good", "bad"]


def test_cross_validate_slices_sources_for_model_and_splitter(pool, recorder, routing):
    X, y, sources = pool
    splitter = ReferenceKFold(5, reference="gold")
    result = cross_validate(
        recorder, X, y, params={"sources": sources}, cv=splitter, error_score="raise"
    )
    assert result["test_score"].shape == (5,)
    assert result["test_score"].mean() > 0.8
    assert recorder.seen == expected_names(sources, splitter, y)


def test_cross_validate_of_a_pipeline_routes_sources(pool, model, routing):
    X, y, sources = pool
    result = cross_validate(
        make_pipeline(StandardScaler(), model),
        X,
        y,
        params={"sources": sources},
        cv=ReferenceKFold(5, reference="gold"),
        return_estimator=True,
        error_score="raise",
    )
    for pipe in result["estimator"]:
        assert pipe[-1].source_rows_.tolist() == [32, 80, 80]


def test_cross_validate_without_routing_takes_groups_for_the_splitter(pool, recorder):
    X, y, sources = pool
    splitter = ReferenceKFold(5, reference="gold")
    cross_validate(
        recorder,
        X,
        y,
        params={"sources": sources},
        groups=sources,
        cv=splitter,
        error_score="raise",
    )
    assert recorder.seen == expected_names(sources, splitter, y)


def test_grid_search_routes_sources(pool, model, routing):
    X, y, sources = pool
    search = GridSearchCV(
        model,
        {"trade_off": [0.0, 2.0, np.inf]},
        cv=ReferenceKFold(4, reference="gold"),
        error_score="raise",
    ).fit(X, y, sources=sources)
    assert search.best_estimator_.sources_.tolist() == ["gold", "good", "bad"]
    assert search.best_estimator_.trade_off_ == search.best_params_["trade_off"]


def test_grid_search_without_routing(pool, model):
    X, y, sources = pool
    search = GridSearchCV(
        model, {"trade_off": [0.0, 2.0]}, cv=ReferenceKFold(4, reference="gold")
    ).fit(X, y, groups=sources, sources=sources)
    assert search.best_estimator_.sources_.tolist() == ["gold", "good", "bad"]


class TestReferenceKFold:
    @pytest.mark.parametrize("shuffle", [True, False])
    def test_validates_on_a_partition_of_the_reference(self, pool, shuffle):
        X, y, sources = pool
        splits = list(
            ReferenceKFold(4, reference="gold", shuffle=shuffle).split(X, y, sources=sources)
        )
        tested = np.concatenate([test for _, test in splits])
        np.testing.assert_array_equal(np.sort(tested), np.flatnonzero(sources == "gold"))
        for train, test in splits:
            np.testing.assert_array_equal(
                np.sort(np.concatenate([train, test])), np.arange(len(sources))
            )

    @pytest.mark.parametrize("shuffle", [True, False])
    def test_spreads_classes_evenly(self, pool, shuffle):
        X, y, sources = pool
        splitter = ReferenceKFold(4, reference="gold", shuffle=shuffle)
        counts = [np.bincount(y[test], minlength=2) for _, test in splitter.split(X, y, sources)]
        assert np.ptp(counts, axis=0).max() <= 1

    def test_splits_numbers_too(self, number_pool):
        X, y, sources = number_pool()
        sizes = [len(t) for _, t in ReferenceKFold(3, reference="gold").split(X, y, sources)]
        assert sorted(sizes) == [13, 13, 14]

    def test_same_random_state_same_folds(self, pool):
        X, y, sources = pool

        def folds(random_state):
            splitter = ReferenceKFold(4, reference="gold", random_state=random_state)
            return [test.tolist() for _, test in splitter.split(X, y, sources)]

        assert folds(1) == folds(1)
        assert folds(1) != folds(2)

    def test_groups_are_another_name_for_sources(self, pool):
        X, y, sources = pool
        splitter = ReferenceKFold(3, reference="gold")
        for one, other in zip(
            splitter.split(X, y, sources=sources),
            splitter.split(X, y, groups=sources),
            strict=True,
        ):
            np.testing.assert_array_equal(one[1], other[1])
        assert splitter.get_n_splits() == 3

    def test_needs_sources(self, pool):
        X, y, _ = pool
        with pytest.raises(ValueError) as error:
            next(ReferenceKFold(3).split(X, y))
        assert str(error.value) == validation.SPLITTER_NEEDS_SOURCES

    @pytest.mark.parametrize("n_splits", [1, 2.5, "5", True, None])
    def test_bad_number_of_folds(self, pool, n_splits):
        X, y, sources = pool
        with pytest.raises(ValueError) as error:
            next(ReferenceKFold(n_splits, reference="gold").split(X, y, sources))
        assert str(error.value) == validation.BAD_SPLITS.format(value=n_splits)

    def test_reference_missing(self, pool):
        X, y, sources = pool
        with pytest.raises(ValueError) as error:
            next(ReferenceKFold(3, reference="golden").split(X, y, sources))
        assert str(error.value) == validation.REFERENCE_MISSING.format(
            reference="golden", hint=" (did you mean 'gold'?)"
        )

    def test_reference_too_small(self, class_pool):
        X, y, sources = class_pool({"gold": 4, "good": 10})
        with pytest.raises(ValueError) as error:
            next(ReferenceKFold(5, reference="gold").split(X, y, sources))
        assert str(error.value) == validation.REFERENCE_TOO_SMALL.format(
            reference="gold", rows=4, folds=5, parameter="n_splits"
        )
