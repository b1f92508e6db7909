"""What the command writes and says beside its results: no formulas, no traceback, no riddles."""

from __future__ import annotations

import csv
import json
import re

import pytest

from cli.running import TOLD, make_rows, run_here, write_csv
from sourcewise.cli.fit import LEFT_OUT_TEXT

FORMULAS = ("=cmd|'/c calc'!A1", "+1+1", "-2", "@SUM(A1)")


def cells(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


@pytest.fixture(scope="module")
def odd(tmp_path_factory):
    """Return a folder in which names, labels and columns begin like formulas."""
    folder = tmp_path_factory.mktemp("odd")
    columns = make_rows(names=("gold", *FORMULAS[:3]))
    columns["verdict"] = ["=keep" if v == "keep" else "@return" for v in columns["verdict"]]
    columns["+note"] = [f"=row{k}" for k in range(len(columns["size"]))]
    write_csv(folder / "odd.csv", columns)
    told = ("--drop", "+note", "-o", "model.skops", "--weights", "weights.csv")
    done = run_here("fit", "odd.csv", *TOLD, *told, cwd=folder)
    assert done.code == 0, done.err
    return folder, done


def test_weights_for_spreadsheets_hold_no_formula(odd):
    names = [line[0] for line in cells(odd[0] / "weights.csv")]
    assert names[1:] == ["gold", *(f"'{name}" for name in FORMULAS[:3])]


def test_predictions_for_spreadsheets_hold_no_formula(odd):
    folder, _ = odd
    given = ("model.skops", "odd.csv", "--keep", "+note,vendor")
    assert run_here("predict", *given, "-o", "p.csv", cwd=folder).code == 0
    lines = cells(folder / "p.csv")
    assert lines[0][:3] == ["'+note", "vendor", "prediction"]
    assert lines[0][3:] == ["probability_=keep", "probability_@return"]
    assert {line[0][:2] for line in lines[1:]} == {"'="}
    assert {line[1] for line in lines[1:]} == {"gold", *(f"'{name}" for name in FORMULAS[:3])}
    assert {line[2] for line in lines[1:]} == {"'=keep", "'@return"}


def test_numbers_stay_numbers(odd):
    # A discrepancy or a prediction below zero begins with a minus, and is none.
    folder, _ = odd
    columns = make_rows()
    columns["verdict"] = [f"{float(v) - 5:.3f}" for v in columns["size"]]
    write_csv(folder / "numbers.csv", columns)
    assert run_here("fit", "numbers.csv", *TOLD, "-o", "n.skops", cwd=folder).code == 0
    assert run_here("predict", "n.skops", "numbers.csv", "-o", "n.csv", cwd=folder).code == 0
    assert all(float(line[0]) < 0 for line in cells(folder / "n.csv")[1:])


@pytest.mark.parametrize(("name", "option"), [("story", "story"), ("long story", "'long story'")])
def test_free_text_that_is_left_out_is_named(tmp_path, name, option):
    columns = make_rows()
    columns[name] = [f"returned after {k} days in the rain" for k in range(len(columns["size"]))]
    write_csv(tmp_path / "t.csv", columns)
    done = run_here("fit", "t.csv", *TOLD, "-o", "m.skops", cwd=tmp_path)
    assert LEFT_OUT_TEXT.format(name=name, option=option) in " ".join(done.out.split())


@pytest.mark.parametrize("command", ["audit", "fit"])
def test_too_little_memory_is_one_sentence(table, tmp_path, monkeypatch, command):
    from sourcewise.cli import audit, fit

    def full(*_):
        raise MemoryError

    monkeypatch.setattr({"audit": audit, "fit": fit}[command], "read_training", full)
    done = run_here(command, table, *TOLD, "-o", tmp_path / "out.skops")
    assert done.code == 2
    assert done.out == ""
    assert done.err.count("\n") == 1 and "memory" in done.err
    assert not (tmp_path / "out.skops").exists()


HIDDEN = ("a\r=1+1", "a\n=1+1", "\uff1d1+1", "  =1+1", "\u200b-1", "\x1b[2J\u202efdp", "\ufe62x")
STARTS_ONE = re.compile("[\\s\u200b]*[=+@\uff1d\ufe62-]")


def test_no_writer_lets_a_name_start_a_formula_or_move_the_cursor(tmp_path):
    columns = make_rows(names=("gold", *HIDDEN))
    columns["note"] = [HIDDEN[k % len(HIDDEN)] for k in range(len(columns["size"]))]
    write_csv(tmp_path / "t.csv", columns)
    told = (*TOLD, "--drop", "note")
    fit = run_here("fit", "t.csv", *told, "-o", "m.skops", "--weights", "w.csv", cwd=tmp_path)
    assert fit.code == 0, fit.err
    printed = [
        fit,
        run_here("fit", "t.csv", *told, "-o", "m.skops", "--json", cwd=tmp_path),
        run_here("audit", "t.csv", *told, "-o", "r.json", cwd=tmp_path),
        run_here("export", "m.skops", cwd=tmp_path),
        run_here("predict", "m.skops", "t.csv", "--keep", "note", "-o", "p.csv", cwd=tmp_path),
    ]
    kept = run_here("predict", "m.skops", "t.csv", "--keep", "note", "-o", "-", cwd=tmp_path)
    texts = [(tmp_path / name).read_bytes().decode() for name in ("w.csv", "p.csv", "r.json")]
    for text in [*(done.out for done in printed), *texts, kept.out]:
        assert not re.search("[\0-\x08\x0b-\x1f\x7f-\x9f\u202e]", text)
    for name in ("w.csv", "p.csv"):
        lines = (tmp_path / name).read_bytes().decode().split("\n")
        assert len(lines) == len(cells(tmp_path / name)) + 1
        assert not any(STARTS_ONE.match(line[0]) for line in cells(tmp_path / name))
    names = [row["source"] for row in json.loads(printed[3].out)["sources"]]
    assert set(names) == {"gold", *HIDDEN}  # JSON loses nothing
