import io
from dataclasses import replace

import numpy as np
import pytest
from baseline_pools import make_pool
from sklearn.base import BaseEstimator, RegressorMixin

from sourcewise import SourceWeightedClassifier
from sourcewise.baselines import AllData, Oracle, compare
from sourcewise.baselines.comparison import METHODS, Comparison, _Progress


@pytest.fixture
def pool():
    return make_pool


def test_all_methods_by_nested_evaluation(pool, capsys):
    X, y, sources = pool({"gold": 40, "good": 60, "bad": 60})
    result = compare(X, y, sources=sources, reference="gold", n_splits=3, random_state=0)
    assert result.methods == tuple(METHODS) and len(result.methods) == 12
    assert result.losses.shape == (12, 40)
    assert set(np.unique(result.losses)) <= {0.0, 1.0}
    frame = result.to_frame()
    assert frame.columns.tolist() == [
        "method",
        "error",
        "standard_error",
        "difference",
        "difference_standard_error",
    ]
    assert frame["difference"][0] == 0
    assert max(map(len, str(result).splitlines())) <= 80
    assert capsys.readouterr().err == ""  # not a terminal


def test_every_reference_row_is_judged_by_a_model_that_has_not_seen_it(pool):
    X, y, sources = pool({"gold": 30, "good": 30})
    seen = []

    class Judge(SourceWeightedClassifier):
        def fit(self, X, y, sources=None, sample_weight=None):
            seen.append(("fit", {tuple(row) for row in X}))
            return super().fit(X, y, sources=sources)

        def predict(self, X):
            seen.append(("predict", {tuple(row) for row in X}))
            return super().predict(X)

    judge = Judge(reference="gold", trade_off=0.0, random_state=0)
    compare(X, y, sources=sources, reference="gold", methods={"sourcewise": judge}, random_state=0)
    fits = [rows for what, rows in seen if what == "fit"]
    tests = [rows for what, rows in seen if what == "predict"]
    assert len(fits) == len(tests) == 5
    trusted = {tuple(row) for row in X[sources == "gold"]}
    others = {tuple(row) for row in X[sources != "gold"]}
    for train, test in zip(fits, tests, strict=True):
        assert not train & test and test <= trusted and others <= train
    assert set.union(*tests) == trusted


def test_names_estimators_and_repeatability(pool):
    X, y, sources = pool()
    options = {"sources": sources, "reference": "gold", "n_splits": 3, "random_state": 5}
    named = compare(X, y, methods=["all data", "reference only"], **options)
    assert named.methods == ("sourcewise", "all data", "reference only")
    again = compare(X, y, methods=["all data", "reference only"], **options)
    np.testing.assert_array_equal(named.losses, again.losses)
    oracle = Oracle(clean=["good", "fine"], reference="gold", random_state=0)
    own = compare(X, y, methods={"mine": AllData(reference="gold"), "oracle": oracle}, **options)
    assert own.methods == ("sourcewise", "mine", "oracle")
    assert compare(X, y, methods="all data", protocol="paper", **options).methods[1] == "all data"


def test_wrong_requests(pool):
    X, y, sources = pool()
    with pytest.raises(ValueError, match="There is no method 'magic'; choose among 'sourcewise'"):
        compare(X, y, sources=sources, reference="gold", methods=["magic"])
    with pytest.raises(ValueError, match="The reference 'silver' is not among the sources"):
        compare(X, y, sources=sources, reference="silver")
    y[np.flatnonzero(sources == "gold")[0]] = 7
    with pytest.raises(ValueError, match="a single row of class 7"):
        compare(X, y, sources=sources, reference="gold")


def test_figures_by_hand():
    losses = np.array([[0, 0, 1, 0], [1, 0, 1, 0], [1, 1, 1, 1]], dtype=float)
    result = Comparison(("a", "b" * 60, "c"), losses)
    np.testing.assert_allclose(result.errors, [0.25, 0.5, 1.0])
    np.testing.assert_allclose(result.differences, [0.0, 0.25, 0.75])
    # Four rows held out in five folds count as 16 / 9: models share training rows.
    np.testing.assert_allclose(result.difference_standard_errors, [0.0, 0.375, 0.375])
    np.testing.assert_allclose(result.standard_errors, [0.375, np.sqrt(3 / 16), 0.0])
    in_two = replace(result, n_splits=2)
    np.testing.assert_allclose(in_two.standard_errors[0], 0.25 * np.sqrt(3.0))
    assert max(map(len, str(result).splitlines())) <= 80


def test_progress_is_shown_when_asked_for():
    stream = io.StringIO()
    with _Progress(2, True, stream) as progress:
        progress.advance()
        progress.advance()
    assert stream.getvalue().endswith("comparing [##] 2 of 2 folds\n")
    quiet = io.StringIO()
    with _Progress(2, None, quiet) as progress:
        progress.advance()
    assert quiet.getvalue() == ""


class Constant(RegressorMixin, BaseEstimator):
    def __init__(self, value):
        self.value = value

    def fit(self, X, y, sources=None):
        return self

    def predict(self, X):
        return np.full(len(X), self.value)


@pytest.fixture
def numbers():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(220, 3))
    sources = np.repeat(["gold", "good", "bad"], [60, 80, 80])
    y = 100.0 * X[:, 0] + 10.0 * rng.normal(size=220)
    y[sources == "bad"] *= -1
    return X, y, sources


def test_numbers_are_compared_by_squared_errors_in_units_of_their_variance(numbers):
    X, y, sources = numbers
    own = y[sources == "gold"]
    options = {"sources": sources, "reference": "gold", "n_splits": 3, "random_state": 0}
    found = compare(X, y, methods={"seven": Constant(7.0)}, **options)
    assert found.numbers and found.methods == ("sourcewise", "seven")
    np.testing.assert_allclose(found.losses[1], (own - 7.0) ** 2 / own.var())
    assert "mean squared error of 60 held-out reference rows (variance = 1)" in str(found)
    other_unit = compare(X, 1e6 * y, methods={"seven": Constant(7e6)}, **options)
    np.testing.assert_allclose(other_unit.losses, found.losses, rtol=1e-6)


def test_default_learners_of_numbers_are_asked_by_name(numbers):
    X, y, sources = numbers
    options = {"sources": sources, "reference": "gold", "n_splits": 3, "random_state": 0}
    found = compare(X, y, **options)
    assert found.methods == ("sourcewise", "reference only", "all data")
    assert found.errors[0] < 0.05 and found.errors[1] < 0.05 and found.errors[2] > 0.3
    assert max(map(len, str(found).splitlines())) <= 80
    whole = compare(X, np.round(y), methods={"none": Constant(0.0)}, **options)
    assert whole.numbers  # what the methods say counts, not that numbers are whole


def test_large_errors_keep_to_their_column():
    found = Comparison(("a", "b"), np.array([[0.1, 0.2], [3e7, 5e6]]), True)
    assert max(map(len, str(found).splitlines())) <= 80
