"""``sourcewise reproduce``: a part of a study, what it would cost, and what is refused."""

import pytest

from cli.running import run_here
from experiments.made_up import read_results
from sourcewise.runs import WorkerGone

PART = ("--data", "synthetic", "--runs", 1, "--only", "n=0,10", "--methods", "all data,paper")


def test_a_part_of_a_study_is_run_and_continued(tmp_path):
    done = run_here("reproduce", "products", *PART, "-o", "r.sqlite", cwd=tmp_path)
    assert (done.code, done.out, done.err) == (0, "2 runs are in r.sqlite.\n", "")
    first = read_results(tmp_path / "r.sqlite")
    assert set(first.columns["method"]) == {"all data", "paper"}
    assert set(first.columns["n"]) == {0, 10}
    assert first.settings["study"] == "products"
    again = run_here(
        "reproduce", "products", *PART, "--only", "n=1", "-o", "r.sqlite", cwd=tmp_path
    )
    assert again.out == "3 runs are in r.sqlite.\n"
    assert [p.name for p in tmp_path.iterdir()] == ["r.sqlite"]


def test_the_estimate_writes_nothing(tmp_path):
    done = run_here("reproduce", "products", *PART[:2], "--estimate", "--jobs", 2, cwd=tmp_path)
    assert done.code == 0
    assert done.out.startswith("11,000 runs; 11 were measured.\nAll of them: ")
    assert "with 2 processes" in done.out
    assert "One run of default: " in done.out and "U, one LogisticRegressionCV" in done.out
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--data", "synthetic"), "Say where the results go with -o FILE"),
        (("--data", "nowhere", "-o", "r"), "There is no folder nowhere"),
        (("--data", "fdu-mtl", "--folder", ".", "-o", "r"), "The data fdu-mtl are not there"),
        (("--data", "synthetic", "-o", "r", "--only", "n=11"), "the study has no such n"),
        (("--data", "synthetic", "-o", "r", "--only", "weight=1"), "--only takes FIELD=VALUE"),
        (("--data", "synthetic", "-o", "r", "--methods", "magic"), "There is no method 'magic'"),
        (("--data", "synthetic", "-o", "r", "--methods", ""), "There is no method ''"),
        (("--data", "synthetic", "-o", "r", "--only", "target=0002247400"), "no such target"),
        (("--data", "synthetic", "-o", "no/r"), "the folder no does not exist"),
        (("--data", ".", "-o", "r"), "0002247399.txt is missing"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(tmp_path, monkeypatch, arguments, sentence):
    monkeypatch.delenv("SOURCEWISE_DATA", raising=False)
    done = run_here("reproduce", "products", *arguments, cwd=tmp_path)
    assert done.code == 2
    assert sentence in done.err
    assert done.err.startswith("sourcewise: ") and done.err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_failure_on_the_way_is_one_sentence_and_keeps_what_is_there(tmp_path, monkeypatch):
    def gone(*_, **__):
        raise WorkerGone("A worker process ended unexpectedly.")

    monkeypatch.setattr("sourcewise.cli.reproduce.run_study", gone)
    done = run_here("reproduce", "products", *PART, "-o", "r.sqlite", cwd=tmp_path)
    assert (done.code, done.err) == (
        2,
        "sourcewise: A worker process ended unexpectedly.\n",
    )


def test_interrupted_it_says_once_that_finished_runs_are_kept(tmp_path, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("sourcewise.cli.reproduce.run_study", interrupt)
    done = run_here("reproduce", "products", *PART, "-o", "r.sqlite", cwd=tmp_path)
    assert done.code == 130
    assert done.err == (
        "sourcewise: Interrupted; finished runs are kept in r.sqlite, and the same command "
        "continues.\n"
    )
