from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import sourcewise as sw
from sourcewise import SourceWeightedClassifier, SourceWeightedRegressor, validation
from sourcewise.estimators import base
from sourcewise.estimators.prepare import prepare


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


@pytest.mark.parametrize("discrepancy", ["combined", "plug-in"])
def test_the_pool_is_made_again_once_and_no_copy_has_it(discrepancy, monkeypatch, tmp_path):
    made = []

    def counted(*given, **known):
        made.append(prepare(*given, **known))
        return made[-1]

    monkeypatch.setattr(base, "prepare", counted)
    X, y, sources = rows(True)
    model = SourceWeightedClassifier(reference="gold", discrepancy=discrepancy, random_state=0)
    model.fit(X, y, sources=sources)
    model.report()
    near = model.at_trade_off(1.0)
    near.report()
    assert near.at_trade_off(2.0).at_trade_off(1.0).coef_ == pytest.approx(near.coef_, abs=1e-9)
    assert len(made) == 1
    sw.save(model, tmp_path / "model.skops", include_data=True)
    copies = pickle.loads(pickle.dumps(model)), copy.deepcopy(model)
    for twin in (*copies, sw.load(tmp_path / "model.skops")):
        assert twin._training.pool is None
        assert twin.at_trade_off(1.0).coef_ == pytest.approx(near.coef_, abs=1e-9)


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
