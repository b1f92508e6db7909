"""The judge with a thousand rows, who says what could be told at all."""

import numpy as np
import pytest

pd = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")

from benchmarks.accuracy.data import REFERENCE, Draw  # noqa: E402
from benchmarks.accuracy.informed import cost_of_not_knowing, sides_table  # noqa: E402
from benchmarks.accuracy.judge import (  # noqa: E402
    BY_AGREEMENT,
    BY_LOSS,
    furthest,
    judge,
    main,
    scores,
    sides,
    table,
)
from benchmarks.accuracy.summary import CELL  # noqa: E402


class Half:
    """Knows nothing."""

    classes_ = np.array([0, 1])

    def predict_proba(self, X):
        return np.full((len(X), 2), 0.5)


class Sure:
    """Predicts the feature."""

    def predict(self, X):
        return X[:, 0]


def test_scores():
    y = np.array([0, 1, 1, 0])
    assert scores(Half(), np.zeros((4, 1)), y) == {BY_LOSS: -0.25, BY_AGREEMENT: 0.0}
    X = np.array([[0.0], [2.0]])
    assert scores(Sure(), X, X[:, 0]) == {BY_LOSS: 0.0, BY_AGREEMENT: 2.0}
    assert scores(Sure(), X, -X[:, 0])[BY_AGREEMENT] == -2.0


def made_up(rng, n_rows, *, regression):
    """Rows whose label or target is mostly in the first of three features."""
    X = rng.normal(size=(n_rows, 3))
    y = X[:, 0] + 0.3 * rng.normal(size=n_rows)
    return X, y if regression else (y > 0).astype(int)


@pytest.mark.parametrize("regression", [False, True])
def test_finds_shuffled_labels_and_cannot_find_what_is_not_there(regression):
    rng = np.random.default_rng(0)
    X, y = made_up(rng, 1200, regression=regression)
    sources = np.repeat([REFERENCE, *(f"s{i}" for i in range(10))], [100, *[50] * 10])
    rows, test = slice(0, 600), slice(600, None)
    bad = [f"s{i}" for i in range(5)]
    wrong = y[rows].copy()
    for name in bad:
        wrong[sources == name] = rng.permutation(wrong[sources == name])
    found = judge(Draw(X[rows], wrong, sources, X[test], y[test]), bad, regression=regression)
    assert found == {BY_LOSS: 1.0, BY_AGREEMENT: 1.0}
    nothing = judge(Draw(X[rows], y[rows], sources, X[test], y[test]), bad, regression=regression)
    assert max(nothing.values()) < 1.0


def test_the_table_counts_cells_below_the_line():
    cells = [("a", "grid", "none", 0.2), ("a", "grid", "none", 0.4), ("b", "grid", "none", 0.2)]
    judged = pd.DataFrame(
        [
            dict(zip(CELL, cell, strict=True)) | {BY_LOSS: loss, BY_AGREEMENT: agreement}
            for cell, loss, agreement in zip(cells, (0.9, 0.9, 1.0), (1.0, 0.8, 0.9), strict=True)
        ]
    )
    default = pd.Series([1.0, 0.5, 0.9], index=pd.MultiIndex.from_tuples(cells, names=CELL))
    lines = [line.split("|")[1:-1] for line in table(default, judged).splitlines()]
    assert [cell.strip() for cell in lines[-1]] == [
        "all",
        "3",
        "0.800 (2)",
        "0.933 (2)",
        "0.900 (2)",
        "0.967 (1)",
    ]


class Always:
    """Sure of one class."""

    classes_ = np.array([0, 1])

    def __init__(self, named):
        self.named = named

    def predict(self, X):
        return np.full(len(X), self.named)

    def predict_proba(self, X):
        return np.tile(np.where(self.classes_ == self.named, 0.9, 0.1), (len(X), 1))


@pytest.mark.parametrize(("trusted", "cost"), [([0, 0, 1], 0.0), ([0, 1, 1], 0.5)])
def test_the_trusted_rows_choose_the_side(trusted, cost):
    y_test = np.array([0, 0, 0, 1])
    draw = Draw(
        np.zeros((3, 1)), np.array(trusted), np.repeat(REFERENCE, 3), y_test[:, None], y_test
    )
    found = cost_of_not_knowing([Always(0), Always(1)], draw, regression=False)
    assert found == {"cost": cost, "wrong": float(cost > 0)}


@pytest.mark.parametrize("regression", [False, True])
def test_sides_are_known_from_many_rows(regression):
    rng = np.random.default_rng(0)
    X, y = made_up(rng, 600, regression=regression)
    sources = np.repeat([REFERENCE, "a", "b"], [100, 100, 100])
    wrong = y[:300].copy()
    wrong[sources == "b"] = -wrong[sources == "b"] if regression else 1 - wrong[sources == "b"]
    draw = Draw(X[:300], wrong, sources, X[300:], y[300:])
    assert sides(draw, ["b"], regression=regression) == {"cost": 0.0, "wrong": 0.0}
    # Whoever calls the other side clean is wrong each time, and wins by it.
    mistaken = sides(draw, ["a"], regression=regression)
    assert mistaken["wrong"] == 1.0
    assert mistaken["cost"] < -0.5


def test_a_side_of_one_label_is_not_the_likelier_one():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    y = (X[:, 0] > 0).astype(int)
    sources = np.repeat([REFERENCE, "a", "b"], [40, 80, 80])
    biased = np.where(sources == "b", 1, y[:200])
    draw = Draw(X[:200], biased, sources, X[200:], y[200:])
    assert sides(draw, ["b"], regression=False) == {"cost": 0.0, "wrong": 0.0}


def test_cells_beyond_the_line_with_two_sides():
    cells = [("a", "grid", "flip", bad) for bad in (0.0, 0.4, 0.8, 1.0)]
    index = pd.MultiIndex.from_tuples(cells, names=CELL)
    chosen = furthest(pd.Series([0.1, 0.03, 0.01, 0.1], index=index))
    assert chosen.index.tolist() == [cells[1]]
    draws = [dict(zip(CELL, cells[1], strict=True)) | {"cost": c, "wrong": c} for c in (0.0, 1.0)]
    line = sides_table(chosen, pd.DataFrame(draws)).splitlines()[-1]
    assert [cell.strip() for cell in line.split("|")[1:-1]] == [
        "a, grid, flip, 40% bad",
        "+0.0300",
        "+0.5000 ± 0.5000",
        "1 of 2",
    ]


def test_without_results(tmp_path, capsys):
    with pytest.raises(SystemExit):
        main(["--results", str(tmp_path)])
    assert "there are no results" in capsys.readouterr().err
