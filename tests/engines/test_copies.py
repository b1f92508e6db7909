"""Untrusted rows that repeat trusted ones have no say, and are counted."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from benchmarks.hostile.problems import PROBLEMS, draw
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sources_elsewhere import Elsewhere

import sourcewise as sw
from sourcewise.core.choices import DEFAULT, PAPER
from sourcewise.core.copies import NO_NUMBERS, NOT_HERE, TWINS, CopyRule, keep_one, more_than_chance
from sourcewise.report import notes

SIZES = (40, 30, 25, 20)


def data(seed=0, d=12):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(sum(SIZES), d))
    y = (X[:, 0] + 0.3 * rng.normal(size=len(X)) > 0).astype(int)
    return X, y, np.repeat(["gold", "a", "b", "c"], SIZES)


def with_copies(n=12, noise=0.0, seed=0, d=12):
    """Put copies of trusted rows, labels and all, among the rows of source b."""
    X, y, s = data(seed, d)
    rng = np.random.default_rng(seed + 1)
    chosen = rng.integers(SIZES[0], size=n)
    step = rng.normal(size=(n, d))
    step *= noise / np.linalg.norm(step, axis=1, keepdims=True)
    at = SIZES[0] + SIZES[1] + 3
    return (
        np.insert(X, at, X[chosen] + step, axis=0),
        np.insert(y, at, y[chosen]),
        np.insert(s, at, ["b"] * n),
    ), (X, y, s)


def model(**parameters):
    return sw.SourceWeightedClassifier(reference="gold", cv=3, random_state=0, **parameters)


def fit(rows, **parameters):
    return model(**parameters).fit(rows[0], rows[1], sources=rows[2])


@pytest.mark.parametrize("noise", [0.0, 0.2])
@pytest.mark.parametrize("sparse", [False, True])
def test_the_fit_is_that_without_the_copies(noise, sparse):
    kind = scipy.sparse.csr_array if sparse else np.asarray
    (X, y, s), (clean, clean_y, clean_s) = with_copies(noise=noise)
    found, expected = fit((kind(X), y, s)), fit((kind(clean), clean_y, clean_s))
    assert found.copies_.tolist() == [0, 0, 12, 0]
    np.testing.assert_array_equal(expected.copies_, 0)
    np.testing.assert_allclose(found.source_weights_, expected.source_weights_, atol=1e-9)
    np.testing.assert_allclose(found.discrepancies_, expected.discrepancies_, atol=1e-9)
    np.testing.assert_allclose(found.coef_, expected.coef_, atol=1e-7)
    assert found.source_rows_.tolist() == list(SIZES)


def test_the_report_names_and_counts_them():
    report = fit(with_copies()[0]).report()
    assert [row.copies for row in report.sources] == [0, 0, 12, 0]
    assert report.notes[0].startswith("12 rows of 1 source repeat trusted rows and were left out")
    assert report.notes[0].endswith("('b': 12).")
    assert report.notes[1:] == (notes.AS_YOU_DID.format(rows="12 rows"),)
    assert "12 rows of 1 source" in str(report).replace("\n", " ")
    assert report.notes[0].split(":")[0] in report.to_html()
    assert max(map(len, str(report).splitlines())) < 80
    assert fit(data()).report().notes == ()


def test_discrepancies_are_the_estimators_own():
    X, y, s = with_copies()[0]
    found = sw.estimate_discrepancies(X, y, sources=s, reference="gold", cv=3, random_state=0)
    np.testing.assert_array_equal(found.values, fit((X, y, s)).discrepancies_)


def test_a_source_is_added_without_its_copies():
    X, y, s = with_copies()[0]
    last = s == "c"
    rows = np.concatenate([X[last], X[:5]]), np.concatenate([y[last], y[:5]])
    added = fit((X[~last], y[~last], s[~last])).add_source(*rows, name="c")
    whole = fit(
        (
            np.concatenate([X[~last], rows[0]]),
            np.concatenate([y[~last], rows[1]]),
            np.concatenate([s[~last], ["c"] * 25]),
        )
    )
    assert added.copies_.tolist() == whole.copies_.tolist() == [0, 0, 12, 5]
    np.testing.assert_allclose(added.coef_, whole.coef_, atol=1e-9)


@pytest.mark.parametrize("per_piece", [1, 3])
def test_rows_elsewhere_are_left_out_there_and_counted(per_piece):
    X, y, s = with_copies()[0]
    found = model().fit_sources(Elsewhere(X, y, s, per_piece=per_piece, may_travel=True))
    assert found.copies_.tolist() == [0, 0, 12, 0]
    np.testing.assert_allclose(found.source_weights_, fit((X, y, s)).source_weights_, atol=1e-8)


def test_trusted_rows_do_not_travel_unasked():
    X, y, s = with_copies()[0]
    strangers = Elsewhere(X, y, s)
    found = model().fit_sources(strangers)
    assert strangers.rules.copies is None
    assert found.copies_ is None
    assert found.source_rows_[2] == SIZES[2] + 12
    assert found.report().notes == (notes.NOT_SOUGHT.format(why=notes.WHY[NOT_HERE]),)


def test_an_estimator_of_ones_own_gets_none_either():
    (X, y, s), clean = with_copies()
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])
    found = fit((frame, y, s), estimator=LogisticRegression())
    expected = fit(
        (pd.DataFrame(clean[0], columns=frame.columns), *clean[1:]), estimator=LogisticRegression()
    )
    assert found.copies_.tolist() == [0, 0, 12, 0]
    np.testing.assert_allclose(found.predict_proba(frame), expected.predict_proba(frame), atol=1e-9)


class Strips(LogisticRegression):
    """Takes numbers written as text."""

    def fit(self, X, y, sample_weight=None):
        return super().fit(_numbers(X), y, sample_weight)

    def predict_proba(self, X):
        return super().predict_proba(_numbers(X))

    def predict(self, X):
        return super().predict(_numbers(X))


def _numbers(X):
    if not hasattr(X, "columns"):
        return X
    return X.astype(str).apply(lambda c: c.str.removeprefix("n").astype(float)).to_numpy()


def test_rows_that_are_no_numbers_are_not_compared():
    X, y, s = data()
    frame = "n" + pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])]).astype(str)
    found = fit((frame, y, s), estimator=Strips())
    assert found.copies_ is None
    assert notes.NOT_SOUGHT.format(why=notes.WHY[NO_NUMBERS]) in found.report().notes


def test_repeating_trusted_rows_are_no_measure():
    X, y, s = with_copies()[0]
    X = np.round(X[:, :2])  # a few values: rows repeat by nature
    found = fit((X, y, s))
    assert found.copies_ is None
    assert found.report().notes == (notes.NOT_SOUGHT.format(why=notes.WHY[TWINS]),)


def test_the_papers_protocol_keeps_all_rows():
    found = fit(with_copies()[0], protocol="paper")
    assert found.copies_ is None
    assert found.report().notes == ()
    assert not PAPER.without_copies


def test_a_class_that_nobody_could_check_is_named():
    X, y, s = data()
    labels = np.array(["no", "yes"])[y].astype(object)
    labels[np.flatnonzero(s == "gold")[:3]] = "perhaps"
    labels[-20:-10] = "perhaps"
    found = fit((X, labels, s)).report().notes
    assert found == (notes.UNCHECKED.format(rows="3 rows", name="perhaps"),)


def test_a_source_of_copies_only_keeps_a_row():
    X, y, s = data()
    X[s == "c"] = X[: SIZES[3]]
    found = fit((X, y, s))
    assert found.copies_.tolist() == [0, 0, 0, SIZES[3] - 1]
    assert found.source_rows_.tolist() == [*SIZES[:3], 1]


def test_one_row_is_kept_of_each_source_of_copies():
    copied = np.array([True, True, False, True, True, True])
    codes = np.array([1, 1, 2, 2, 0, 0])
    kept = keep_one(copied, codes, 4)
    assert kept.tolist() == [False, True, False, True, False, True]


@pytest.mark.parametrize("d", [1, 2, 3, 10, 50])
def test_few_clean_rows_are_taken_for_copies(d):
    shares = []
    for seed in range(20):
        rng = np.random.default_rng([seed, d])
        trusted, others = rng.normal(size=(60, d)), rng.normal(size=(400, d))
        rule = CopyRule.learn(trusted, DEFAULT)
        assert rule.usual <= DEFAULT.copy_twins
        assert rule(trusted).all()
        shares.append(rule(others).mean())
    assert np.mean(shares) < 1.5 * DEFAULT.copy_twins
    if d >= 10:
        assert np.mean(shares) == 0.0


def test_far_from_zero_and_in_single_precision_copies_are_found():
    X = data()[0] * 1e-3 + 1e6
    rule = CopyRule.learn(X[:40], DEFAULT)
    assert rule(X).tolist() == [True] * 40 + [False] * (len(X) - 40)
    single = data()[0].astype(np.float32)
    rule = CopyRule.learn(single[:40], DEFAULT)
    assert rule(single).tolist() == [True] * 40 + [False] * (len(X) - 40)


def copied_rows(X, s):
    """Rows of source b that equal a trusted one."""
    return np.flatnonzero((X[:, None] == X[: SIZES[0]]).all(axis=2).any(axis=1) & (s == "b"))


class TestLabelsOfCopies:
    """What a source wrote on trusted rows is the plainest evidence."""

    @staticmethod
    def given(wrong, n=20, seed=0):
        (X, y, s), _ = with_copies(n, seed=seed)
        own = copied_rows(X, s)
        y = y.copy()
        y[own[:wrong]] = 1 - y[own[:wrong]]
        return X, y, s

    def test_the_source_is_warned_of(self):
        (_, said) = fit(self.given(6)).report().notes
        assert said == (
            "'b' labelled 20 of your trusted rows itself, 6 of them differently (30%)."
            + notes.WARNING
        )

    def test_slips_are_told_without_a_warning(self):
        (_, said) = fit(self.given(1)).report().notes
        assert said == "'b' labelled 20 of your trusted rows itself, 1 of them differently (5%)."

    def test_a_copy_with_noise_is_none_of_them(self):
        found = fit(with_copies(noise=0.2)[0])
        assert found.copies_.tolist() == [0, 0, 12, 0]
        assert found._copies.labels[:, :2].tolist() == [[0, 0]] * 4

    def test_numbers(self):
        X, y, s = with_copies(20)[0]
        y = X[:, 0] * 10.0
        own = copied_rows(X, s)
        y[own[:8]] += 100.0
        found = sw.SourceWeightedRegressor(reference="gold", cv=3, random_state=0)
        (_, said, *_) = found.fit(X, y, sources=s).report().notes
        assert "'b' labelled 20 of your trusted rows itself: 8 (40%) differ by more than" in said
        assert "the mean difference is +40." in said and said.endswith(notes.WARNING)

    def test_rows_that_repeat_by_nature_are_no_evidence(self):
        rng = np.random.default_rng(0)
        X = rng.integers(2, size=(60, 14)).astype(float)  # whoever has the same answers
        assert not CopyRule.learn(X, DEFAULT).exact
        assert CopyRule.learn(rng.normal(size=(60, 3)), DEFAULT).exact
        assert not CopyRule.learn(rng.normal(size=(60, 1)), DEFAULT).exact

    def test_they_survive_saving_and_adding(self, tmp_path):
        X, y, s = self.given(6)
        found = fit((X, y, s))
        sw.save(found, tmp_path / "m.skops")
        assert sw.load(tmp_path / "m.skops").report().notes == found.report().notes
        added = fit((X, y, s)).add_source(X[:9], 1 - y[:9], name="d")
        assert added._copies.labels[[2, 4], :2].tolist() == [[20, 6], [9, 9]]

    @pytest.mark.parametrize("wrong", [0, 1])
    def test_careful_sources_are_seldom_warned_of(self, wrong):
        rng = np.random.default_rng(wrong)
        table = np.full((300, 3), np.nan)
        table[:, 0] = 20
        warned = 0
        for _ in range(20):
            table[:, 1] = rng.binomial(20, notes.SLIPS * wrong, size=300)
            warned += any(
                notes.WARNING in said for said in notes.relabelled_notes(range(300), table)
            )
        assert warned <= 4  # at most one report in twenty is expected


@pytest.mark.parametrize(("trusted", "d"), [(60, 2), (60, 3), (200, 2), (200, 3)])
def test_hardly_any_report_takes_a_clean_source_for_a_holder_of_copies(trusted, d):
    # Among three hundred sources of the few columns that let rows come near each other by chance.
    wrong = 0
    for seed in range(20):
        rng = np.random.default_rng([seed, trusted, d])
        rule = CopyRule.learn(rng.normal(size=(trusted, d)), DEFAULT)
        copies = rule(rng.normal(size=(300 * 100, d))).reshape(300, 100).sum(axis=1)
        rows = 100 - copies
        wrong += more_than_chance(copies, rows, rule.usual, trusted).any()
    assert wrong <= 2


def test_copies_are_found_among_many_sources():
    copies = np.array([0, *[1] * 299, 20])
    found = more_than_chance(copies, 200 - copies, 1 / 200, 200)
    assert np.flatnonzero(found).tolist() == [300]


def test_a_column_that_hardly_varies_hides_no_copy():
    # Noise as large in it as in any other is nothing beside the distance of rows.
    rng = np.random.default_rng(0)
    trusted = np.column_stack([rng.normal(size=(40, 12)), np.zeros(40)])
    trusted[0, -1] = 0.05
    rule = CopyRule.learn(trusted, DEFAULT)
    assert rule is not None
    step = rng.normal(size=trusted.shape)
    step *= 0.3 / np.linalg.norm(step, axis=1, keepdims=True)
    assert rule(trusted + step).all()
    assert not rule(rng.normal(size=trusted.shape)).any()


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("mixed", [2, 3, 7])
def test_mixtures_of_trusted_rows_are_copies_and_clean_rows_are_not(mixed, sparse):
    rng = np.random.default_rng(mixed)
    rows = rng.normal(size=(560, 400)) * (rng.random((560, 400)) < 0.1)
    trusted, clean = rows[:60], rows[60:]
    mixtures = np.stack([trusted[rng.permutation(60)[:mixed]].mean(axis=0) for _ in range(100)])
    form = scipy.sparse.csr_array if sparse else np.asarray
    rule = CopyRule.learn(form(trusted), DEFAULT)
    assert rule(form(mixtures)).all()
    assert not rule(form(clean)).any()


def test_mixtures_are_not_looked_for_where_clean_rows_could_be_some():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 22))
    X[:, -1] *= rng.random(1000) < 0.04  # what a mixture cannot say is a column that seldom varies
    for n in (15, 21, 22, 60):
        assert CopyRule.learn(X[:n], DEFAULT)(X[n:]).mean() < 0.002


@pytest.mark.parametrize("problem", PROBLEMS)
def test_hardly_a_clean_row_is_taken_for_a_copy_or_a_mixture(problem):
    for n in (21, 30, 60, 200):
        found = [draw(problem, n, seed) for seed in range(30, 33)]
        rules = [CopyRule.learn(one.trusted.X, DEFAULT) for one in found]
        taken = [
            rule(part.X).mean()
            for rule, one in zip(rules, found, strict=True)
            for part in one.sources
        ]
        assert np.mean(taken) < 0.002


def test_after_copies_were_counted_a_source_with_gaps_can_be_added():
    X, y, s = data()
    learner = HistGradientBoostingClassifier(max_iter=2)
    found = model(estimator=learner, trade_off=1.0).fit(X, y, sources=s)
    assert found.copies_.tolist() == [0, 0, 0, 0]
    more = X[-20:].copy()
    more[::3, 2] = np.nan
    found.add_source(more, y[-20:], "gaps")
    assert found.copies_ is None
    assert notes.NOT_SOUGHT.format(why=notes.WHY[NO_NUMBERS]) in found.report().notes
