from __future__ import annotations

import sys

import matplotlib as mpl
import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

import sourcewise as sw
from sourcewise.report import DiscrepancyDisplay, SourceWeightsDisplay, WeightPathDisplay

mpl.use("Agg")
DISPLAYS = [SourceWeightsDisplay, WeightPathDisplay, DiscrepancyDisplay]


@pytest.fixture(scope="module")
def model():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    y = X[:, 0] > 0
    y[300:] = ~y[300:]
    sources = np.repeat(["gold", "a $x$ source", "<b>", "flipped" * 20], 100)
    fitted = sw.SourceWeightedClassifier(reference="gold", trade_off="theory", random_state=0)
    return fitted.fit(X, y, sources=sources)


@pytest.fixture(autouse=True)
def close_figures():
    import matplotlib.pyplot as plt

    yield
    plt.close("all")


@pytest.mark.parametrize("display", DISPLAYS)
def test_contract(display, model):
    import matplotlib.pyplot as plt

    drawn = display.from_estimator(model)
    assert drawn.ax_.figure is drawn.figure_
    drawn.figure_.canvas.draw()
    _, ax = plt.subplots()
    assert display.from_estimator(model, ax=ax).ax_ is ax
    again = drawn.plot(ax=ax)
    assert again is drawn
    assert drawn.ax_ is ax


@pytest.mark.parametrize("display", DISPLAYS)
def test_unfitted(display):
    with pytest.raises(NotFittedError):
        display.from_estimator(sw.SourceWeightedClassifier())


@pytest.mark.parametrize("display", DISPLAYS)
def test_missing_matplotlib_is_said(display, model, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match="pip install 'matplotlib"):
        display.from_estimator(model)


def test_weights_are_the_models(model):
    drawn = SourceWeightsDisplay.from_estimator(model, alpha=0.5)
    widths = [bar.get_width() for bar in drawn.bars_]
    assert widths == sorted(model.source_weights_.tolist(), reverse=True)
    assert drawn.bars_[0].get_alpha() == 0.5
    labels = [tick.get_text() for tick in drawn.ax_.get_yticklabels()]
    assert r"a \$x\$ source" in labels


def test_path_ends_are_right(model):
    drawn = WeightPathDisplay.from_estimator(model)
    first = [line.get_ydata()[0] for line in drawn.lines_]
    last = [line.get_ydata()[-1] for line in drawn.lines_]
    assert first[0] == pytest.approx(1.0)
    assert last == pytest.approx([0.25] * 4, abs=0.01)


def test_intervals_do_not_cross_zero(model):
    drawn = DiscrepancyDisplay.from_estimator(model)
    assert len(drawn.intervals_) == 4
    assert drawn.discrepancies.tolist() == sorted(model.discrepancies_.tolist())
