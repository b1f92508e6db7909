"""Results survive, resume to the last digit, and do not mix."""

import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from experiments import small_studies
from experiments.made_up import read_results
from experiments.small_studies import animals, books, every_product, part, same_numbers
from sourcewise.experiments.estimate import estimate, unit_of
from sourcewise.experiments.grid import Only
from sourcewise.experiments.results import ResultsFile, Row, refusal
from sourcewise.experiments.study import run_study
from sourcewise.progress import listening
from sourcewise.runs import WorkerGone

ROW = Row("animals", "black", "blur", 3, 1.0, 0, "paper", 0.25, 2.0, float("nan"), 0.1, 7)


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    path = tmp_path_factory.mktemp("results") / "whole.sqlite"
    progress = run_study(animals(), path, part())
    assert (progress.done, progress.total) == (36, 36)
    return read_results(path)


def count(path):
    try:
        connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=10)
        try:
            return connection.execute("SELECT count(*) FROM results").fetchone()[0]
        finally:
            connection.close()
    except sqlite3.OperationalError:
        return 0


@pytest.mark.parametrize("jobs", [1, 2])
def test_killed_and_resumed_it_has_the_numbers_of_an_uninterrupted_run(
    tmp_path, uninterrupted, jobs
):
    path = tmp_path / "killed.sqlite"
    script = Path(small_studies.__file__)
    process = subprocess.Popen(
        [sys.executable, str(script), str(path), str(jobs)],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    until = time.monotonic() + 100
    while count(path) < 20 and time.monotonic() < until and process.poll() is None:
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    there = count(path)
    assert 20 <= there < len(uninterrupted)
    told = []
    with listening(lambda stage, done, total: told.append((stage, done, total))):
        run_study(animals(), path, part())
    same_numbers(read_results(path), uninterrupted)
    told = [message for message in told if message[0] == "runs"]
    first, last = told[0], told[-1]
    assert 0 < first[1] < 36
    assert last == ("runs", 36, 36)
    # What was there is not run again.
    assert len(told) == 1 + 36 - first[1]


def test_parts_run_one_after_the_other_give_the_same_numbers(tmp_path, uninterrupted):
    path = tmp_path / "parts.sqlite"
    fields = ["target=black,flippers", "corruption=label-bias,blur"]
    run_study(animals(), path, Only([*fields, "n=7", "repeat=1"]))
    run_study(animals(methods=("all data",)), path, Only([*fields, "p=0.5"]))
    run_study(animals(), path, Only(fields))
    same_numbers(read_results(path), uninterrupted)


def test_what_is_finished_is_not_run_again(tmp_path):
    path = tmp_path / "r.sqlite"
    study, only = books(repeats=1, methods=("reference only",)), Only(["n=0,10"])
    run_study(study, path, only)
    study.run = None
    progress = run_study(study, path, only)
    assert (progress.done, progress.total) == (2, 2)


def test_results_of_other_settings_are_not_mixed(tmp_path):
    path = tmp_path / "r.sqlite"
    only = Only(["n=0", "target=black", "corruption=blur", "repeat=0"])
    run_study(animals(methods=("reference only",)), path, only)
    before = read_results(path)
    with pytest.raises(ValueError, match=r"r\.sqlite holds results of other settings \(seed: '0'"):
        run_study(animals(methods=("reference only",), seed=1), path, only)
    study = animals(methods=("reference only",))
    study.data.X[0, 0] += 1
    with pytest.raises(ValueError, match="fingerprint"):
        run_study(study, path, only)
    same_numbers(read_results(path), before)
    assert before.settings["data"] == "synthetic"
    assert before.settings["rows per group"] == "60"


def test_a_batch_of_rows_is_written_whole_or_not_at_all(tmp_path):
    path = tmp_path / "r.sqlite"
    with ResultsFile(path, {"study": "animals"}) as file:
        with pytest.raises(sqlite3.IntegrityError):
            file.add([ROW, ROW._replace(error=None, n=7)])
        assert file.keys() == set()
        file.add([ROW])
        assert file.keys() == {ROW[:7]}
    results = read_results(path)
    assert len(results) == 1
    for name, value in ROW._asdict().items():
        np.testing.assert_equal(results.columns[name][0], value)
    assert [p.name for p in tmp_path.iterdir()] == ["r.sqlite"]


def test_what_is_no_file_of_results_is_refused(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("something else " * 100)
    for attempt in (lambda: read_results(path), lambda: ResultsFile(path, {})):
        with pytest.raises(ValueError, match=r"notes\.txt is not a file of results"):
            attempt()
    with pytest.raises(ValueError, match="no file of results"):
        read_results(tmp_path / "missing")
    assert path.read_text() == "something else " * 100


def test_the_other_studies_run(tmp_path):
    path = tmp_path / "r.sqlite"
    run_study(every_product(), path, Only(["target=0002247399,0007447868"]))
    columns = read_results(path).columns
    assert set(columns["target"]) == {"0002247399", "0007447868"}
    assert len(columns["error"]) == 8
    assert (columns["error"] < 0.5).all()


def test_the_estimate_counts_the_whole_grid():
    cost = estimate(animals(repeats=3, methods=("all data",)), Only(["target=black,blue"]))
    assert cost.runs == 6 * (1 + 6 * 2 * 2)
    assert cost.sampled == 3 + 5
    assert cost.seconds > 0


def test_the_estimate_tells_what_one_run_of_each_method_costs_and_the_unit():
    cost = estimate(animals(methods=("all data", "paper", "default")), Only(["target=black"]))
    assert set(cost.per_run) == {"all data", "paper", "default"}
    assert cost.others == ["all data", "paper"]
    assert min(cost.per_run.values()) > 0 and cost.unit > 0


@pytest.mark.parametrize("study", [books(repeats=1), every_product()], ids=["books", "every"])
def test_the_unit_is_measured_on_all_rows_of_a_run(study, monkeypatch):
    seen = []
    monkeypatch.setattr(
        "sourcewise.experiments.estimate.unit_seconds", lambda *rows: seen.append(rows) or 1.0
    )
    task = study.tasks(Only())[0]
    assert unit_of(study, task) == 1.0
    ((X, y, sources),) = seen
    assert X.dtype == np.float64 and len(X) == len(y) == len(sources)
    assert np.bincount(sources).min() > 0 and set(y.tolist()) == {0, 1}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("colour=red", "field among target, corruption, n, p, repeat"),
        ("n", "field among"),
        ("n=", "field among"),
        ("n=4", "--only n=4: the study has no such n; choose among 0, 3, 7"),
        ("target=wings", "no such target"),
    ],
)
def test_a_part_that_does_not_exist_is_refused(text, message):
    with pytest.raises(ValueError, match=message):
        animals().tasks(Only([text]))


def test_many_more_tasks_than_workers_give_the_numbers_of_one_process(tmp_path):
    study, only = books(repeats=23, methods=("reference only", "all data")), Only(["n=0,10"])
    assert run_study(study, tmp_path / "one.sqlite", only).done == 46
    assert run_study(study, tmp_path / "two.sqlite", only, jobs=2).done == 46
    one, two = (read_results(tmp_path / f"{name}.sqlite") for name in ("one", "two"))
    assert len(one) == 92
    same_numbers(one, two)


def test_with_a_worker_killed_what_is_finished_is_kept_and_continued(tmp_path, uninterrupted):
    path = tmp_path / "r.sqlite"
    with pytest.raises(WorkerGone, match="same command continues"):
        run_study(animals(killed_in_repeat=1), path, part(), jobs=2)
    assert count(path) < len(uninterrupted)
    run_study(animals(), path, part(), jobs=2)
    same_numbers(read_results(path), uninterrupted)


def test_another_programs_file_is_refused_and_left_alone(tmp_path):
    path = tmp_path / "contacts.sqlite"
    other = sqlite3.connect(path)
    other.execute("CREATE TABLE contacts (name TEXT)")
    other.commit()
    with pytest.raises(ValueError, match="is not a file of results"):
        ResultsFile(path, {"seed": "0"})
    assert other.execute("SELECT name FROM sqlite_master").fetchall() == [("contacts",)]
    other.close()


def test_a_locked_file_is_not_taken_for_a_bad_one(tmp_path):
    path = tmp_path / "results.sqlite"
    ResultsFile(path, {"seed": "0"}).close()
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    reader = sqlite3.connect(path, timeout=0.0)
    with pytest.raises(sqlite3.OperationalError) as locked:
        reader.execute("SELECT * FROM results")
    assert "in use by another process" in refusal(path, locked.value)
    holder.close()
    reader.close()


def test_identifiers_are_compared_as_text():
    wanted = Only(["target=0002247399", "n=10", "p=1.0"])
    assert wanted.takes("target", "0002247399")
    assert not wanted.takes("target", "0002247400")
    assert not wanted.takes("target", "2247399")
    assert wanted.takes("n", 10) and wanted.takes("p", 1)
