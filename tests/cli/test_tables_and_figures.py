from __future__ import annotations

import resource
import sqlite3

import pytest

from cli.running import linux, run, run_here
from experiments.made_up import animals_rows, products_rows, write_results
from sourcewise.cli.tables_and_figures import figures, tables

PAIRS = [("tables", {"md", "csv", "tex"}), ("figures", {"png", "svg"})]
COMMANDS = [command for command, _ in PAIRS]


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    rows = animals_rows(corruptions=("label-bias",))
    return write_results(tmp_path_factory.mktemp("results") / "animals.sqlite", rows)


def refuse(done, *words):
    assert done.code == 2, done.err
    assert done.out == ""
    (line,) = done.err.splitlines()
    assert line.startswith("sourcewise: ")
    for word in words:
        assert word in line


class TestCommands:
    def test_tables_are_printed_and_written(self, results, tmp_path):
        done = run("tables", results, "-o", tmp_path / "new" / "out")
        assert (done.code, done.err) == (0, "")
        lines = done.out.splitlines()
        assert max(len(line) for line in lines[:-1]) <= 80
        assert lines[-1] == f"Tables: {tmp_path / 'new' / 'out'}"
        assert sum(line.startswith("The default, p = 1, label bias") for line in lines) == 1
        names = {path.name for path in (tmp_path / "new" / "out").iterdir()}
        assert names == {
            f"animals-{what}-p1.{ending}"
            for what in ("paper", "default", "errors")
            for ending in ("md", "csv", "tex")
        }

    def test_figures_are_named_with_what_they_show(self, results, tmp_path):
        done = run("figures", results, "-o", tmp_path / "out")
        assert (done.code, done.err) == (0, "")
        assert done.out.startswith(f"{tmp_path / 'out' / 'figure-2-black-p1'}.png, .svg\n")
        assert "error bars are one standard deviation" in " ".join(done.out.split())
        names = {path.name for path in (tmp_path / "out").iterdir()}
        assert names == {"figure-2-black-p1.png", "figure-2-black-p1.svg"}

    @pytest.mark.parametrize(("command", "endings"), PAIRS)
    def test_a_folder_beside_the_results_unless_told(self, tmp_path, command, endings):
        file = write_results(tmp_path / "books.sqlite", products_rows())
        done = run_here(command, file, "--quiet")
        assert (done.code, done.out, done.err) == (0, "", "")
        folder = tmp_path / f"books-{command}"
        assert {path.suffix[1:] for path in folder.iterdir()} == endings

    def test_old_files_are_replaced_and_others_left_alone(self, results, tmp_path):
        (tmp_path / "animals-paper-p1.md").write_text("old")
        (tmp_path / "notes.txt").write_text("mine")
        assert run_here("tables", results, "-o", tmp_path).code == 0
        assert (tmp_path / "animals-paper-p1.md").read_text().startswith("# Animals")
        assert (tmp_path / "notes.txt").read_text() == "mine"

    def test_results_are_not_touched(self, results, tmp_path):
        before = results.read_bytes()
        tables(results, tmp_path)
        figures(results, tmp_path)
        assert results.read_bytes() == before

    def test_help_names_them(self):
        shown = run_here("--help").out
        assert "tables" in shown
        assert "figures" in shown


@pytest.mark.parametrize("command", COMMANDS)
class TestWrongInput:
    def test_no_such_file(self, tmp_path, command):
        refuse(run_here(command, "gone.sqlite", cwd=tmp_path), "gone.sqlite")
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize("content", [b"", b"a,b\n1,2\n", b"SQLite format 3\x00 and no more"])
    def test_not_results(self, tmp_path, command, content):
        (tmp_path / "r.sqlite").write_bytes(content)
        refuse(run_here(command, tmp_path / "r.sqlite"), "not a file of results")
        assert [path.name for path in tmp_path.iterdir()] == ["r.sqlite"]

    def test_a_database_of_something_else(self, tmp_path, command):
        connection = sqlite3.connect(tmp_path / "r.sqlite")
        connection.execute("CREATE TABLE results (a)")
        connection.close()
        refuse(run_here(command, tmp_path / "r.sqlite"), "not a file of results")

    def test_no_rows(self, tmp_path, command):
        file = write_results(tmp_path / "r.sqlite", [])
        refuse(run_here(command, file), "empty")
        assert [path.name for path in tmp_path.iterdir()] == ["r.sqlite"]

    @linux
    def test_folder_cannot_be_made(self, results, tmp_path, command):
        refuse(run_here(command, results, "-o", "/proc/new"), "/proc/new cannot be written")
        (tmp_path / "file").write_text("")
        refuse(run_here(command, results, "-o", tmp_path / "file" / "x"), "cannot be written")

    def test_disk_full(self, results, tmp_path, command):
        def small_disk():
            resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024))

        folder = tmp_path / "a" / "b"
        done = run(command, results, "-o", folder, preexec_fn=small_disk)
        refuse(done, "cannot be written", "file too large")
        assert list(tmp_path.iterdir()) == []

    def test_a_folder_in_the_way_of_a_file(self, results, tmp_path, command):
        name = "animals-paper-p1.md" if command == "tables" else "figure-2-black-p1.svg"
        (tmp_path / name).mkdir()
        refuse(run_here(command, results, "-o", tmp_path), name, "is a folder")
        assert [path.name for path in tmp_path.iterdir()] == [name]


def test_one_repeat(tmp_path):
    file = write_results(tmp_path / "r.sqlite", animals_rows(repeats=1))
    refuse(run_here("tables", file), "one repeat", "--runs 2")


def test_unknown_target(results, tmp_path):
    told = ("figures", results, "-o", tmp_path / "out", "--target", "tartan")
    refuse(run_here(*told), "'tartan'", "'black', 'white'")
    assert list(tmp_path.iterdir()) == []
