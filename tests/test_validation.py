"""Every kind of bad input gets its one sentence, and leaves an earlier fit as it was."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.linear_model import LogisticRegression, Ridge

import sourcewise as sw
from sourcewise import SourceWeightedClassifier, SourceWeightedRegressor, files, validation
from sourcewise.baselines import Oracle, compare


@pytest.fixture
def pool():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = np.where(X[:, 0] > 0, "yes", "no").astype(object)
    return X, y, np.repeat(["gold", "a", "b"], 20).astype(object)


@pytest.fixture
def numbers(pool):
    X, _, sources = pool
    return X, X[:, 0] + 1.0, sources


def classifier(**parameters):
    given = {"reference": "gold", "trade_off": 1.0, "random_state": 0, **parameters}
    return SourceWeightedClassifier(**given)


def regressor(**parameters):
    given = {"reference": "gold", "trade_off": 1.0, "random_state": 0, **parameters}
    return SourceWeightedRegressor(**given)


def assert_refused(model, sentence, X, y, sources, **more):
    with pytest.raises(ValueError) as error:
        model.fit(X, y, sources=sources, **more)
    assert str(error.value) == sentence


@pytest.mark.parametrize(
    "name", [n for n in dir(validation) if n.isupper() and n != "DISCREPANCIES"]
)
def test_sentences_are_sentences(name):
    sentence = getattr(validation, name)
    assert sentence.endswith(".")
    assert "\n" not in sentence


class TestReference:
    @pytest.mark.parametrize(
        ("reference", "hint"),
        [("golden", " (did you mean 'gold'?)"), ("Gold", " (did you mean 'gold'?)"), ("xyz", "")],
    )
    def test_missing(self, pool, reference, hint):
        sentence = validation.REFERENCE_MISSING.format(reference=reference, hint=hint)
        assert_refused(classifier(reference=reference), sentence, *pool)

    def test_missing_for_its_type(self, pool):
        X, y, _ = pool
        sentence = validation.REFERENCE_MISSING.format(reference="12", hint=" (did you mean 12?)")
        assert_refused(classifier(reference="12"), sentence, X, y, np.repeat([12, 5, 7], 20))

    def test_too_small_for_the_folds(self, pool):
        X, y, sources = pool
        sentence = validation.REFERENCE_TOO_SMALL.format(
            reference="gold", rows=4, folds=5, parameter="cv"
        )
        assert_refused(classifier(), sentence, X[16:], y[16:], sources[16:])
        sentence = validation.REFERENCE_TOO_SMALL.format(
            reference="gold", rows=20, folds=21, parameter="cv"
        )
        assert_refused(classifier(cv=21), sentence, *pool)
        assert_refused(regressor(cv=21), sentence, X, X[:, 0], sources)

    def test_rows_of_weight_zero_do_not_fill_folds(self, pool):
        X, y, sources = pool
        weight = np.ones(60)
        weight[4:20] = 0.0
        sentence = validation.REFERENCE_TOO_SMALL.format(
            reference="gold", rows=4, folds=5, parameter="cv"
        )
        assert_refused(classifier(), sentence, X, y, sources, sample_weight=weight)

    def test_single_class(self, pool):
        X, y, sources = pool
        y[sources == "gold"] = "no"
        sentence = validation.REFERENCE_SINGLE_CLASS.format(reference="gold", label="no")
        assert_refused(classifier(), sentence, X, y, sources)
        assert_refused(classifier(estimator=LogisticRegression()), sentence, X, y, sources)

    def test_just_large_enough(self, pool):
        X, y, sources = pool
        kept = np.r_[10:15, 20:60]
        y[10:12], y[12:15] = "no", "yes"
        for discrepancy in validation.DISCREPANCIES:
            model = classifier(trade_off="cv", discrepancy=discrepancy)
            model.fit(X[kept], y[kept], sources=sources[kept])
            assert np.isfinite(model.discrepancies_).all()


class TestSources:
    @pytest.mark.parametrize("value", [None, "", float("nan"), pd.NA, pd.NaT])
    def test_unnamed(self, pool, value):
        X, y, sources = pool
        sources[[7, 33]] = [value, value]
        sentence = validation.SOURCE_UNNAMED.format(row=7, value=value)
        assert_refused(classifier(), sentence, X, y, sources)
        assert_refused(classifier(), sentence, X, y, sources.tolist())

    def test_unnamed_in_other_containers(self, pool):
        X, y, sources = pool
        sources[7] = None
        for container in (pl.Series(sources.tolist()), pd.Series(sources)):
            assert_refused(
                classifier(),
                validation.SOURCE_UNNAMED.format(row=7, value=container.to_numpy()[7]),
                X,
                y,
                container,
            )
        for container in (pd.Series(sources, dtype="string"), pd.Categorical(sources)):
            with pytest.raises(ValueError, match="^Row 7 has no source name"):
                classifier().fit(X, y, sources=container)

    def test_unnamed_among_numbers(self, pool):
        X, y, _ = pool
        numbers = np.repeat([1.0, 2.0, np.nan], 20)
        sentence = validation.SOURCE_UNNAMED.format(row=40, value=float("nan"))
        assert_refused(classifier(reference=1), sentence, X, y, numbers)
        text = np.repeat(["gold", "a", ""], 20)
        sentence = validation.SOURCE_UNNAMED.format(row=40, value="")
        assert_refused(classifier(), sentence, X, y, text)

    def test_unused_categories_are_no_sources(self, pool):
        X, y, sources = pool
        categories = pd.Categorical(sources, categories=["unused", "gold", "a", "b"])
        assert classifier().fit(X, y, sources=categories).sources_.tolist() == ["gold", "a", "b"]

    def test_of_another_length(self, pool):
        X, y, sources = pool
        sentence = validation.LENGTHS_DIFFER.format(rows=60, what="sources", length=59)
        assert_refused(classifier(), sentence, X, y, sources[:-1])

    @pytest.mark.parametrize("discrepancy", validation.DISCREPANCIES)
    @pytest.mark.parametrize("make", [classifier, regressor])
    def test_one_row_is_enough(self, pool, numbers, discrepancy, make):
        X, y, sources = pool if make is classifier else numbers
        kept = np.r_[:41]
        model = make(trade_off="cv", discrepancy=discrepancy)
        model.fit(X[kept], y[kept], sources=sources[kept])
        assert model.source_rows_.tolist() == [20, 20, 1]
        assert np.isfinite(model.discrepancies_).all()
        assert np.isfinite(model.source_weights_).all()
        assert model.report().sources[2].rows == 1

    def test_one_row_is_enough_for_any_estimator(self, pool):
        X, y, sources = pool
        model = classifier(estimator=LogisticRegression(), trade_off="cv")
        model.fit(X[:41], y[:41], sources=sources[:41])
        assert model.source_rows_.tolist() == [20, 20, 1]


class TestLabels:
    def test_never_seen_in_the_reference(self, pool):
        X, y, sources = pool
        y[45] = "maybe"
        sentence = validation.LABEL_UNSEEN.format(source="b", label="maybe", reference="gold")
        assert_refused(classifier(), sentence, X, y, sources)
        assert_refused(classifier(estimator=LogisticRegression()), sentence, X, y, sources)

    @pytest.mark.parametrize(
        ("pair", "kinds"), [((1, "a"), "int and str"), ((True, False), "bool"), ((1, 2), "int")]
    )
    def test_objects_that_are_no_text(self, pool, pair, kinds):
        X, _, sources = pool
        y = np.array(pair * 30, dtype=object)
        sentence = validation.LABELS_AS_OBJECTS.format(kinds=kinds)
        assert_refused(classifier(), sentence, X, y, sources)

    @pytest.mark.parametrize("label", [-1, 5, 99])
    def test_numbers_never_seen(self, pool, label):
        X, _, sources = pool
        y = np.tile([0, 10], 30)
        y[45] = label
        sentence = validation.LABEL_UNSEEN.format(source="b", label=label, reference="gold")
        assert_refused(classifier(), sentence, X, y, sources)

    @pytest.mark.parametrize("value", [None, float("nan"), pd.NA])
    def test_missing(self, pool, value):
        X, y, sources = pool
        y[25] = value
        sentence = validation.LABEL_NOT_FINITE.format(source="a", what="missing values")
        assert_refused(classifier(), sentence, X, y, sources)

    @pytest.mark.parametrize(("value", "what"), [(np.nan, "NaN"), (np.inf, "infinity")])
    def test_not_finite(self, numbers, value, what):
        X, y, sources = numbers
        y[25] = value
        sentence = validation.LABEL_NOT_FINITE.format(source="a", what=what)
        assert_refused(regressor(), sentence, X, y, sources)
        assert_refused(classifier(), sentence, X, np.where(np.isfinite(y), 1.0, y), sources)

    def test_missing_numbers_among_objects(self, numbers):
        X, y, sources = numbers
        y = y.astype(object)
        y[25] = None
        sentence = validation.LABEL_NOT_FINITE.format(source="a", what="missing values")
        assert_refused(regressor(), sentence, X, y, sources)

    def test_not_a_number(self, numbers):
        X, y, sources = numbers
        y = y.astype(object)
        y[25] = "many"
        sentence = validation.LABEL_NOT_NUMBER.format(source="a", label="many")
        assert_refused(regressor(), sentence, X, y, sources)

    def test_absent_or_of_another_length(self, pool):
        X, y, sources = pool
        sentence = validation.LABELS_MISSING.format(model="SourceWeightedClassifier")
        assert_refused(classifier(), sentence, X, None, sources)
        sentence = validation.LENGTHS_DIFFER.format(rows=60, what="y", length=58)
        assert_refused(classifier(), sentence, X, y[:-2], sources)


class TestFeatures:
    @pytest.mark.parametrize(
        ("value", "what"), [(np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity")]
    )
    @pytest.mark.parametrize("dtype", [np.float64, np.float32])
    def test_not_finite(self, pool, value, what, dtype):
        X, y, sources = pool
        X = X.astype(dtype)
        X[[25, 27, 45], 2] = value
        sentence = validation.NOT_FINITE.format(source="a", what=what, column=2, count=2)
        assert_refused(classifier(), sentence, X, y, sources)

    def test_the_column_is_named(self, pool):
        X, y, sources = pool
        frame = pd.DataFrame(X, columns=["height", "weight", "age"])
        frame.loc[45, "weight"] = np.nan
        sentence = validation.NOT_FINITE.format(source="b", what="NaN", column="weight", count=1)
        assert_refused(classifier(), sentence, frame, y, sources)

    def test_large_numbers_are_finite(self, pool):
        X, y, sources = pool
        X[[0, 1], 0] = 1.7e308
        validation.check_finite(X, np.zeros(60, dtype=int), ["gold"], None)

    @pytest.mark.parametrize(("n_rows", "left"), [(2, 0.5), (4, 0.05)])
    def test_several_placeholders_cost_a_source_its_weight_and_nobody_else(
        self, pool, n_rows, left
    ):
        X, y, sources = pool
        spoilt = X.copy()
        spoilt[[45, 50, 53, 57][:n_rows], 1] = 3.4e38
        before, after = (classifier().fit(rows, y, sources=sources) for rows in (X, spoilt))
        b = after.sources_.tolist().index("b")
        assert after.source_weights_[b] < left * before.source_weights_[b]
        assert np.isfinite(after.predict_proba(X)).all()

    def test_features_as_they_are_have_a_limit(self, pool):
        X, y, sources = pool
        frame = pd.DataFrame(X, columns=["height", "weight", "age"])
        frame.loc[45, "weight"] = -1e36
        sentence = validation.TOO_LARGE.format(source="b", value=-1e36, column="weight", limit=1e15)
        assert_refused(classifier(protocol="paper"), sentence, frame, y, sources)
        frame.loc[45, "weight"] = 1e14
        classifier(protocol="paper").fit(frame, y, sources=sources)

    def test_the_reference_has_a_limit(self, pool):
        X, y, sources = pool
        assert sources[2] == "gold"
        frame = pd.DataFrame(X, columns=["height", "weight", "age"])
        frame.loc[2, "weight"] = 1e160
        sentence = validation.REFERENCE_TOO_LARGE.format(
            source="gold", value=1e160, column="weight", limit=1e150
        )
        assert_refused(classifier(), sentence, frame, y, sources)
        frame.loc[2, "weight"] = 1e140
        assert np.isfinite(classifier().fit(frame, y, sources=sources).coef_).all()

    def test_at_prediction(self, pool):
        X, y, sources = pool
        model = classifier().fit(X, y, sources=sources)
        with pytest.raises(ValueError, match="NaN"):
            model.predict(np.full((1, 3), np.nan))
        with pytest.raises(ValueError, match="2 features, but SourceWeightedClassifier is expec"):
            model.predict(X[:, :2])


class TestSampleWeights:
    def test_all_zero(self, pool):
        weight = np.zeros(60)
        assert_refused(classifier(), validation.WEIGHTS_ALL_ZERO, *pool, sample_weight=weight)

    @pytest.mark.parametrize("name", ["gold", "b"])
    def test_all_zero_in_a_source(self, pool, name):
        X, y, sources = pool
        weight = (sources != name).astype(float)
        sentence = validation.SOURCE_EMPTY.format(source=name)
        assert_refused(classifier(), sentence, X, y, sources, sample_weight=weight)

    def test_negative(self, pool):
        weight = np.ones(60)
        weight[3] = -0.5
        sentence = validation.WEIGHT_NEGATIVE.format(value=-0.5)
        assert_refused(classifier(), sentence, *pool, sample_weight=weight)

    def test_not_finite(self, pool):
        X, y, sources = pool
        weight = np.ones(60)
        weight[3] = np.nan
        with pytest.raises(ValueError, match="sample_weight contains NaN"):
            classifier().fit(X, y, sources=sources, sample_weight=weight)


@pytest.mark.parametrize("make", [classifier, regressor])
class TestOptions:
    @pytest.mark.parametrize("value", ["auto", -1.0, float("nan"), None, True, [1.0]])
    def test_trade_off(self, numbers, make, value):
        sentence = validation.BAD_TRADE_OFF.format(value=value)
        assert_refused(make(trade_off=value), sentence, *numbers)

    @pytest.mark.parametrize("value", ["cross_fit", None, 3, ["local"]])
    def test_discrepancy(self, numbers, make, value):
        known = "'combined', 'local', 'cross-fit', 'plug-in'"
        sentence = validation.BAD_DISCREPANCY.format(known=known, value=value)
        assert_refused(make(discrepancy=value), sentence, *numbers)

    @pytest.mark.parametrize("value", ["papers", True, 1])
    def test_protocol(self, numbers, make, value):
        sentence = validation.BAD_PROTOCOL.format(value=value)
        assert_refused(make(protocol=value), sentence, *numbers)

    @pytest.mark.parametrize("value", [2, 5.0, "5", None, True])
    def test_cv(self, numbers, make, value):
        sentence = validation.BAD_CV.format(value=value)
        assert_refused(make(cv=value), sentence, *numbers)


class TestFailureLeavesAnEarlierFit:
    BAD = {
        "label": lambda X, y, s: (X[:, :2], np.where(s == "b", "maybe", y), s),
        "reference": lambda X, y, s: (X[:, :2], y, np.where(s == "gold", "c", s)),
        "class": lambda X, y, s: (X[:, :2], np.where(s == "gold", "x", y), s),
        "names": lambda X, y, s: (pd.DataFrame(X, columns=["p", "q", "r"]), y[:-1], s),
        "finite": lambda X, y, s: (X[:, :2] * np.nan, y, s),
    }

    @pytest.mark.parametrize("case", BAD)
    @pytest.mark.parametrize("estimator", [None, LogisticRegression()], ids=["default", "own"])
    def test_of_checks(self, pool, case, estimator):
        X, y, sources = pool
        model = classifier(estimator=estimator).fit(X, y, sources=sources)
        before = dict(vars(model))
        with pytest.raises(ValueError):
            model.fit(*self.BAD[case](X, y, sources))
        assert vars(model).keys() == before.keys()
        assert all(value is before[name] for name, value in vars(model).items())
        model.predict(X)

    @pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
    def test_of_the_estimator(self, pool, error, monkeypatch):
        X, y, sources = pool
        model = classifier(estimator=LogisticRegression()).fit(X, y, sources=sources)
        before = dict(vars(model))

        def fail(self, X, y, sample_weight=None):
            raise error("in the middle")

        monkeypatch.setattr(LogisticRegression, "fit", fail)
        with pytest.raises(error, match="in the middle"):
            model.fit(X[:50], y[:50], sources=sources[:50])
        with pytest.raises(error, match="in the middle"):
            model.add_source(X[:10], y[:10], "new")
        assert vars(model) == before

    def test_a_first_fit_that_fails_leaves_an_unfitted_model(self, pool):
        X, y, sources = pool
        model = classifier()
        before = dict(vars(model))
        with pytest.raises(ValueError):
            model.fit(X, np.where(sources == "b", "maybe", y), sources=sources)
        assert vars(model) == before


class TestSlipsThatOnceGotAForeignSentence:
    """Another library used to speak up, about something else."""

    X = np.random.default_rng(0).normal(size=(60, 3))
    y = (X[:, 0] > 0).astype(int)
    sources = np.repeat(["reference", "s0"], 30)

    def refused(self, sentence, call):
        with pytest.raises(ValueError) as caught:
            call()
        assert str(caught.value) == sentence

    @pytest.mark.parametrize(
        "sources, got",
        [
            (3, "3"),
            (np.array([["a", "b"]] * 60), "an array of shape (60, 2)"),
        ],
    )
    def test_sources_that_are_not_one_name_a_row(self, sources, got):
        self.refused(
            validation.SOURCES_SHAPE.format(rows=60, got=got),
            lambda: sw.SourceWeightedClassifier().fit(self.X, self.y, sources=sources),
        )

    def test_tuples_are_names(self):
        sources = [("lab", 1)] * 30 + [("lab", 2)] * 30
        model = sw.SourceWeightedClassifier(reference=("lab", 1)).fit(
            self.X, self.y, sources=sources
        )
        assert model.sources_.tolist() == [("lab", 1), ("lab", 2)]

    def test_names_that_cannot_be_keys(self):
        sentence = validation.SOURCE_UNHASHABLE.format(row=0, value=["a"])
        model = sw.SourceWeightedClassifier()
        self.refused(sentence, lambda: model.fit(self.X, self.y, sources=[["a"]] * 60))
        model.fit(self.X, self.y, sources=self.sources)
        self.refused(sentence, lambda: model.add_source(self.X, self.y, ["a"]))
        assert model.sources_.tolist() == ["reference", "s0"]

    def test_an_array_is_no_reference(self):
        with pytest.raises(ValueError, match="reference must be the name of one source"):
            sw.SourceWeightedClassifier(reference=self.sources[:2]).fit(
                self.X, self.y, sources=self.sources
            )

    def test_estimators_that_are_none(self):
        of_name = sw.SourceWeightedClassifier("LogisticRegression")
        repr(of_name)
        self.refused(
            validation.NOT_AN_ESTIMATOR.format(value="LogisticRegression"),
            lambda: of_name.fit(self.X, self.y),
        )
        of_class = sw.SourceWeightedRegressor(Ridge)
        of_class._repr_html_()
        self.refused(
            validation.ESTIMATOR_CLASS.format(estimator="Ridge"),
            lambda: of_class.fit(self.X, self.y),
        )

    def test_folds_of_the_splitter_have_the_splitters_name(self):
        splitter = sw.ReferenceKFold(40)
        with pytest.raises(ValueError, match=r"40 folds of n_splits=40; .* lower n_splits\."):
            next(splitter.split(self.X, self.y, sources=self.sources))

    @pytest.mark.parametrize("clean", [None, "s0", 3])
    def test_the_oracle_wants_a_list(self, clean):
        self.refused(
            f"clean must be a list of names of sources; got {clean!r}.",
            lambda: Oracle(clean).fit(self.X, self.y, sources=self.sources),
        )

    def test_compare_wants_regressors_for_numbers_and_knows_methods_by_either_name(self):
        numbers = self.X[:, 0]
        with pytest.raises(ValueError, match="y holds real numbers, .* pass a regressor"):
            compare(self.X, numbers, sources=self.sources, estimator=LogisticRegression())
        with pytest.raises(ValueError, match="no method 'MixMin'; choose among 'sourcewise', 'ref"):
            compare(self.X, numbers, sources=self.sources, methods=["MixMin"])
        with pytest.raises(ValueError, match="methods must be 'all'"):
            compare(self.X, self.y, sources=self.sources, methods=None)
        with pytest.raises(ValueError, match="There is no method <class"):
            compare(self.X, self.y, sources=self.sources, methods=[Oracle])
        found = compare(
            self.X, self.y, sources=self.sources, methods=["AllData", "all data"], random_state=0
        )
        assert found.methods == ("sourcewise", "all data")

    def test_a_report_for_a_folder_that_is_not_there(self, tmp_path):
        report = sw.SourceWeightedClassifier().fit(self.X, self.y, sources=self.sources).report()
        for write in (report.to_json, report.to_html):
            path = tmp_path / "missing" / "report"
            with pytest.raises(FileNotFoundError) as caught:
                write(path)
            assert str(caught.value) == files.NO_FOLDER.format(path=path, folder=path.parent)
            with pytest.raises(IsADirectoryError, match="is a folder; give the path of a file"):
                write(tmp_path)
        assert list(tmp_path.iterdir()) == []
