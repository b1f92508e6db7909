"""How the default learner's features come from the input."""

import numpy as np
import pytest

from sourcewise.core.choices import DEFAULT
from sourcewise.core.feature_map import FeatureMap


def test_proportions_of_like_features_are_kept():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3)) * [1.0, 0.5, 0.2] + [3.0, 0.0, -1.0]
    mapped = FeatureMap.from_reference(X)(X)
    spread = X.std(axis=0)
    np.testing.assert_allclose(mapped[:, :3].mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(
        mapped[:, :3].std(axis=0) / mapped[:, 0].std(), spread / spread[0], rtol=1e-10
    )
    np.testing.assert_array_equal(mapped[:, 3], 1.0)


def deviations(units, centre):
    X = np.random.default_rng(0).normal(size=(100, len(units)))
    X = (X - X.mean(axis=0)) / X.std(axis=0) + centre
    return FeatureMap.from_reference(units * X)(units * X)[:, : len(units)].std(axis=0)


@pytest.mark.parametrize("centre", [0.0, 1.0])
@pytest.mark.parametrize("units", [[1.0, 0.3, 0.01], [5.0, 5.0, 1.0, 0.02, 1e-7]])
def test_no_feature_is_left_below_a_tenth_of_the_largest(units, centre):
    expected = np.maximum(np.divide(units, max(units)), 0.1)
    found = deviations(units, centre)
    np.testing.assert_allclose(found / found[0], expected, rtol=1e-6)


def test_what_is_within_bounds_is_not_cut_off_and_all_else_is():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 3)) * [1.0, 20.0, 0.1] + [5.0, 0.0, -3.0]
    features = FeatureMap.from_reference(X)
    far = np.concatenate([features.bounds, 1.01 * features.bounds, 0.99 * features.bounds])
    mapped = features(far)[:, :3]
    np.testing.assert_allclose(np.abs(mapped[:4]), DEFAULT.largest)
    assert (np.abs(mapped[4:]) < DEFAULT.largest).all()
    np.testing.assert_allclose(features(np.clip(far, *features.bounds))[:, :3], mapped)


MIXED_UNITS = [[1e5, 1.0, 1e-3], [100.0, 1.0], [40.0, 0.3, 0.4, 0.5, 9e3]]


@pytest.mark.parametrize("centre", [5.0, -5.0])
@pytest.mark.parametrize("units", MIXED_UNITS)
def test_features_in_units_of_their_own_become_alike(units, centre):
    np.testing.assert_allclose(deviations(units, centre), 1.0, rtol=1e-6)


# A few trusted rows, or those of one place, need not lie where all rows have their centre.
@pytest.mark.parametrize("centre", [0.0, 0.6])
@pytest.mark.parametrize("units", MIXED_UNITS)
def test_components_keep_their_proportions_however_steep(units, centre):
    found = deviations(units, centre)
    expected = np.maximum(np.divide(units, max(units)), 0.1)
    np.testing.assert_allclose(found / found.max(), expected, rtol=1e-6)


def test_the_unit_of_everything_does_not_matter():
    X = np.random.default_rng(0).normal(size=(50, 4)) * [1.0, 2.0, 0.01, 5.0]
    one, other = FeatureMap.from_reference(X)(X), FeatureMap.from_reference(1e6 * X)(1e6 * X)
    np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(np.mean(one[:, :4].var(axis=0)), 1.0)


def test_features_that_do_not_vary_are_harmless():
    X = np.column_stack([np.linspace(0, 1, 20), np.full(20, 7.0)])
    features = FeatureMap.from_reference(X)
    new = features(np.array([[0.5, 7.0], [0.5, 8.0]]))
    assert np.isfinite(new).all() and abs(new[1, 1]) < 10.0
    assert np.isfinite(FeatureMap.from_reference(X[:, 1:])(X[:, 1:])).all()
    coef, intercept = features.unmap(np.array([[1.0, 2.0, 3.0]]))
    np.testing.assert_allclose(X @ coef.T + intercept, features(X) @ [[1.0], [2.0], [3.0]])


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("value", [1e20, 3.4e38, 1.7e308])
def test_placeholders_are_cut_off(value):
    X = 1e-3 * np.random.default_rng(0).normal(size=(50, 2))
    features = FeatureMap.from_reference(X)
    found = features(np.array([[value, 0.5], [-value, 0.5], [0.03, 0.5]]))
    np.testing.assert_array_equal(found[:2, 0], [DEFAULT.largest, -DEFAULT.largest])
    assert 10.0 < found[2, 0] < DEFAULT.largest
    np.testing.assert_array_equal(FeatureMap.as_given(X)(np.array([[value, 1.0]]))[0, 0], value)


# An identifier of ten digits, a market value, a time in nanoseconds.
@pytest.mark.parametrize("largest", [1e9, 1e12, 1e17])
def test_a_column_of_large_numbers_leaves_the_others_as_they_are(largest):
    rng = np.random.default_rng(0)
    rates = rng.uniform(size=(60, 4))
    X = np.column_stack([largest * (50.0 + rng.uniform(size=60)), rates])
    np.testing.assert_allclose(FeatureMap.from_reference(X)(X)[:, :5].std(axis=0), 1.0)


@pytest.mark.parametrize("placeholder", [1e10, 1e36, 1e140])
def test_a_placeholder_in_the_reference_costs_its_own_column_only(placeholder):
    X = np.random.default_rng(0).normal(size=(60, 4))
    X[7, 2] = placeholder
    found = FeatureMap.from_reference(X)(X)[:, [0, 1, 3]]
    assert found.std(axis=0).min() > 0.1


def test_what_rounding_leaves_of_constants_is_no_variation():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=(60, 4)), np.full(60, 1e9), 1e-16 * rng.normal(size=60)])
    X[::2, 4] += 1e-6
    found = FeatureMap.from_reference(X)(X)[:, :6].std(axis=0)
    assert found[:4].min() > 0.5
    assert found[4:].max() < 1e-5
