"""A file of results that is damaged, old or cut short is never taken for a good one."""

import sqlite3

import numpy as np
import pytest

from experiments.made_up import SETTINGS, Results, animals_rows, read_results, write_results
from experiments.small_studies import same_numbers
from sourcewise.experiments import results
from sourcewise.experiments.results import ResultsFile


@pytest.fixture
def written(tmp_path):
    rows = animals_rows(corruptions=("blur",), numbers=(0, 10), repeats=2)
    path = write_results(tmp_path / "r.sqlite", rows)
    return path, read_results(path), path.read_bytes()


def test_a_flipped_bit_anywhere_is_noticed_or_does_not_matter(written):
    path, whole, content = written
    rng = np.random.default_rng(0)
    noticed = 0
    for place in rng.choice(8 * len(content), size=400, replace=False):
        damaged = bytearray(content)
        damaged[place // 8] ^= 1 << (place % 8)
        path.write_bytes(damaged)
        try:
            found = read_results(path)
        except ValueError as error:
            assert str(error).startswith(str(path)) and str(error).endswith(".")
            noticed += 1
        else:
            assert found.settings == whole.settings
            same_numbers(found, whole)
    assert noticed > 50


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE results SET error = error + 1e-9 WHERE repeat = 1",
        "UPDATE results SET cpu_seconds = 0.2 WHERE repeat = 1",
        "UPDATE results SET method = 'paper ' WHERE method = 'paper' AND repeat = 1 AND n = 0",
        "DELETE FROM results WHERE repeat = 1",
        "UPDATE settings SET value = '6' WHERE key = 'seed'",
        "UPDATE seal SET rows = rows + 1",
    ],
)
def test_what_was_not_written_is_not_read_and_not_continued(written, change):
    path = written[0]
    connection = sqlite3.connect(path)
    connection.execute(change)
    connection.commit()
    connection.close()
    with pytest.raises(ValueError, match=r"r\.sqlite is damaged.*run the study again"):
        read_results(path)
    with (
        pytest.raises(ValueError, match=r"r\.sqlite is damaged"),
        ResultsFile(path, SETTINGS) as file,
    ):
        file.keys()


def test_rows_that_are_there_stay_as_they_are(written):
    path, whole, _ = written
    again = [
        row._replace(cpu_seconds=9.0)
        for row in animals_rows(corruptions=("blur",), numbers=(0, 10, 59), repeats=2)
    ]
    with ResultsFile(path, SETTINGS) as file:
        file.add(again)
    both = read_results(path)
    assert len(both) == len(again)
    old = both.columns["n"] < 59
    same_numbers(Results({}, {k: v[old] for k, v in both.columns.items()}), whole)
    assert set(both.columns["cpu_seconds"][old]) == {0.1}


def test_a_full_disk_leaves_no_file_behind(tmp_path, monkeypatch):
    monkeypatch.setattr(results, "PRAGMAS", ("PRAGMA max_page_count = 2",))
    with pytest.raises(ValueError, match=r"r\.sqlite cannot be .*written: .*full"):
        ResultsFile(tmp_path / "r.sqlite", SETTINGS)
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_on_the_way_keeps_what_was_there(written, monkeypatch):
    path, whole, _ = written
    pages = sqlite3.connect(path).execute("PRAGMA page_count").fetchone()[0]
    monkeypatch.setattr(results, "PRAGMAS", (f"PRAGMA max_page_count = {pages}",))
    with (
        ResultsFile(path, SETTINGS) as file,
        pytest.raises(sqlite3.OperationalError, match="full"),
    ):
        file.add(animals_rows())
    same_numbers(read_results(path), whole)


def test_a_file_without_checksums_is_refused(written):
    path = written[0]
    connection = sqlite3.connect(path)
    connection.execute("DROP TABLE seal")
    connection.commit()
    connection.close()
    for attempt in (lambda: read_results(path), lambda: ResultsFile(path, SETTINGS)):
        with pytest.raises(ValueError, match=r"r\.sqlite was written before .* checksums"):
            attempt()
