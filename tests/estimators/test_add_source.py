"""Adding a source gives what fitting from scratch would have given."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.compose import make_column_transformer
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from sourcewise import SourceWeightedClassifier, SourceWeightedRegressor, validation

ROWS = {"gold": 40, "good": 40, "bad": 40, "late": 30}


def options(**parameters):
    return {"reference": "gold", "cv": 3, "random_state": 0, **parameters}


def add_last(model, X, y, sources, **weights):
    """Fit without the last source, then add it."""
    late = sources == "late"

    def part(values, rows):
        if isinstance(values, list):
            return [v for v, wanted in zip(values, rows, strict=True) if wanted]
        return values.filter(rows) if isinstance(values, pl.DataFrame) else values[rows]

    given = {name: part(values, ~late) for name, values in weights.items()}
    model.fit(part(X, ~late), y[~late], sources=sources[~late], **given)
    given = {name: part(values, late) for name, values in weights.items()}
    return model.add_source(part(X, late), y[late], "late", **given)


def assert_equal_models(one, other, X):
    assert one.sources_.tolist() == other.sources_.tolist()
    for attribute in ("values", "standard_errors", "p_values"):
        np.testing.assert_allclose(
            getattr(one.discrepancy_result_, attribute),
            getattr(other.discrepancy_result_, attribute),
            rtol=1e-6,
            atol=1e-9,
        )
    assert one.discrepancy_result_.witnesses == other.discrepancy_result_.witnesses
    np.testing.assert_allclose(one.source_weights_, other.source_weights_, rtol=1e-6)
    np.testing.assert_allclose(one.selection_.losses, other.selection_.losses, rtol=1e-5)
    assert one.trade_off_ == other.trade_off_
    np.testing.assert_allclose(one.cutoff_, other.cutoff_, rtol=1e-6)
    assert one.source_rows_.tolist() == other.source_rows_.tolist()
    method = "predict_proba" if hasattr(one, "predict_proba") else "predict"
    np.testing.assert_allclose(
        getattr(one, method)(X), getattr(other, method)(X), rtol=1e-5, atol=1e-6
    )
    assert [r.reason for r in one.report().sources] == [r.reason for r in other.report().sources]
    assert str(one.reference_adequacy()) == str(other.reference_adequacy())


@pytest.mark.parametrize("estimator", [None, LogisticRegression()], ids=["default", "own"])
@pytest.mark.parametrize("discrepancy", validation.DISCREPANCIES)
def test_classifier(class_pool, discrepancy, estimator):
    X, y, sources = class_pool(ROWS, n_classes=3, labels=["a", "b", "c"])
    parameters = options(discrepancy=discrepancy, estimator=estimator)
    added = add_last(SourceWeightedClassifier(**parameters), X, y, sources)
    scratch = SourceWeightedClassifier(**parameters).fit(X, y, sources=sources)
    assert_equal_models(added, scratch, X)


@pytest.mark.parametrize("estimator", [None, Ridge()], ids=["default", "own"])
@pytest.mark.parametrize("discrepancy", validation.DISCREPANCIES)
def test_regressor(number_pool, discrepancy, estimator):
    X, y, sources = number_pool(ROWS)
    parameters = options(discrepancy=discrepancy, estimator=estimator)
    added = add_last(SourceWeightedRegressor(**parameters), X, y, sources)
    scratch = SourceWeightedRegressor(**parameters).fit(X, y, sources=sources)
    assert_equal_models(added, scratch, X)


@pytest.mark.parametrize("trade_off", ["theory", 1.5])
def test_fixed_trade_off(class_pool, trade_off):
    X, y, sources = class_pool(ROWS)
    parameters = options(trade_off=trade_off, estimator=LogisticRegression())
    added = add_last(SourceWeightedClassifier(**parameters), X, y, sources)
    scratch = SourceWeightedClassifier(**parameters).fit(X, y, sources=sources)
    assert_equal_models(added, scratch, X)


def test_paper_protocol(class_pool):
    X, y, sources = class_pool(ROWS)
    added = add_last(SourceWeightedClassifier(**options(protocol="paper")), X, y, sources)
    scratch = SourceWeightedClassifier(**options(protocol="paper")).fit(X, y, sources=sources)
    assert_equal_models(added, scratch, X)


@pytest.mark.parametrize("estimator", [None, LogisticRegression()], ids=["default", "own"])
def test_first_source_beside_the_reference(class_pool, estimator):
    X, y, sources = class_pool({"gold": 40, "late": 60})
    parameters = options(estimator=estimator)
    added = add_last(SourceWeightedClassifier(**parameters), X, y, sources)
    scratch = SourceWeightedClassifier(**parameters).fit(X, y, sources=sources)
    assert_equal_models(added, scratch, X)


def test_reference_in_the_middle_and_two_sources_added(class_pool):
    X, y, sources = class_pool({"good": 40, "gold": 40, "bad": 40, "late": 30})
    model = SourceWeightedClassifier(**options())
    first = np.isin(sources, ["good", "gold"])
    model.fit(X[first], y[first], sources=sources[first])
    for name in ("bad", "late"):
        model.add_source(X[sources == name], y[sources == name], name)
    scratch = SourceWeightedClassifier(**options()).fit(X, y, sources=sources)
    assert_equal_models(model, scratch, X)


@pytest.mark.parametrize("weighted", [{"late"}, {"gold", "good", "bad"}])
def test_sample_weights_of_one_side_only(class_pool, weighted):
    X, y, sources = class_pool(ROWS)
    weight = np.random.default_rng(0).uniform(0.0, 2.0, size=len(y))
    weight[::9] = 0.0
    weight[~np.isin(sources, list(weighted))] = 1.0
    late = sources == "late"
    model = SourceWeightedClassifier(**options())
    model.fit(
        X[~late],
        y[~late],
        sources=sources[~late],
        sample_weight=None if weighted == {"late"} else weight[~late],
    )
    model.add_source(
        X[late], y[late], "late", sample_weight=weight[late] if weighted == {"late"} else None
    )
    scratch = SourceWeightedClassifier(**options())
    scratch.fit(X, y, sources=sources, sample_weight=weight)
    assert_equal_models(model, scratch, X)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_frames(class_pool, frame):
    X, y, sources = class_pool(ROWS)
    columns = dict(zip("abc", X.T[1:], strict=False))
    table = frame({"city": np.where(X[:, 0] > 0, "Oslo", "Bergen"), **columns})
    pipe = make_pipeline(
        make_column_transformer((OneHotEncoder(), ["city"]), remainder="passthrough"),
        LogisticRegression(),
    )
    added = add_last(SourceWeightedClassifier(**options(estimator=pipe)), table, y, sources)
    scratch = SourceWeightedClassifier(**options(estimator=pipe)).fit(table, y, sources=sources)
    assert_equal_models(added, scratch, table)


def test_text(class_pool):
    X, y, sources = class_pool(ROWS)
    texts = ["fine" if v > 0 else "poor" for v in X[:, 0]]
    pipe = make_pipeline(CountVectorizer(), LogisticRegression())
    added = add_last(SourceWeightedClassifier(**options(estimator=pipe)), texts, y, sources)
    scratch = SourceWeightedClassifier(**options(estimator=pipe)).fit(texts, y, sources=sources)
    assert_equal_models(added, scratch, texts)


class TestRefusals:
    @pytest.fixture
    def fitted(self, class_pool):
        X, y, sources = class_pool(labels=["no", "yes"])
        frame = pd.DataFrame(X, columns=list("abcd"))
        return SourceWeightedClassifier(**options(trade_off=1.0)).fit(frame, y, sources=sources)

    @pytest.fixture
    def frame(self):
        values = np.random.default_rng(5).normal(size=(20, 4))
        return pd.DataFrame(values, columns=list("abcd"))

    @pytest.fixture
    def labels(self):
        return np.repeat(["no", "yes"], 10)

    def assert_refused(self, model, sentence, *arguments, **keywords):
        before = dict(vars(model))
        with pytest.raises(ValueError) as error:
            model.add_source(*arguments, **keywords)
        assert str(error.value) == sentence
        assert vars(model) == before

    def test_no_data_kept(self, class_pool):
        X, y, sources = class_pool()
        model = SourceWeightedClassifier(**options(keep_data=False)).fit(X, y, sources=sources)
        self.assert_refused(model, validation.NO_DATA_KEPT, X, y, "late")

    @pytest.mark.parametrize("name", ["gold", "good"])
    def test_known_name(self, fitted, frame, labels, name):
        sentence = validation.SOURCE_KNOWN.format(source=name)
        self.assert_refused(fitted, sentence, frame, labels, name)

    @pytest.mark.parametrize("name", [None, "", float("nan"), pd.NA])
    def test_no_name(self, fitted, frame, labels, name):
        sentence = validation.SOURCE_UNNAMED.format(row=0, value=name)
        self.assert_refused(fitted, sentence, frame, labels, name)

    def test_no_rows(self, fitted, frame, labels):
        sentence = validation.SOURCE_NO_ROWS.format(source="late")
        self.assert_refused(fitted, sentence, frame[:0], labels[:0], "late")

    @pytest.mark.parametrize(
        ("change", "problem"),
        [
            (lambda f: f.rename(columns={"d": "e"}), "no column 'd' and an unknown column 'e'"),
            (lambda f: f.drop(columns="b"), "no column 'b'"),
            (lambda f: f.assign(e=1.0), "an unknown column 'e'"),
            (lambda f: f[list("dcba")], "its columns in another order"),
            (lambda f: f.to_numpy()[:, :3], "3 columns instead of 4"),
            (lambda f: f.to_numpy()[:, 0], "1 columns instead of 4"),
            (lambda f: f.to_numpy()[:, :2].tolist(), "2 columns instead of 4"),
        ],
    )
    def test_other_columns(self, fitted, frame, labels, change, problem):
        sentence = validation.SOURCE_COLUMNS.format(source="late", problem=problem)
        self.assert_refused(fitted, sentence, change(frame), labels, "late")

    @pytest.mark.parametrize("convert", [pd.DataFrame.to_numpy, pl.from_pandas])
    def test_other_container_for_an_estimator_of_ones_own(self, fitted, frame, labels, convert):
        fitted.set_params(estimator=LogisticRegression())
        full = pd.concat([frame, frame], ignore_index=True)
        fitted.fit(full, np.tile(labels, 2), sources=np.repeat(["gold", "good"], 20))
        given = convert(frame)
        kind = type(given).__name__
        problem = f"rows of type {kind} instead of pandas.DataFrame"
        sentence = validation.SOURCE_COLUMNS.format(source="late", problem=problem)
        self.assert_refused(fitted, sentence, given, labels, "late")

    @pytest.mark.parametrize(("value", "what"), [(np.nan, "NaN"), (-np.inf, "infinity")])
    def test_not_finite(self, fitted, frame, labels, value, what):
        frame.loc[[3, 4], "c"] = value
        sentence = validation.NOT_FINITE.format(source="late", what=what, column="c", count=2)
        self.assert_refused(fitted, sentence, frame, labels, "late")

    def test_label_unseen(self, fitted, frame, labels):
        labels[7] = "hm"
        sentence = validation.LABEL_UNSEEN.format(source="late", label="hm", reference="gold")
        self.assert_refused(fitted, sentence, frame, labels, "late")

    def test_weights(self, fitted, frame, labels):
        weight = np.zeros(20)
        self.assert_refused(
            fitted, validation.WEIGHTS_ALL_ZERO, frame, labels, "late", sample_weight=weight
        )
        weight[2] = -1.0
        sentence = validation.WEIGHT_NEGATIVE.format(value=-1.0)
        self.assert_refused(fitted, sentence, frame, labels, "late", sample_weight=weight)

    def test_lengths(self, fitted, frame, labels):
        sentence = validation.LENGTHS_DIFFER.format(rows=20, what="y", length=19)
        self.assert_refused(fitted, sentence, frame, labels[:-1], "late")


@pytest.mark.parametrize("regression", [False, True])
def test_copies_of_trusted_rows_are_left_out_of_the_first_source_too(regression):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 8))
    y = X[:, 0] + 0.3 * rng.normal(size=120)
    y = y if regression else (y > 0).astype(int)
    new_X, new_y = X[:100], np.append(y[:80], 1 - y[80:100])
    make = SourceWeightedRegressor if regression else SourceWeightedClassifier
    alone = make(random_state=0).fit(X[:80], y[:80])
    added = alone.add_source(new_X, new_y, "new")
    fresh = make(random_state=0).fit(
        np.vstack([X[:80], new_X]),
        np.append(y[:80], new_y),
        sources=np.repeat(["reference", "new"], [80, 100]),
    )
    assert added.copies_.tolist() == fresh.copies_.tolist() == [0, 80]
    np.testing.assert_allclose(added.source_weights_, fresh.source_weights_, atol=1e-8)
    np.testing.assert_allclose(added.coef_, fresh.coef_, atol=1e-6)
