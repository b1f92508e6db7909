"""The judge with a thousand rows, who says what could be told at all."""

import numpy as np
import pytest

pd = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")

from benchmarks.accuracy.data import REFERENCE, Draw  # noqa: E402
from benchmarks.accuracy.judge import BY_AGREEMENT, BY_LOSS, judge, main, scores, table  # noqa: E402
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


@pytest.mark.parametrize("regression", [False, True])
def test_finds_shuffled_labels_and_cannot_find_what_is_not_there(regression):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1200, 3))
    y = X[:, 0] + 0.3 * rng.normal(size=1200)
    y = y if regression else (y > 0).astype(int)
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


def test_without_results(tmp_path, capsys):
    with pytest.raises(SystemExit):
        main(["--results", str(tmp_path)])
    assert "there are no results" in capsys.readouterr().err
