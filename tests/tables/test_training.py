from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from pyarrow.csv import write_csv

from sourcewise.progress import listening
from sourcewise.tables import reading
from sourcewise.tables.labels import MOST_CLASSES
from sourcewise.tables.request import TableRequest
from sourcewise.tables.training import read_training


def made_up(n=200, seed=0):
    rng = np.random.default_rng(seed)
    who = rng.permutation(np.repeat(["b", "gold", "a"], [n // 2, n // 4, n // 4]))
    return pa.table(
        {
            "x": np.arange(n, dtype=np.float32),
            "c": rng.choice(["u", "v"], n),
            "y": rng.integers(0, 2, n),
            "who": who,
        }
    )


def read(path, **changes):
    return read_training(
        TableRequest(
            **{"data": Path(path), "label": "y", "source": "who", "reference": "gold", **changes}
        )
    )


@pytest.fixture
def small_batches(monkeypatch):
    monkeypatch.setattr(reading, "BATCH_ROWS", 7)


@pytest.mark.parametrize("kind", ["csv", "parquet", "folder"])
def test_rows_are_grouped_with_the_reference_first(tmp_path, kind, small_batches):
    table = made_up()
    path = tmp_path / "data"
    if kind == "csv":
        write_csv(table, path)
    elif kind == "parquet":
        parquet.write_table(table, path, row_group_size=31)
    else:
        path.mkdir()
        parquet.write_table(table.slice(0, 90), path / "1.parquet", row_group_size=17)
        parquet.write_table(table.slice(90), path / "2.parquet")
    found = read(path)
    who, x, y = (table[name].to_numpy(zero_copy_only=False) for name in ("who", "x", "y"))
    others = list(dict.fromkeys(name for name in who.tolist() if name != "gold"))
    assert found.names == ["gold", *others]
    for i, name in enumerate(found.names):
        rows = found.rows(i)
        assert found.X[rows, 0].tolist() == x[who == name].tolist()
        assert found.y[rows].tolist() == y[who == name].tolist()
    assert found.codes.tolist() == np.repeat([0, 1, 2], found.counts).tolist()
    assert found.X.dtype == ("float64" if kind == "csv" else "float32")


def test_progress_is_reported(tmp_path, small_batches):
    parquet.write_table(made_up(), tmp_path / "d.parquet")
    told = []
    with listening(lambda *message: told.append(message)):
        read(tmp_path / "d.parquet")
    shares = [done / total for stage, done, total in told if stage == "reading"]
    assert shares == sorted(shares)
    assert shares[-1] == 1.0


def test_untrusted_rows_have_no_say_in_the_columns(tmp_path):
    table = made_up()
    who = table["who"].to_numpy(zero_copy_only=False)
    x = table["x"].to_numpy().copy()
    x[who != "gold"] = 1e6
    c = table["c"].to_numpy(zero_copy_only=False).copy()
    c[who == "a"] = "invented"
    for name, other in (("x", x), ("c", c)):
        changed = table.set_column(table.column_names.index(name), name, pa.array(other))
        parquet.write_table(changed, tmp_path / f"{name}.parquet")
        parquet.write_table(table, tmp_path / "d.parquet")
        rules = read(tmp_path / f"{name}.parquet").preprocessor.rules_
        assert rules == read(tmp_path / "d.parquet").preprocessor.rules_


@pytest.mark.parametrize(
    ("labels", "task", "classification"),
    [
        (["no", "yes"] * 100, "auto", True),
        ([True, False] * 100, "auto", True),
        ([0, 1] * 100, "auto", True),
        ([0.0, 1.0] * 100, "auto", True),
        ([0.5, 1.0] * 100, "auto", False),
        (list(range(200)), "auto", False),
        ([0, 1] * 100, "regression", False),
        ([True, False] * 100, "regression", False),
        ([k % 25 for k in range(200)], "classification", True),
    ],
)
def test_tasks(tmp_path, labels, task, classification):
    table = made_up().set_column(2, "y", pa.array(labels))
    if labels[:2] != [True, False]:
        table = table.set_column(3, "who", pa.array(["gold"] * 100 + ["a"] * 100))
    parquet.write_table(table, tmp_path / "d.parquet")
    found = read(tmp_path / "d.parquet", task=task)
    assert found.classification is classification
    assert (found.y.dtype.kind == "f") is not classification


@pytest.mark.parametrize(("values", "classes"), [(MOST_CLASSES, True), (MOST_CLASSES + 1, False)])
def test_whole_numbers_are_classes_up_to_so_many_among_the_trusted_rows(values, classes):
    table = made_up()
    labels = np.zeros(table.num_rows, dtype=int)
    trusted = np.flatnonzero(table["who"].to_numpy(zero_copy_only=False) == "gold")
    labels[trusted] = np.arange(len(trusted)) % values
    found = read_training(TableRequest(table.set_column(2, "y", [labels]), "y", "who", "gold"))
    assert found.classification is classes


def test_a_label_that_differs_by_capitals_and_spaces_is_pointed_out():
    table = made_up()
    labels = np.where(table["y"].to_numpy() == 1, "very good", "bad").astype(object)
    labels[int(np.flatnonzero(table["who"].to_numpy(zero_copy_only=False) == "a")[0])] = "VeryGood "
    asked = TableRequest(table.set_column(2, "y", [labels.tolist()]), "y", "who", "gold")
    with pytest.raises(ValueError, match="'VeryGood '.*, where it has 'very good'; add trusted"):
        read_training(asked)


def test_features_and_drop(tmp_path):
    parquet.write_table(made_up(), tmp_path / "d.parquet")
    only = read(tmp_path / "d.parquet", features=("x",))
    less = read(tmp_path / "d.parquet", drop=("c",))
    for found in (only, less):
        assert found.preprocessor.columns_ == ["x"]


def test_reference_file_has_a_name_of_its_own(tmp_path):
    table = made_up()
    parquet.write_table(table, tmp_path / "d.parquet")
    write_csv(table.slice(0, 30).drop_columns("who"), tmp_path / "trusted.csv")
    found = read(tmp_path / "d.parquet", reference=None, reference_file=tmp_path / "trusted.csv")
    assert found.names[0] == "reference"
    assert found.counts[0] == 30
    with pytest.raises(ValueError, match="already has a source named 'gold'"):
        read(tmp_path / "d.parquet", reference_file=tmp_path / "trusted.csv")


def test_small_sources_are_left_out_by_request(tmp_path):
    table = made_up()
    who = table["who"].to_numpy(zero_copy_only=False).copy()
    who[5] = "lonely"
    parquet.write_table(table.set_column(3, "who", pa.array(who)), tmp_path / "d.parquet")
    with pytest.raises(ValueError, match="'lonely' has one row"):
        read(tmp_path / "d.parquet")
    found = read(tmp_path / "d.parquet", min_rows=2)
    assert found.left_out == {"lonely": 1}
    assert len(found.X) == 199
    assert 5.0 not in found.X[:, 0]


def test_files_of_a_folder_must_agree(tmp_path):
    parquet.write_table(made_up(), tmp_path / "1.parquet")
    parquet.write_table(made_up().drop_columns("c"), tmp_path / "2.parquet")
    with pytest.raises(ValueError, match="other columns than"):
        read(tmp_path)


def test_parquet_cut_short(tmp_path):
    parquet.write_table(made_up(5000), tmp_path / "d.parquet")
    content = (tmp_path / "d.parquet").read_bytes()
    (tmp_path / "d.parquet").write_bytes(content[: len(content) // 2])
    with pytest.raises(ValueError, match="not a Parquet file, or it is damaged"):
        read(tmp_path / "d.parquet")
