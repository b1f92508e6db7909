from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from sourcewise import SourceWeightedClassifier
from sourcewise.estimators.adequacy import reference_adequacy


def test_closed_form():
    found = reference_adequacy(np.array([300.0, 100.0, 500.0, 400.0]), 1, variance=0.04)
    assert found.rows == 100.0
    assert found.source_rows == 400.0
    expected = (norm.ppf(0.975) + norm.ppf(0.8)) * np.sqrt(0.04 / 100 + 0.04 / 400)
    assert found.detectable_discrepancy == pytest.approx(expected)


def test_the_detectable_discrepancy_is_found_with_the_power_stated():
    found = reference_adequacy(np.array([200.0, 300.0]), 0, variance=1.0)
    rng = np.random.default_rng(0)
    error = np.sqrt(1 / 200 + 1 / 300)
    statistic = found.detectable_discrepancy / error + rng.normal(size=200_000)
    assert np.mean(np.abs(statistic) > norm.ppf(0.975)) == pytest.approx(0.8, abs=0.005)


@pytest.mark.parametrize("others", [[400.0], [1000.0, 301.0, 5000.0]])
def test_rows_to_halve_halves(others):
    sizes = np.array([100.0, *others])
    now = reference_adequacy(sizes, 0, variance=0.1)
    assert np.isfinite(now.rows_to_halve)
    sizes[0] += now.rows_to_halve
    then = reference_adequacy(sizes, 0, variance=0.1)
    assert then.detectable_discrepancy == pytest.approx(now.detectable_discrepancy / 2)


@pytest.mark.parametrize("size", [100.0, 299.0, 300.0])
def test_small_sources_stand_in_the_way(size):
    # With infinitely many trusted rows v / m remains; that is too much once m <= 3 m_T.
    found = reference_adequacy(np.array([100.0, size]), 0, variance=0.1)
    assert found.rows_to_halve == np.inf
    assert f"about {size:.0f} rows each" in str(found)


def test_the_reference_alone():
    found = reference_adequacy(np.array([50.0]), 0, variance=0.25)
    assert found.rows_to_halve == pytest.approx(150.0)
    assert "150 more would halve that" in str(found)


def test_of_a_fitted_model(class_pool):
    X, y, sources = class_pool()
    model = SourceWeightedClassifier(reference="gold", random_state=0).fit(X, y, sources=sources)
    found = model.reference_adequacy()
    assert found.rows == pytest.approx(40)
    assert found.source_rows == pytest.approx(80)
    assert 0.0 < found.detectable_discrepancy < 1.0
