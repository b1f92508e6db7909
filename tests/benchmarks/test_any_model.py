"""The benchmark of models of any kind: halves apart, bars computed as they are described."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from benchmarks.accuracy.data import Draw
from benchmarks.any_model.__main__ import main, read
from benchmarks.any_model.data import CONFIRMATION, DATA_SETS, DEVELOPMENT
from benchmarks.any_model.growth import made_up
from benchmarks.any_model.report import METHODS, report
from benchmarks.any_model.runs import OURS, Run, measure, of_known_classes, plan

ROOT = Path(__file__).parents[2]


def test_the_halves_have_nothing_in_common():
    assert set(DEVELOPMENT).isdisjoint(CONFIRMATION)
    assert {*DEVELOPMENT, *CONFIRMATION} == set(DATA_SETS)
    halves = [plan(half, 1) for half in ("development", "confirmation")]
    sets, seeds = ([{getattr(r, a) for r in runs} for runs in halves] for a in ("cell", "seed"))
    assert sets[0].isdisjoint(sets[1])
    assert max(seeds[0]) < 10 <= min(seeds[1])
    for runs in halves:
        assert len(set(runs)) == len(runs)
        share = np.array([run.cell.bad for run in runs])
        assert (share == 0.0).mean() == pytest.approx(0.25)


def test_a_run_says_what_each_method_loses(tmp_path):
    run = next(
        run
        for run in plan("development", 1)
        if run.cell.data == "breast cancer" and run.cell.bad and run.learner == "forest"
    )
    row = measure(Run(run.cell, 0, "forest"), tmp_path, trees=3)
    assert set(row["errors"]) == set(METHODS)
    assert all(0.0 <= error < 0.7 for error in row["errors"].values())
    assert sum(row["shares"].values()) == pytest.approx(1.0, abs=0.01)
    assert json.loads(json.dumps(row)) == row


def row(errors, **changes):
    return {
        "data": "a",
        "bad": 0.4,
        "learner": "forest",
        "regression": False,
        "cost": 15.0,
        "errors": dict(zip(METHODS, errors, strict=True)),
        **changes,
    }


def test_bars_are_those_of_the_runs(tmp_path, capsys):
    assert METHODS[-1] == OURS
    rows = [row([0.3, 0.2, 0.1, 0.4, 0.12]), row([0.1, 0.3, 0.2, 0.4, 0.1], data="b", cost=17.0)]
    said = report(rows)
    assert "| forest | 0.4 | 2 | 0.200 | 0.250 | 0.150 | 0.400 | 0.110 |" in said
    assert "each run: +0.0100 ± 0.0100" in said
    assert "worst data set and share: +0.0200, a, 40% bad" in said
    assert "at least 40 % good: -0.0900" in said
    assert "0.4: -0.0400 ± 0.0600 (source as a feature)" in said
    assert "median 16.0" in said
    path = tmp_path / "development.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)) + '\n{"data": "cut sh')
    assert read(path) == rows
    main(["--report", "--half", "development", "--results", str(tmp_path)])
    assert said in capsys.readouterr().out
    main(["--report", "--half", "confirmation", "--results", str(tmp_path)])
    assert "There are no results." in capsys.readouterr().out


def test_made_up_sources_are_as_many_as_asked_for():
    X, y, sources = made_up(3)
    assert X.shape == (100 + 360, 20)
    assert np.unique(sources).tolist() == ["gold", "source 0", "source 1", "source 2"]
    assert set(y) == {0, 1}


def test_classes_that_the_reference_does_not_show_are_left_out():
    y, sources = np.array([0, 1, 0, 1, 2]), np.array(["reference"] * 2 + ["source 0"] * 3)
    draw = Draw(np.arange(5.0)[:, None], y, sources, np.eye(3), np.array([2, 1, 0]))
    found = of_known_classes(draw)
    assert found.y.tolist() == [0, 1, 0, 1] and found.X[:, 0].tolist() == [0.0, 1.0, 2.0, 3.0]
    assert found.sources.tolist() == sources[:4].tolist()
    assert found.y_test.tolist() == [1, 0] and len(found.X_test) == 2


def test_the_published_tables_are_those_of_the_published_runs():
    rows = read(ROOT / "benchmarks" / "any_model" / "published" / "confirmation.jsonl")
    page = (ROOT / "docs" / "decisions.md").read_text("utf-8")
    tables = [line for line in report(rows).splitlines() if line.startswith("| ")]
    assert len(tables) > 10
    assert all(line in page for line in tables)
