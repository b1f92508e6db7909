"""Damaged files, made by a seeded generator: each works or is refused in one sentence."""

from __future__ import annotations

import os

import numpy as np
import pytest
from benchmarks.faults import model_file, table_file
from pyarrow import csv, parquet

import sourcewise as sw
from benchmarks import faults
from cli.running import TOLD, make_rows, run_here, write_csv
from sourcewise.tables.reading import open_table
from sourcewise.tables.request import TableRequest
from sourcewise.tables.training import read_training

N_TABLES, N_MODELS, N_OTHERS = 200, 104, 150


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Make a folder with a table in two formats and a model fitted to it."""
    folder = tmp_path_factory.mktemp("fuzz")
    write_csv(folder / "data.csv", make_rows(40, 40))
    parquet.write_table(csv.read_csv(folder / "data.csv"), folder / "data.parquet")
    done = run_here("fit", folder / "data.csv", *TOLD, "-o", folder / "model.skops", "-q")
    assert done.code == 0, done.err
    return folder


def assert_a_sentence(error, limit=600):
    assert type(error) in (ValueError, FileNotFoundError), repr(error)
    text = str(error)
    assert text.endswith(".") and len(text) < limit and "\n" not in text, text


@pytest.mark.parametrize("tenth", range(10))
def test_damaged_tables_work_or_are_refused_in_a_sentence(tenth, place, tmp_path):
    for seed in range(tenth, N_TABLES, 10):
        path = table_file(place, tmp_path, seed)
        try:
            training = read_training(TableRequest(path, "verdict", "vendor", "gold"))
            assert np.isfinite(training.X).all() and len(training.X) == len(training.y)
        except (ValueError, OSError) as error:
            assert_a_sentence(error)


@pytest.mark.parametrize("seed", range(3, 64, 3))
def test_damaged_tables_are_predicted_or_refused_in_a_sentence(seed, place, tmp_path):
    path = table_file(place, tmp_path, seed)
    done = run_here("predict", place / "model.skops", path, "-o", tmp_path / "p.csv", "-q")
    if done.code == 0:
        assert open_table(tmp_path / "p.csv").n_rows == open_table(path).n_rows
    else:
        assert (done.code, done.out, done.err.count("\n")) == (2, "", 1), done.err
        assert not (tmp_path / "p.csv").exists()


# -- models --------------------------------------------------------------------------------------


@pytest.mark.parametrize("eighth", range(8))
def test_damaged_models_work_or_are_refused_in_a_sentence(eighth, place, tmp_path):
    path, table = tmp_path / "model.skops", parquet.read_table(place / "data.parquet")
    outcomes = set()
    for seed in range(eighth, N_MODELS, 8):
        model_file(place, path, seed)
        try:
            model = sw.load(path)
        except ValueError as error:
            assert_a_sentence(error)
            outcomes.add("refused")
            continue
        assert len(model.predict(table)) == len(model.predict_proba(table)) == len(table)
        assert np.isfinite(model.predict_proba(table)).all()
        model.report().to_frame()
        outcomes.add("works")
    assert "refused" in outcomes


# -- what else is read, and by the same seeds in benchmarks.faults ---------------------------------

OTHERS = [name for name in faults.KINDS if not name.startswith(("models", "tables"))]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    pytest.importorskip("PIL")
    folder = tmp_path_factory.mktemp("whole")
    faults.prepare(folder)
    return folder


@pytest.mark.parametrize("name", OTHERS)
def test_other_forged_files_are_read_or_refused_in_a_sentence(name, whole, tmp_path):
    kind = faults.KINDS[name]
    expected = faults.whole(kind, whole)
    found = [faults.outcome(kind, whole, tmp_path, s, expected) for s in range(N_OTHERS)]
    assert [text for text in found if text not in ("refused", "alike", "other")] == []
    assert "refused" in found


def test_models_that_name_functions_or_hold_pickles_run_nothing(whole, tmp_path):
    for seed in range(40):
        faults.hostile_model(whole, tmp_path / "model.skops", seed)
        try:
            sw.load(tmp_path / "model.skops")
        except ValueError as error:
            assert_a_sentence(error)
        assert not (whole / "canary").exists()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="kills as in Unix")
def test_a_kill_leaves_no_file_half_written(tmp_path):
    found = {faults.killed_while_writing(tmp_path, seed) for seed in range(20)}
    assert found <= {"alike", "other"}
