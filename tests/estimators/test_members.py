"""The average behind an estimator of the user's own: who takes part, and what each counts."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestClassifier
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier
from sklearn.pipeline import make_pipeline

from sourcewise import SourceWeightedClassifier, SourceWeightedRegressor, estimate_discrepancies
from sourcewise.core.choices import DEFAULT
from sourcewise.estimators.averaged import log_odds, with_doubt
from sourcewise.estimators.members import HeldOut, most_fits
from sourcewise.progress import FITS, listening
from sourcewise.report.notes import MEMBERS, TOLD, UNTOLD, member_notes

DEFAULT_LEARNER, ALONE = "linear default", "reference only"


def classifier(estimator, **parameters):
    return SourceWeightedClassifier(estimator, reference="gold", random_state=0, **parameters)


def checkerboard(counts, seed=0):
    """Labels that trees can know and lines cannot; the source "bad" has them flipped."""
    rng = np.random.default_rng(seed)
    sources = np.repeat(list(counts), list(counts.values()))
    X = rng.uniform(-1.0, 1.0, size=(len(sources), 3))
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    y[sources == "bad"] = 1 - y[sources == "bad"]
    return X, y, sources


def shares_of(model):
    return {member.name: member.share for member in model.estimator_.members}


FOREST = RandomForestClassifier(n_estimators=30, random_state=0)


def test_a_source_that_misleads_trees_but_not_lines_is_seen():
    X, y, sources = checkerboard({"gold": 100, "good": 150, "fine": 150, "bad": 150})
    by_lines = classifier(None).fit(X, y, sources=sources)
    model = classifier(FOREST).fit(X, y, sources=sources)
    assert model.discrepancies_[3] > 3.0 * max(model.discrepancies_[1:3])
    assert model.discrepancies_[3] > by_lines.discrepancies_[3] + 0.05
    assert model.source_weights_[3] < 0.2 * model.source_weights_[1:3].min()
    assert model.report().sources[3].reason == "labels disagree with the reference"
    X_new, y_new, _ = checkerboard({"gold": 1000}, seed=1)
    assert model.score(X_new, y_new) > 0.85


def test_a_source_that_misleads_lines_but_not_such_models_is_seen(class_pool):
    # A tree of one split on noise knows nothing; the default learner does.
    X, y, sources = class_pool({"gold": 80, "good": 100, "bad": 100})
    stump = RandomForestClassifier(n_estimators=1, max_depth=1, max_features=1, random_state=3)
    model = classifier(stump).fit(X, y, sources=sources)
    by_lines = classifier(None).fit(X, y, sources=sources)
    assert (model.discrepancies_ >= by_lines.discrepancies_ - 1e-12).all()


def test_probabilities_are_those_of_averaged_log_odds(class_pool):
    X, y, sources = class_pool(n_classes=3, labels=["a", "b", "c"])
    model = classifier(FOREST).fit(X, y, sources=sources)
    members = model.estimator_.members
    assert sum(member.share for member in members) == pytest.approx(1.0)
    assert min(member.share for member in members) >= DEFAULT.least_share
    logs = sum(m.share * np.log(np.clip(m.model.predict_proba(X), 0.001, 0.999)) for m in members)
    np.testing.assert_allclose(model.predict_proba(X), softmax(logs, axis=1), atol=1e-12)
    best = model.classes_[model.predict_proba(X).argmax(axis=1)]
    np.testing.assert_array_equal(model.predict(X), best)


def test_predictions_of_numbers_are_averaged(number_pool):
    X, y, sources = number_pool()
    model = SourceWeightedRegressor(Ridge(), reference="gold", random_state=0)
    model.fit(X, y, sources=sources)
    expected = sum(m.share * m.model.predict(X) for m in model.estimator_.members)
    np.testing.assert_allclose(model.predict(X), expected)


def test_the_default_learner_takes_part_as_it_is(class_pool):
    X, y, sources = class_pool()
    model = classifier(RandomForestClassifier(n_estimators=2, max_depth=1)).fit(
        X, y, sources=sources
    )
    member = next(m for m in model.estimator_.members if m.name == DEFAULT_LEARNER)
    alone = classifier(None).fit(X, y, sources=sources)
    np.testing.assert_allclose(member.model.coef_, alone.coef_, rtol=1e-6)
    np.testing.assert_allclose(member.model.predict_proba(X), alone.predict_proba(X), rtol=1e-6)


def test_missing_values_do_not_keep_the_default_learner_out(class_pool):
    X, y, sources = class_pool()
    X = X.copy()
    X[::5, 3] = np.nan
    forest = RandomForestClassifier(n_estimators=5, max_depth=2, random_state=0)
    model = classifier(forest).fit(X, y, sources=sources)
    assert DEFAULT_LEARNER in shares_of(model)
    assert np.isfinite(model.predict_proba(X)).all()


def test_texts_are_judged_by_the_pipeline_alone(class_pool):
    X, y, sources = class_pool()
    texts = [f"{'good' if a > 0 else 'poor'} {'so' if b > 0 else 'no'}" for a, b in X[:, :2]]
    pipe = make_pipeline(CountVectorizer(), LogisticRegression())
    model = classifier(pipe).fit(texts, y, sources=sources)
    assert DEFAULT_LEARNER not in shares_of(model)
    weights = dict(zip(model.sources_, model.source_weights_, strict=True))
    assert weights["bad"] < 0.5 * weights["good"]


def test_where_all_sources_are_bad_the_reference_decides():
    X, y, sources = checkerboard({"gold": 150, **{f"bad {k}": 100 for k in range(4)}})
    y[sources != "gold"] = 1 - y[sources != "gold"]
    model = classifier(FOREST).fit(X, y, sources=sources)
    assert model.source_weights_[0] > 0.95
    X_new, y_new, _ = checkerboard({"gold": 1000}, seed=1)
    alone = model.at_trade_off(0.0)
    assert model.score(X_new, y_new) > alone.score(X_new, y_new) - 0.02


@pytest.mark.parametrize("loss", ["quantile", "poisson"])
def test_other_aims_are_not_averaged_with_means(number_pool, loss):
    X, y, sources = number_pool()
    boosting = HistGradientBoostingRegressor(loss=loss, quantile=0.9, max_iter=10)
    model = SourceWeightedRegressor(boosting, reference="gold", cv=3, random_state=0)
    model.fit(X, y - y.min() + 1.0, sources=sources)
    assert DEFAULT_LEARNER not in shares_of(model)


def test_weights_are_those_of_the_shares_of_trade_offs(class_pool):
    X, y, sources = class_pool()
    model = classifier(FOREST).fit(X, y, sources=sources)
    weights, _ = model.selection_.weigh(model.discrepancies_, model.source_sizes_)
    np.testing.assert_allclose(model.source_weights_, weights)
    assert model.selection_.shares.sum() == pytest.approx(1.0)
    fixed = model.at_trade_off(model.trade_off_)
    np.testing.assert_array_equal(fixed.discrepancies_, model.discrepancies_)
    assert isinstance(fixed.estimator_, RandomForestClassifier)


def test_discrepancies_by_themselves_are_those_of_the_model():
    X, y, sources = checkerboard({"gold": 60, "good": 80, "bad": 80})
    model = classifier(FOREST).fit(X, y, sources=sources)
    found = estimate_discrepancies(
        X, y, sources=sources, reference="gold", estimator=FOREST, random_state=0
    )
    np.testing.assert_allclose(found.values, model.discrepancies_)
    np.testing.assert_allclose(found.p_values, model.discrepancy_result_.p_values)


def test_a_class_that_is_named_counts_as_it_is_right():
    named = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    found = with_doubt(named, 0.2)
    np.testing.assert_allclose(found, [[0.8, 0.1, 0.1], [0.1, 0.1, 0.8]])
    np.testing.assert_array_equal(with_doubt(named, 0.0), named)
    np.testing.assert_allclose(
        log_odds(np.array([[0.2, 0.8], [0.0, 1.0]]), 0.001)[:, 0], [np.log(4), np.log(999)]
    )


def test_classifiers_that_only_name_classes_vote(class_pool):
    X, y, sources = class_pool(labels=["no", "yes"])
    model = classifier(RidgeClassifier()).fit(X, y, sources=sources)
    wrong = [m.wrong for m in model.estimator_.members if m.name != DEFAULT_LEARNER]
    assert all(0.0 < rate <= 0.5 for rate in wrong)
    assert set(model.predict(X)) == {"no", "yes"}
    assert ALONE not in shares_of(model) or shares_of(model)[ALONE] < 1.0


def test_the_report_says_what_the_model_is_made_of():
    X, y, sources = checkerboard({"gold": 60, "good": 100, "bad": 100})
    model = classifier(FOREST).fit(X, y, sources=sources)
    notes = member_notes(shares_of(model))
    assert model.report().notes[: len(notes)] == tuple(notes)
    assert set(shares_of(model)) <= set(MEMBERS)
    assert not model.at_trade_off(1.0).report().notes


def test_the_report_says_that_its_weights_do_not_count():
    # Of a source with all labels flipped everything can be learnt by whoever is told the source.
    X, y, sources = checkerboard({"gold": 60, "bad": 900})
    forest = RandomForestClassifier(n_estimators=30, max_features=None, random_state=0)
    model = classifier(forest).fit(X, y, sources=sources)
    assert shares_of(model)[TOLD] > 0.5
    assert "does not use the weights of this table" in str(model.report())


def test_the_report_says_that_an_estimator_could_not_be_told():
    class ThreeColumns(RandomForestClassifier):
        def fit(self, X, y, sample_weight=None):
            if X.shape[1] != 3:
                raise ValueError("three columns are wanted")
            return super().fit(X, y, sample_weight)

    X, y, sources = checkerboard({"gold": 60, "good": 500})
    forest = ThreeColumns(n_estimators=30, max_features=None, random_state=0)
    model = classifier(forest).fit(X, y, sources=sources)
    assert shares_of(model)[TOLD] > 0.0
    report = " ".join(str(model.report()).split())
    assert MEMBERS[UNTOLD] in report and MEMBERS[TOLD] not in report


class CountedForest(RandomForestClassifier):
    """A forest that counts how often any of its kind was fitted."""

    count = 0

    def fit(self, X, y, sample_weight=None):
        type(self).count += 1
        return super().fit(X, y, sample_weight)


def count_fits(work):
    """Fits that happened, and what a listener was told of them: (done, at most)."""
    CountedForest.count, told = 0, []
    with listening(lambda stage, *numbers: told.append(numbers) if stage == FITS else None):
        work()
    return CountedForest.count, told


@pytest.mark.parametrize(("cv", "most"), [(3, 12), (5, 18), (10, 18)])
def test_whoever_waits_is_told_of_every_fit(class_pool, cv, most):
    X, y, sources = class_pool()
    model = classifier(CountedForest(n_estimators=3), cv=cv)
    fits, told = count_fits(lambda: model.fit(X, y, sources=sources))
    assert [done for done, _ in told] == [*range(fits + 1), fits]
    assert {total for _, total in told[:-1]} == {most} and told[-1] == (fits, fits)
    assert cv < fits <= most
    fits, told = count_fits(lambda: model.at_trade_off(1.0))
    assert fits == 1 and told[-1] == (1, 1)


def test_where_nobody_knows_how_many_fits_there_will_be_none_are_promised(class_pool):
    X, y, sources = class_pool()
    model = classifier(CountedForest(n_estimators=3), cv=3, discrepancy="local")
    fits, told = count_fits(lambda: model.fit(X, y, sources=sources))
    assert told[0] == (0, 0) and told[-1] == (fits, fits)


def test_more_folds_than_five_are_for_the_default_learner(class_pool):
    X, y, sources = class_pool()
    ten, five = (classifier(FOREST, cv=cv).fit(X, y, sources=sources) for cv in (10, 5))
    np.testing.assert_array_equal(ten.predict_proba(X), five.predict_proba(X))
    lines = [classifier(None, cv=cv).fit(X, y, sources=sources) for cv in (10, 5)]
    assert not np.array_equal(*(model.predict_proba(X) for model in lines))


def held_out(class_pool, estimator):
    X, y, sources = class_pool()
    return HeldOut(classifier(estimator)._prepare(X, y, sources))


def test_shares_go_to_whoever_knows_the_rows_and_only_to_those_asked_for_all(class_pool):
    members = held_out(class_pool, LogisticRegression())
    y, every = members.pool.reference.y, np.arange(40)
    members.add("knows", every, np.where(np.eye(2)[y] == 1.0, 0.9, 0.1))
    members.add("guesses", every, np.full((40, 2), 0.5))
    members.add("errs", every[:20], np.where(np.eye(2)[y[:20]] == 1.0, 0.01, 0.99))
    assert [members.is_hopeful(name) for name in ("knows", "errs", "new")] == [True, False, True]
    assert members.mean_loss("knows") == pytest.approx(-np.log(0.9))
    assert members.shares() == {"knows": 1.0}
    assert np.isnan(members.mean_loss("errs"))


def test_a_member_that_names_classes_is_trusted_as_often_as_it_is_right(class_pool):
    members = held_out(class_pool, RidgeClassifier())
    y = members.pool.reference.y.copy()
    y[:10] = 1 - y[:10]
    members.add("names", np.arange(40), np.eye(2)[y])
    members.add(DEFAULT_LEARNER, np.arange(40), np.full((40, 2), 0.5))
    assert members.wrong == {"names": pytest.approx(0.25)}
    members.add("names", np.arange(40), np.eye(2)[1 - members.pool.reference.y])
    assert members.wrong == {"names": 0.5}  # no worse than a guess


@pytest.mark.parametrize(
    ("discrepancy", "n_trade_offs", "expected"),
    [("combined", 10, 18), ("combined", 1, 6), ("local", 10, 0)],
)
def test_how_many_fits_there_will_be_is_known(class_pool, discrepancy, n_trade_offs, expected):
    X, y, sources = class_pool()
    pool = classifier(LogisticRegression(), discrepancy=discrepancy)._prepare(X, y, sources)
    assert most_fits(pool, n_trade_offs) == expected  # five folds and the whole, three members
