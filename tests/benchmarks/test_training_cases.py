"""The benchmark of training: its pools, its lines, and what becomes of a refusal."""

import json
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse
from benchmarks.cases import CASES, SPARSE, UNITS, Case
from benchmarks.memory import peak_memory, read_pool, write_pool

from benchmarks import memory, shapes, training
from sourcewise import SourceWeightedClassifier

POOLS = {
    "two classes": lambda: shapes.Pool(*shapes.make_pool(4, 30, 6, 1)),
    "classes": lambda: shapes.class_pool(4, 40, 6, 3, 1),
    "regression": lambda: shapes.regression_pool(4, 30, 6, 1),
    "uneven": lambda: shapes.uneven_pool(5, 10, 90, 6, 1),
    "weights": lambda: shapes.weighted_pool(4, 30, 6, 1),
    "crowd": lambda: shapes.crowd_pool(4, 40, 6, 3, n_images=100),
}
REGRESSION = Case("r", POOLS["regression"], unit="RidgeCV", regression=True)


def text():
    return shapes.text_pool(4, 30, 200, 10, 1)


@pytest.mark.parametrize("name", POOLS)
def test_every_pool_can_be_fitted_and_ends_in_a_constant(name):
    pool = POOLS[name]()
    assert len(pool.X) == len(pool.y) == len(pool.sources)
    assert pool.nbytes == pool.X.nbytes
    np.testing.assert_array_equal(pool.X[:, -1], 1.0)
    Case(name, POOLS[name], regression=name == "regression").work(pool)()


def test_text_is_sparse_with_as_many_different_words_a_row_as_asked_for():
    pool = text()
    assert scipy.sparse.issparse(pool.X) and pool.X.shape == (120, 200)
    np.testing.assert_array_equal(np.diff(pool.X.indptr), 10)
    assert pool.X.has_canonical_format
    np.testing.assert_allclose(scipy.sparse.linalg.norm(pool.X, axis=1), 1.0)
    assert 0.2 < pool.y.mean() < 0.8


def test_uneven_sources_span_the_sizes_and_the_reference_is_in_the_middle():
    counts = np.bincount(POOLS["uneven"]().sources)
    assert counts.min() == 10 and counts.max() == 90 and counts[0] == 30


def test_some_sources_labels_are_shuffled_and_no_others():
    y, sources = np.arange(30), np.repeat([0, 1, 2], 10)
    shapes.shuffle_some(np.random.default_rng(0), y, sources, 1)
    np.testing.assert_array_equal(y[sources != 1], np.arange(30)[sources != 1])
    assert sorted(y[sources == 1]) == list(range(10, 20))
    assert y[sources == 1].tolist() != list(range(10, 20))


def test_crowd_workers_label_the_same_images():
    pool = POOLS["crowd"]()
    assert len(np.unique(pool.X, axis=0)) < len(pool.X)


@pytest.mark.parametrize("name", UNITS)
def test_every_unit_can_be_measured(name):
    pool = POOLS["regression" if name == "RidgeCV" else "weights"]()
    assert UNITS[name](pool) > 0


def test_the_table_has_every_shape_once():
    names = [case.name for case in CASES]
    assert len(set(names)) == len(names)
    assert {case.unit for case in CASES} == set(UNITS)
    for case in CASES:
        assert not case.goal > case.bar


def test_adding_a_source_times_that_alone():
    pool = POOLS["two classes"]()
    model = Case("a", POOLS["two classes"], adding=True).work(pool)()
    whole = SourceWeightedClassifier(reference=0, random_state=0)
    whole.fit(pool.X, pool.y, sources=pool.sources)
    np.testing.assert_allclose(model.source_weights_, whole.source_weights_, atol=1e-8)


@pytest.mark.parametrize("case", [Case("u", POOLS["uneven"], bar=1e9), REGRESSION])
def test_a_line_says_all_that_the_table_shows(case):
    line = training.line_of(case, 2, 60.0, memory=False)
    assert line["pairs"] == 2
    assert line["range"][0] <= line["ratio"] <= line["range"][1]
    cells = training.cells_of(line)
    assert len(cells) == len(training.HEADS) == len(training.WIDTHS)
    assert cells[7] == ("yes" if case.bar > 1 else "")
    assert "nan" not in training.write_line(cells)


def test_a_line_that_takes_long_is_not_repeated():
    case = Case("p", POOLS["two classes"], unit="CPU s")
    assert len(training.pairs_of(case, case.pool(), 3, 0.0)) == 1


def test_a_refusal_of_sparse_rows_is_a_line_of_its_own(monkeypatch):
    def refuse(self, *_, **__):
        raise TypeError("not sparse")

    monkeypatch.setattr(SourceWeightedClassifier, "fit", refuse)
    line = training.line_of(Case("s", text, unit="CPU s", bar=10.0), 1, 60.0, memory=False)
    assert line["refused"] == "not sparse"
    cells = training.cells_of(line)
    assert len(cells) == len(training.WIDTHS) and "refused" in cells
    with pytest.raises(TypeError):
        training.line_of(Case("d", POOLS["two classes"]), 1, 60.0, memory=False)


def test_sparse_rows_are_measured_once_they_are_taken(monkeypatch):
    monkeypatch.setattr(SourceWeightedClassifier, "fit", lambda self, *_, **__: sum(range(10**5)))
    line = training.line_of(Case("s", text, unit="CPU s"), 1, 60.0, memory=False)
    assert "refused" not in line and line["ratio"] > 0


def test_memory_is_held_against_the_bar_where_the_input_is_large():
    line = {"multiple": 3.5, "megabytes": 300.0, "memory bar": 3.0, "megabytes bar": np.inf}
    assert training.memory_cells({**line, "input megabytes": 1.0}) == ("3.5x, 300 MB", "", "")
    assert training.memory_cells({**line, "input megabytes": 50.0})[1:] == ("3x", "NO")
    assert training.memory_cells({**line, "input megabytes": 50.0, "memory bar": 4.0})[2] == "yes"
    small = {**line, "input megabytes": 50.0, "memory bar": 4.0, "megabytes bar": 200.0}
    assert training.memory_cells(small)[2] == "NO"


@pytest.mark.parametrize("make", [POOLS["weights"], POOLS["classes"], text])
def test_a_pool_is_read_as_it_was_written(make, tmp_path):
    pool = make()
    write_pool(pool, tmp_path)
    again = read_pool(tmp_path)
    assert (again.X != pool.X).sum() == 0
    assert again.nbytes == pool.nbytes
    np.testing.assert_array_equal(again.y, pool.y)
    np.testing.assert_array_equal(again.sources, pool.sources)
    np.testing.assert_array_equal(again.weights, pool.weights)


HELD_FOR_A_MOMENT = """
import json
import subprocess
import sys
import numpy as np
from benchmarks import memory, shapes
from benchmarks.cases import Case

pool = shapes.Pool(*shapes.make_pool(4, 500, 100, 1))
Case.work = lambda self, pool: lambda: np.ones((200, *pool.X.shape)).sum()
print(json.dumps(memory.measure(Case("m", lambda: pool), pool)))
"""


def test_memory_that_is_held_for_a_moment_is_seen():
    # In a fresh process: memory that lies idle in this one would be used first, unseen.
    command = [sys.executable, "-c", HELD_FOR_A_MOMENT]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    found = json.loads(done.stdout)
    assert 150 < found["multiple"] < 250
    assert found["megabytes"] > 300


def test_memory_is_measured_in_a_process_of_its_own():
    case = next(case for case in CASES if case.name.startswith("products 11"))
    found = peak_memory(case, case.pool())
    assert found["multiple"] >= 1.0 and found["megabytes"] > 10


def test_the_command_for_memory_explains_itself(capsys):
    with pytest.raises(SystemExit) as end:
        memory.main(["--help"])
    assert end.value.code == 0 and "--case" in capsys.readouterr().out
    with pytest.raises(SystemExit) as end:
        memory.main(["--case", "nothing of that name"])
    assert end.value.code == 2


def test_the_bar_of_sparse_rows_is_put_to_the_test():
    (large,) = (case for case in CASES if case.name.startswith("sparse 20000"))
    assert large.memory == SPARSE
    few = shapes.text_pool(1, 10, 20_000, 100, 0)  # all rows have as many words
    assert 2000 * few.X.data.nbytes > 1e6 * memory.COMPARABLE_MEGABYTES


def test_lines_are_chosen_by_words(capsys):
    training.main(["--only", "wide", "sparse", "--list"])
    names = capsys.readouterr().out.splitlines()
    assert len(names) == 6 and all("wide" in name or "sparse" in name for name in names)
    with pytest.raises(SystemExit):
        training.main(["--only", "nothing of that name"])


def test_the_table_is_printed_and_written(tmp_path, monkeypatch, capsys):
    cases = (Case("tiny", POOLS["two classes"], bar=1e-9, goal=1e-10), REGRESSION)
    monkeypatch.setattr(training, "CASES", cases)
    path = tmp_path / "costs.json"
    training.main(["--only", "tiny", "--repeats", "1", "--no-memory", "--json", str(path)])
    printed = capsys.readouterr().out.splitlines()
    assert printed[1].startswith("tiny ") and "NO" in printed[1] and len(printed) == 2
    (line,) = json.loads(path.read_text(), parse_constant=pytest.fail)["costs"]
    assert line["name"] == "tiny" and line["bar"] == 1e-9 and line["megabytes bar"] is None
