from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from sourcewise import SourceWeightedClassifier
from sourcewise.core import choices
from sourcewise.core.discrepancy.power import LabelTest
from sourcewise.core.region_power import detectable_in_regions
from sourcewise.estimators.adequacy import class_powers, reference_adequacy
from sourcewise.report.adequacy import powers_in_words


@pytest.fixture(autouse=True)
def copies_stay(monkeypatch):
    """Keep every row: few columns make chance neighbours, and this file counts rows."""
    monkeypatch.setattr(choices, "DEFAULT", replace(choices.DEFAULT, without_copies=False))


def label_test(n=60, wrong=0.6, worth=0.2, seed=0):
    """Losses of a model that is nearly sure and mostly right; random labels cost it ``wrong``."""
    rng = np.random.default_rng(seed)
    right = 0.05 + 0.1 * rng.random((2, n))
    random = np.where(rng.random((2, 8, n)) < 0.5, right[:, None], wrong)
    folds = np.stack([rng.permutation(n) % 5 for _ in range(2)])
    return LabelTest(right, random, right, random, folds, np.full(n, 1.0 / n), worth, 0.01, seed)


def test_power_grows_with_the_share_and_with_the_source():
    test = label_test()
    powers = [test.power(share, 100.0, 0.05) for share in (0.0, 0.1, 0.2, 0.5, 1.0)]
    assert powers == sorted(powers)
    assert powers[0] < 0.08  # nothing is wrong: the level
    assert powers[-1] > 0.95
    assert test.power(0.2, 20.0, 0.05) < test.power(0.2, 400.0, 0.05)


def test_the_detectable_share_is_the_first_that_is_found_often_enough():
    test = label_test()
    share = test.detectable_share(100.0, 0.05, 0.8)
    assert test.power(share, 100.0, 0.05) >= 0.8 > test.power(share - 0.05, 100.0, 0.05)
    found = reference_adequacy(np.array([60.0, 100.0]), 0, test)
    assert found.detectable_share == share
    assert found.detectable_discrepancy == pytest.approx(share * test.worth + 0.01)
    assert f"{share:.0%} of its labels are random" in str(found)


def test_nothing_is_promised_where_random_labels_escape():
    # The model knows nothing: other labels cost it as little as the right ones.
    found = reference_adequacy(np.array([60.0, 100.0]), 0, label_test(wrong=0.1))
    assert np.isnan(found.detectable_share)
    assert np.isinf(found.detectable_discrepancy)
    assert "may well go unnoticed" in str(found)


def test_nothing_is_said_where_the_power_is_not_known():
    found = reference_adequacy(np.array([60.0, 100.0]), 0, None)
    assert np.isnan(found.detectable_discrepancy)
    assert "is not known" in str(found)


@pytest.mark.parametrize("size", [100.0, 299.0, 300.0])
def test_small_sources_stand_in_the_way(size):
    # With infinitely many trusted rows the sources' own noise remains.
    found = reference_adequacy(np.array([100.0, size]), 0, label_test(100))
    assert found.rows_to_halve == np.inf
    assert f"about {size:.0f} rows each" in str(found)


@pytest.mark.parametrize("others", [[400.0], [1000.0, 301.0, 5000.0]])
def test_rows_to_halve_halve_the_noise(others):
    found = reference_adequacy(np.array([100.0, *others]), 0, label_test(100))
    noise = 1.0 / 100.0 + 1.0 / found.source_rows
    halved = 1.0 / (100.0 + found.rows_to_halve) + 1.0 / found.source_rows
    assert halved == pytest.approx(0.25 * noise)
    assert "more would halve that" in str(found)


def test_the_power_is_that_of_the_p_values():
    # Half of the labels of each source are random; sources, reference and models are drawn anew.
    said, found = [], []
    for seed in range(16):
        rng = np.random.default_rng(seed)
        sources = np.repeat(np.arange(7), [60, *[100] * 6])
        X = rng.normal(size=(len(sources), 3))
        y = (2.0 * X[:, 0] + rng.logistic(size=len(X)) > 0).astype(int)
        spoilt = (sources > 0) & (rng.random(len(y)) < 0.5)
        y[spoilt] = rng.permutation(y[spoilt])
        model = SourceWeightedClassifier(reference=0, trade_off=1.0, random_state=seed)
        model.fit(X, y, sources=sources)
        said.append(model._measured.label_test.power(0.5, 100.0, 0.05))
        found.append(np.mean(model.discrepancy_result_.p_values[1:] < 0.05))
    assert np.mean(said) == pytest.approx(np.mean(found), abs=0.1)


def test_of_a_fitted_model(class_pool):
    X, y, sources = class_pool()
    model = SourceWeightedClassifier(reference="gold", random_state=0).fit(X, y, sources=sources)
    found = model.reference_adequacy()
    assert found.rows == pytest.approx(40)
    assert found.source_rows == pytest.approx(80)
    assert found.detectable_discrepancy > 0.0


def test_of_one_class_more_labels_must_be_wrong_and_of_a_rare_one_none_are_enough():
    test = label_test()
    whole = test.detectable_share(100.0, 0.05, 0.8)
    y = np.arange(60) // 30
    halves = class_powers(test, y, ["a", "b"], 100.0)
    assert [part.rows for part in halves] == [30, 30]
    assert all(part.share >= 1.5 * whole for part in halves)
    rare = class_powers(test, np.append(np.zeros(58, dtype=int), [1, 1]), ["a", "b"], 100.0)
    assert np.isinf(rare[1].share)
    assert powers_in_words(rare).endswith("even all of 'b' (2 trusted rows) may go unnoticed.")
    assert "of 'a' (58 trusted rows)" in powers_in_words(rare)


def test_regions_with_more_rows_are_seen_into_better():
    rng = np.random.default_rng(0)
    own = np.repeat([0, 1, 2], [60, 12, 3])
    right, wrong = 0.1 * rng.random(75), 0.5 + 0.4 * rng.random(75)
    shares = detectable_in_regions(right, wrong, own, np.array([60, 12, 60]), 0.01, 0)
    assert shares[0] < shares[1] <= 1.0
    assert np.isinf(shares[2])  # three trusted rows
    nothing = detectable_in_regions(right, right, own, np.array([60, 12, 60]), 0.01, 0)
    assert np.isinf(nothing).all()


def test_a_report_states_the_power_by_class_and_by_region(class_pool):
    X, y, sources = class_pool()
    model = SourceWeightedClassifier(reference="gold", random_state=0).fit(X, y, sources=sources)
    found = model.reference_adequacy()
    assert {part.of for part in found.parts} == {"class", "region"}
    assert sum(part.rows for part in found.parts if part.of == "region") == 40
    assert "Where one class alone" in str(found) and "regions of the features" in str(found)
    assert str(found) == str(model.report().context.adequacy)
