from __future__ import annotations

import numpy as np
import pytest

from experiments.made_up import animals_rows, products_rows, rows_of, write_results
from sourcewise.experiments import results
from sourcewise.experiments.names import CORRUPTIONS, METHODS
from sourcewise.experiments.study_errors import FIELDS, arrange, read_studies
from sourcewise.progress import listening


def at(errors, row):
    """Value of a row's run in the array."""
    place = (
        errors.methods.index(row.method),
        errors.shares.index(row.p),
        errors.corruptions.index(row.corruption),
        errors.numbers.index(row.n),
        errors.targets.index(row.target),
        errors.repeats.index(row.repeat),
    )
    return errors.values[place]


@pytest.mark.parametrize("batch", [1_000_000, 7])
def test_every_row_is_where_it_belongs(tmp_path, monkeypatch, batch):
    monkeypatch.setattr(results, "BATCH", batch)
    rows = animals_rows(shares=(0.2, 1.0), repeats=2) + products_rows(numbers=(0, 10))
    studies = read_studies(write_results(tmp_path / "r.sqlite", rows, data="awa1"))
    assert studies.settings["data"] == "awa1"
    assert set(studies.errors) == {"animals", "products"}
    for row in rows:
        assert at(studies.errors[row.study], row) == row.error
    there = sum(np.isfinite(errors.values).sum() for errors in studies.errors.values())
    assert there == len(rows)


def test_whoever_waits_is_told_how_far_it_is(tmp_path, monkeypatch):
    monkeypatch.setattr(results, "BATCH", 20)
    rows = animals_rows(corruptions=("blur",), numbers=(10,), repeats=3)
    path = write_results(tmp_path / "r.sqlite", rows)
    heard = []
    with listening(lambda *message: heard.append(message)):
        read_studies(path)
    assert heard == [("results", 20, 54), ("results", 40, 54), ("results", 54, 54)]


def test_axes_are_in_the_papers_order(tmp_path):
    rows = animals_rows(shares=(0.2, 0.5, 1.0), repeats=2)
    path = write_results(tmp_path / "r.sqlite", rows[::-1])
    animals = read_studies(path).errors["animals"]
    assert animals.methods == list(METHODS)
    assert animals.corruptions == list(CORRUPTIONS)
    assert animals.shares == [1.0, 0.5, 0.2]
    assert animals.numbers == [0, 10, 59]
    assert animals.repeats == [0, 1]


def test_one_share_keeps_what_was_run_there():
    rows = rows_of("animals", "a", "blur", 10, 1.0, {"paper": [0.1, 0.2]})
    rows += rows_of("animals", "a", "label-bias", 20, 0.5, {"paper": [0.3], "all data": [0.4]})
    animals = arrange([[row[: len(FIELDS)] for row in rows]])["animals"]
    half = animals.at_share(0.5)
    assert (half.corruptions, half.numbers) == (["label-bias"], [20])
    assert half.of("paper").ravel().tolist()[0] == 0.3
    assert half.of("all data").ravel().tolist()[0] == 0.4
    assert np.isnan(half.of("default")).all()
    assert half.of("default").shape == half.of("paper").shape


def test_a_file_without_rows(tmp_path):
    assert read_studies(write_results(tmp_path / "r.sqlite", [])).errors == {}


def test_what_is_no_file_of_results(tmp_path):
    with pytest.raises(ValueError, match="no file of results"):
        read_studies(tmp_path)
    (tmp_path / "r").write_text("words")
    with pytest.raises(ValueError, match="not a file of results"):
        read_studies(tmp_path / "r")
