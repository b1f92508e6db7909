"""Results that somebody else made, their checksums right: names stay names, numbers numbers."""

from __future__ import annotations

import csv
import re
import sqlite3

import pytest

from cli.running import run_here
from experiments.made_up import animals_rows, write_results
from sourcewise.experiments.results import COLUMNS, DAMAGED, KEY, LONGEST, _checksum
from sourcewise.experiments.study_errors import NO_GRID

HOSTILE = (
    "\x1b[2Jcleared",
    "\x07\x9b1mbell",
    "\u202egnp.exe",
    "a\n\\immediate\\write18{id}",
    "a\r\\input{/etc/passwd}",
    "=HYPERLINK(1)",
    "\uff1d1+1",
    " \t-1+1",
    "<script>alert(1)</script>",
    "a|b](javascript:alert(1))",
    "$\\frac",
    "\ud7ff\u2028#",
)


def forged(path, change, **settings):
    """Write a study of which every row was changed, and sealed again."""
    rows = animals_rows(corruptions=("blur",), numbers=(0, 10), repeats=2)
    write_results(path, [change(row) for row in rows], **settings)
    return path


@pytest.mark.filterwarnings("ignore:Glyph")
@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("column", ["target", "corruption", "method", "data"])
def test_names_stay_names(column, name, tmp_path):
    if column == "data":
        path = forged(tmp_path / "r.sqlite", lambda row: row, data=name)
    else:

        def change(row):
            other = column == "method" and row.method == "paper"
            return row if other else row._replace(**{column: name + getattr(row, column)})

        path = forged(tmp_path / "r.sqlite", change)
    done = run_here("tables", path, "-o", tmp_path / "t")
    assert (done.code, done.err) == (0, ""), done.err
    assert not re.search("[\0-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]", done.out)
    for file in (tmp_path / "t").iterdir():
        text = file.read_bytes().decode()
        assert not re.search("[\0-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2028]", text)
        if file.suffix == ".tex":
            shown = "\n".join(line for line in text.split("\n") if not line.startswith("%"))
            assert not re.search(r"\\(immediate|write18|input|frac)", shown)
        if file.suffix == ".md":
            assert "<" not in text and "](" not in text.replace("\\](", "")
        if file.suffix == ".csv":
            cells = [cell for line in csv.reader(text.splitlines()) for cell in line]
            words = [cell for cell in cells if not re.fullmatch(r"-?[\d.e+-]*|nan", cell)]
            assert not any(re.match("\\s*[=+@\uff1d-]", cell) for cell in words)
    assert run_here("figures", path, "-o", tmp_path / "f").code == 0
    assert all("<script" not in f.read_text() for f in (tmp_path / "f").glob("*.svg"))


WRONG = {
    "study": b"x",
    "target": 5,
    "corruption": "x" * (LONGEST + 1),
    "n": "many",
    "p": "half",
    "repeat": 1.5,
    "method": None,
    "error": "none",
    "trade_off": "large",
    "C": b"1",
    "cpu_seconds": "1s",
    "seed": 2.5,
}


def rebuilt(path, change):
    """Make the file again without types, with checksums that are right."""
    old = sqlite3.connect(path)
    rows = [change(row) for row in old.execute(f"SELECT {', '.join(COLUMNS)} FROM results")]
    settings = old.execute("SELECT key, value FROM settings").fetchall()
    seal = old.execute("SELECT settings FROM seal").fetchone()[0]
    old.close()
    path.unlink()
    new = sqlite3.connect(path)
    new.execute("CREATE TABLE settings (key, value)")
    new.execute("CREATE TABLE seal (rows, settings)")
    new.execute(f"CREATE TABLE results ({', '.join(COLUMNS)}, checksum)")
    new.executemany("INSERT INTO settings VALUES (?, ?)", settings)
    new.execute("INSERT INTO seal VALUES (?, ?)", (len(rows), seal))
    marks = ", ".join("?" * (len(COLUMNS) + 1))
    new.executemany(f"INSERT INTO results VALUES ({marks})", [(*r, _checksum(r)) for r in rows])
    new.commit()
    new.close()


@pytest.mark.parametrize("column", WRONG)
def test_values_of_wrong_types_are_a_sentence(column, tmp_path):
    path, place = forged(tmp_path / "r.sqlite", lambda row: row), list(COLUMNS).index(column)
    rebuilt(path, lambda row: row)
    assert run_here("tables", path, "-o", tmp_path / "t").code == 0
    rebuilt(path, lambda row: (*row[:place], WRONG[column], *row[place + 1 :]))
    for command in ("tables", "figures"):
        done = run_here(command, path, "-o", tmp_path / command)
        sentence = DAMAGED.format(path=path)
        assert (done.code, done.out, done.err) == (2, "", f"sourcewise: {sentence}\n")


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE settings SET value = x'00' WHERE key = 'data'",
        "INSERT INTO seal VALUES (1, 2)",
        "DELETE FROM seal",
        "UPDATE seal SET rows = 'all'",
    ],
)
def test_a_seal_or_settings_of_another_kind_are_a_sentence(statement, tmp_path):
    path = forged(tmp_path / "r.sqlite", lambda row: row)
    rebuilt(path, lambda row: row)
    connection = sqlite3.connect(path)
    connection.execute(statement)
    connection.commit()
    connection.close()
    done = run_here("tables", path, "-o", tmp_path / "t")
    assert (done.code, done.err) == (2, f"sourcewise: {DAMAGED.format(path=path)}\n")


def test_a_value_that_is_computed_may_not_fill_the_memory(tmp_path):
    path = forged(tmp_path / "r.sqlite", lambda row: row)
    connection = sqlite3.connect(path)
    connection.execute("DROP TABLE results")
    columns = ", ".join(KEY)
    large = ", ".join(
        f"{name} GENERATED ALWAYS AS (zeroblob(900000000))"
        for name in (*COLUMNS, "checksum")
        if name not in KEY
    )
    connection.execute(f"CREATE TABLE results ({columns}, {large})")
    connection.execute("INSERT INTO results VALUES (1, 2, 3, 4, 5, 6, 7)")
    connection.commit()
    connection.close()
    assert run_here("tables", path, "-o", tmp_path / "t").code == 2


def test_rows_that_are_no_grid_are_refused_before_it_is_made(tmp_path):
    first = animals_rows(corruptions=("blur",), numbers=(0,), repeats=1)[0]
    rows = [
        first._replace(target=f"t{k}", corruption=f"c{k}", n=k, repeat=k, method=f"m{k}", p=k / 99)
        for k in range(99)
    ]
    path = write_results(tmp_path / "r.sqlite", rows)
    done = run_here("tables", path, "-o", tmp_path / "t")
    sentence = NO_GRID.format(path=path, rows=99, cells=99**6)
    assert (done.code, done.err) == (2, f"sourcewise: {sentence}\n")
