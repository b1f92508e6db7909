from __future__ import annotations

import numpy as np
import pytest

from sourcewise import SourceWeightedClassifier, SourceWeightedRegressor
from sourcewise.core.discrepancy import Discrepancies
from sourcewise.core.discrepancy.result import LACKING, NO_WITNESS, Witness
from sourcewise.report import reasons as words
from sourcewise.report.reasons import reasons, survives
from sourcewise.report.verdict import verdict


def draw(n, rng, weights):
    X = rng.normal(size=(n, len(weights)))
    return X, (X @ weights + 0.3 * rng.normal(size=n) > 0).astype(int)


def reasons_of(pool, **parameters):
    model = SourceWeightedClassifier(reference="gold", trade_off=1.0, random_state=0, **parameters)
    model.fit(
        np.concatenate([X for X, _ in pool.values()]),
        np.concatenate([y for _, y in pool.values()]),
        sources=np.repeat(list(pool), [len(y) for _, y in pool.values()]),
    )
    return {row.source: row.reason for row in model.report().sources}


def test_reasons_of_real_sources():
    rng = np.random.default_rng(0)
    truth = np.array([1.0, 1.0, 0.0, 0.0])
    pool = {
        "gold": draw(120, rng, truth),
        "good": draw(300, rng, truth),
        "noise": (draw(300, rng, truth)[0], rng.integers(0, 2, size=300)),
        "tiny": draw(3, rng, truth),
    }
    assert reasons_of(pool) == {
        "gold": words.REFERENCE,
        "good": words.AGREES,
        "noise": words.LABELS,
        "tiny": words.TOO_FEW,
    }


def test_a_source_on_which_only_its_own_model_shows_the_difference():
    rng = np.random.default_rng(0)
    X, y = draw(150, rng, np.array([1.0, 0.0, 0.0, 0.0]))
    # This source shows rows for which the reference's model is right, and a shortcut that is
    # perfect here and worthless elsewhere; only the source's own model falls for it.
    X_near, y_near = draw(400, rng, np.array([1.0, 0.0, 0.0, 0.0]))
    X_near[:, 0] *= 0.05
    X_near[:, 1] = 4.0 * (2 * y_near - 1)
    flip = rng.random(400) < 0.08
    pool = {"gold": (X, y), "shortcut": (X_near, np.where(flip, 1 - y_near, y_near))}
    assert reasons_of(pool, discrepancy="local")["shortcut"] == words.MODEL
    assert reasons_of(pool)["shortcut"] == words.FEATURES  # which lie elsewhere, too


@pytest.mark.parametrize("discrepancy", ["cross-fit", "plug-in"])
def test_linear_discrepancies_speak_of_labels(discrepancy):
    rng = np.random.default_rng(1)
    truth = np.array([1.0, 1.0])
    pool = {"gold": draw(100, rng, truth), "wrong": draw(150, rng, -truth)}
    assert reasons_of(pool, discrepancy=discrepancy)["wrong"] == words.LABELS


def made_up(p_values, hypotheses, errors):
    n = len(p_values)
    worse_on = {"source model": "reference"}
    witnesses = tuple(
        Witness(h, worse_on.get(h, "source")) if h else NO_WITNESS for h in hypotheses
    )
    return Discrepancies(np.full(n, 0.1), np.array(errors), np.array(p_values), witnesses)


def test_each_sentence_from_made_up_evidence():
    found = made_up(
        p_values=[1e-4, 1.0, 1e-4, 1e-4, 0.4, 0.4],
        hypotheses=["reference model", None, "source model", "separating model of class 2"]
        + ["reference model"] * 2,
        errors=[0.01, 0.0, 0.01, 0.01, 0.01, 0.2],
    )
    # The last has fewer rows than the reference, the one before as many.
    expected = np.array([0.01, 0.01, 0.01, 0.01, 0.01, 0.02])
    assert reasons(found, 1, reference_gain=0.2, expected_errors=expected) == [
        words.LABELS,
        words.REFERENCE,
        words.MODEL,
        words.LABELS,
        words.AGREES,
        words.TOO_FEW,
    ]


def test_too_few_rows_begins_where_random_labels_would_escape():
    gain = 0.14
    for error, expected in [(0.0499, words.AGREES), (0.0501, words.TOO_FEW)]:
        found = made_up([1.0, 0.5], [None, "reference model"], [0.0, error])
        assert reasons(found, 0, gain, np.array([0.01, 0.02]))[1] == expected


def test_the_reference_is_too_small_where_more_rows_of_the_source_would_not_do():
    gain, n_reference, variance = 0.14, 60, 0.07
    for n_source, unlucky, expected in [
        (500, 0.06, words.SMALL_REFERENCE),  # has more rows than the reference
        (60, 0.06, words.SMALL_REFERENCE),
        (59, 0.06, words.TOO_FEW),
        (500, 0.0, words.AGREES),
        (20, 0.0, words.TOO_FEW),
    ]:
        sizes = np.array([n_reference, n_source])
        errors = np.sqrt(variance * (1.0 / sizes + 1.0 / n_reference))
        found = made_up([1.0, 0.5], [None, "reference model"], [0.0, unlucky])
        assert reasons(found, 0, gain, errors)[1] == expected
    # Of half the signal a source of any size would be told too little by these trusted rows.
    found = made_up([1.0, 0.5], [None, "reference model"], [0.0, 0.0])
    assert reasons(found, 0, gain / 2, errors)[1] == words.SMALL_REFERENCE


def test_a_clean_source_is_not_blamed_for_what_the_reference_does_not_know():
    rng = np.random.default_rng(0)
    said = []
    for _ in range(3):
        pool = {
            name: (rng.normal(size=(n, 6)), rng.integers(0, 2, n))  # nothing is known of labels
            for name, n in (("gold", 60), ("large", 500), ("few", 10))
        }
        said += [reasons_of(pool)[name] for name in ("large", "few")]
    assert words.TOO_FEW not in said and said.count(words.SMALL_REFERENCE) >= 4


def test_a_small_error_by_luck_does_not_count():
    found = made_up([1.0, 0.5], [None, "reference model"], [0.0, 0.001])
    assert reasons(found, 0, 0.2, np.array([0.01, 0.01]))[1] == words.AGREES
    assert reasons(found, 0, 0.2, np.array([0.01, 0.1]))[1] == words.TOO_FEW


def test_nothing_agrees_with_a_reference_that_knows_nothing():
    found = made_up([1.0, 0.5], [None, "reference model"], [0.0, 1e-6])
    assert reasons(found, 0, -0.01, np.array([0.01, 0.02]))[1] == words.SMALL_REFERENCE


class TestBenjaminiHochberg:
    def test_by_hand(self):
        # Thresholds 0.01 0.02 0.03 0.04 0.05: the third is missed, the fourth is met, so the
        # first four count; the fifth does not.
        p_values = np.array([0.2, 0.039, 0.001, 0.035, 0.02])
        assert survives(p_values).tolist() == [False, True, True, True, True]

    def test_one_at_the_threshold(self):
        assert survives(np.array([0.05])).tolist() == [True]
        assert survives(np.array([0.051])).tolist() == [False]
        assert survives(np.array([0.03, 0.9])).tolist() == [False, False]

    def test_none(self):
        assert survives(np.array([])).tolist() == []

    def test_missing_p_values_do_not_count(self):
        assert survives(np.array([np.nan, 0.001, np.nan])).tolist() == [False, True, False]

    def test_many_clean_sources_are_left_alone(self):
        # Uniform p-values: one at a time, one in twenty would be accused.
        p_values = (np.arange(1000) + 0.5) / 1000
        assert not survives(p_values).any()

    def test_the_reference_does_not_count_among_the_tests(self):
        hypotheses = [None, "reference model"]
        found = made_up([1.0, 0.04], hypotheses, [0.0, 0.01])
        assert reasons(found, 0, 0.2, np.zeros(2))[1] == words.LABELS


def test_a_model_that_does_better_on_the_reference_does_not_fail_there():
    better = Discrepancies(
        np.array([0.0, 0.1]),
        np.array([0.0, 0.01]),
        np.array([1.0, 1e-4]),
        (NO_WITNESS, Witness("source model", "source")),
    )
    assert reasons(better, 0, 0.2, np.zeros(2))[1] == words.LABELS


def test_a_source_set_aside_with_a_small_p_value_is_not_said_to_agree():
    p_values = [1.0, 0.03, 0.4, 0.5, 0.6]
    found = made_up(p_values, [None] + ["reference model"] * 4, [0.0] + [0.01] * 4)
    assert reasons(found, 0, 0.2, np.zeros(5))[1] == words.AGREES
    assert reasons(found, 0, 0.2, np.zeros(5), cutoff=0.05)[1] == words.LABELS


def test_far_features_tell_against_a_source_that_was_set_aside():
    p_values = [1.0, 0.4, 1e-4, 0.4]
    found = made_up(p_values, [None, "features", "features", "joint model"], [0.0] + [0.01] * 3)
    spared = reasons(found, 0, 0.2, np.zeros(4))
    assert spared[1:] == [words.AGREES, words.FEATURES, words.AGREES]
    set_aside = reasons(found, 0, 0.2, np.zeros(4), cutoff=0.05)
    assert set_aside[1:] == [words.FEATURES, words.FEATURES, words.DOUBTFUL]


def test_a_source_that_was_set_aside_without_a_small_p_value_is_doubted_if_it_lies_far():
    # All discrepancies are 0.1, the third's within two standard errors.
    found = made_up([1.0, 0.4, 0.4], [None] + ["joint model"] * 2, [0.0, 0.04, 0.06])
    assert reasons(found, 0, 0.2, np.zeros(3))[1:] == [words.AGREES] * 2
    set_aside = reasons(found, 0, 0.2, np.zeros(3), cutoff=0.05)
    assert set_aside[1:] == [words.DOUBTFUL, words.AGREES]


def test_shuffled_sources_that_were_set_aside_are_not_said_to_agree():
    rng = np.random.default_rng(0)
    n = 510
    X = rng.normal(size=(n, 10))
    y = X[:, :3] @ [2.0, -1.5, 1.0] + 1.5 * rng.normal(size=n)
    source = np.repeat(["gold", *(f"v{i}" for i in range(6))], [30, *[80] * 6])
    for bad in ("v0", "v1", "v2"):
        y[source == bad] = rng.permutation(y[source == bad])
    model = SourceWeightedRegressor(reference="gold", random_state=0).fit(X, y, sources=source)
    found = {row.source: row for row in model.report().sources}
    for bad in ("v0", "v1", "v2"):
        assert found[bad].weight < 0.01
        assert found[bad].reason in words.FOUND
    assert not {found[good].reason for good in ("v3", "v4", "v5")} & set(words.FOUND)


def test_mixed_up_columns_are_named_for_what_they_are():
    rng = np.random.default_rng(3)
    truth = np.array([1.0, 1.0, 0.5, 0.0, 0.0, 0.0])
    scale = np.array([3.0, 2.0, 1.0, 0.5, 0.2, 0.1])
    pool = {}
    for name in ("gold", "one", "two", "three", "mixed up"):
        X, y = draw(100, rng, truth)
        X = X * scale
        pool[name] = (X[:, ::-1] if name == "mixed up" else X), y
    found = reasons_of(pool)
    assert found["mixed up"] == words.FEATURES
    assert {found[name] for name in ("one", "two", "three")} == {words.AGREES}


def test_rightly_labelled_rows_from_elsewhere_are_not_said_to_be_mislabelled():
    # Three tenths of the range: harder rows, which p-values notice, and labels that are right.
    found = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        sources = np.repeat(["gold", *"abcd"], [80, *[120] * 4])
        X = rng.normal(size=(len(sources), 5))
        X[sources != "gold"] *= 0.3
        y = (3.0 * X[:, 0] + rng.logistic(size=len(sources)) > 0).astype(int)
        model = SourceWeightedClassifier(reference="gold", random_state=0)
        report = model.fit(X, y, sources=sources).report()
        found += [row.reason for row in report.sources[1:]]
        assert len(verdict(report).agree) >= 2
        said = report.to_html().count(f"<span>{words.DIFFERS}</span>")
        assert said == [row.reason for row in report.sources].count(words.DIFFERS)
    assert found.count(words.DIFFERS) >= 6
    assert found.count(words.LABELS) <= 2


def test_a_difference_within_noise_that_cost_no_weight_is_no_reproach():
    errors = np.array([0.01, 0.06, 0.04, 0.06])
    found = Discrepancies(np.array([0.0, 0.1, 0.1, 0.1]), errors, np.full(4, 1e-4), (LACKING,) * 4)
    told = reasons(found, 0, 1.0, np.zeros(4), cutoff=0.15)
    assert told[1:] == [words.DIFFERS, words.LABELS, words.DIFFERS]
    assert reasons(found, 0, 1.0, np.zeros(4), cutoff=0.05)[1:] == [words.LABELS] * 3


def test_to_differ_is_not_to_do_harm():
    # Small p-values all; the first keeps half of its weight, the second less, the third none.
    found = Discrepancies(
        np.array([0.0, 0.1, 0.15, 0.3]),
        np.array([0.0, 0.01, 0.01, 0.01]),
        np.full(4, 1e-4),
        (LACKING,) * 4,
    )
    told = reasons(found, 0, 1.0, np.zeros(4), cutoff=0.2)
    assert told[1:] == [words.DIFFERS, words.LABELS, words.LABELS]
    # Where every source counts by its rows, weights say nothing about harm.
    assert reasons(found, 0, 1.0, np.zeros(4))[1] == words.LABELS
