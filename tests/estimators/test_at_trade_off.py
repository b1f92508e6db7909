from __future__ import annotations

import numpy as np
import pytest

from sourcewise import SourceWeightedClassifier, SourceWeightedRegressor, validation


def rows(classification):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    z = X[:, 0] + 0.3 * rng.normal(size=300)
    sources = np.repeat(["gold", "a", "b"], 100)
    z[200:] *= -1
    return X, (z > 0 if classification else z), sources


@pytest.mark.parametrize("kind", [SourceWeightedClassifier, SourceWeightedRegressor])
@pytest.mark.parametrize("trade_off", [0.0, 2.0, np.inf])
def test_the_same_as_fitting_there(kind, trade_off):
    X, y, sources = rows(kind is SourceWeightedClassifier)
    model = kind(reference="gold", random_state=0).fit(X, y, sources=sources)
    before = model.coef_.copy()
    moved = model.at_trade_off(trade_off)
    direct = kind(reference="gold", trade_off=trade_off, random_state=0).fit(X, y, sources=sources)
    assert moved.trade_off_ == direct.trade_off_ == trade_off
    assert moved.source_weights_ == pytest.approx(direct.source_weights_)
    assert moved.coef_ == pytest.approx(direct.coef_, abs=1e-6)
    assert model.trade_off == "cv"
    assert np.array_equal(model.coef_, before)


def test_rows_are_needed():
    X, y, sources = rows(True)
    model = SourceWeightedClassifier(reference="gold", trade_off=1.0, keep_data=False)
    with pytest.raises(ValueError) as caught:
        model.fit(X, y, sources=sources).at_trade_off(2.0)
    assert str(caught.value) == validation.NO_DATA_FOR_TRADE_OFF


@pytest.mark.parametrize("trade_off", ["theory", -1.0, float("nan"), None])
def test_a_trade_off_is_a_number(trade_off):
    X, y, sources = rows(True)
    model = SourceWeightedClassifier(reference="gold", trade_off=1.0).fit(X, y, sources=sources)
    with pytest.raises(ValueError) as caught:
        model.at_trade_off(trade_off)
    assert str(caught.value) == validation.NOT_A_TRADE_OFF.format(value=trade_off)
