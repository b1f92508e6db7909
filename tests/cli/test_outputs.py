"""What -o may replace: a file or a new name, and nothing else; all outputs appear or none."""

from __future__ import annotations

import json
import os
import stat
import sys
import threading

import pytest

from cli.running import TOLD, linux, run, run_here
from sourcewise import files
from sourcewise.cli import output as o
from sourcewise.files import staged

unix = pytest.mark.skipif(sys.platform == "win32", reason="modes, pipes and links as in Unix")


def refused(*arguments, cwd, words):
    before = sorted(path.name for path in cwd.iterdir())
    done = run_here(*arguments, cwd=cwd)
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1), done
    assert words in done.err
    assert sorted(path.name for path in cwd.iterdir()) == before


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("fit", "{data}", *TOLD, "-o", "m.pkl"), "m.pkl would hold a model"),
        (("fit", "{data}", *TOLD, "-o", "m.skops", "--weights", "w.xlsx"), "in .csv."),
        (("audit", "{data}", *TOLD, "-o", "r.pdf"), ".html, .htm or .json"),
        (("predict", "{model}", "{data}", "-o", "p.xlsx"), ".csv, .parquet or .pq"),
        (("export", "{model}", "-o", "w.csv"), "in .json."),
        (("reproduce", "products", "--data", "synthetic", "-o", "r.csv"), ".sqlite"),
    ],
)
def test_an_ending_that_does_not_fit_is_refused(arguments, words, fitted, table, tmp_path):
    filled = [part.format(data=table, model=fitted[1]) for part in arguments]
    refused(*filled, cwd=tmp_path, words=words)


def test_an_ending_may_be_in_capitals(fitted, table, tmp_path):
    from pyarrow import parquet

    assert run_here("predict", fitted[1], table, "-o", tmp_path / "P.PARQUET").code == 0
    assert parquet.read_table(tmp_path / "P.PARQUET").num_rows


@pytest.fixture
def pipe(tmp_path):
    """Give a pipe, and what was written to it."""
    path, found = tmp_path / "pipe", []
    os.mkfifo(path)
    reader = threading.Thread(target=lambda: found.append(path.read_bytes()), daemon=True)
    reader.start()
    yield path, lambda: (reader.join(60), found[0])[1]
    if reader.is_alive():
        os.close(os.open(path, os.O_RDWR | os.O_NONBLOCK))


@unix
@pytest.mark.parametrize("what", ["predict", "export"])
def test_csv_and_json_are_written_into_a_pipe_that_stays_one(what, fitted, table, tmp_path, pipe):
    path, content = pipe
    given = (fitted[1], table) if what == "predict" else (fitted[1],)
    done = run_here(what, *given, "-o", path)
    assert done.code == 0, done.err
    assert stat.S_ISFIFO(path.stat().st_mode)
    if what == "export":
        assert json.loads(content())["sources"]
    else:
        assert content().startswith(b"prediction,") or content().startswith(b'"prediction"')


@unix
def test_models_and_pages_are_not_written_into_a_pipe(table, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for command in ("fit", "audit"):
        refused(command, table, *TOLD, "-o", "pipe", cwd=tmp_path, words="written to files only")
        refused(command, table, *TOLD, "-o", "/dev/fd/1", cwd=tmp_path, words="files only")
    refused("fit", table, *TOLD, "-o", "-", cwd=tmp_path, words="written to files only")
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)


@linux
def test_a_device_is_never_replaced(fitted, table, tmp_path):
    # One like it, made by hand, so that a failure breaks nothing.
    device = tmp_path / "full"
    try:
        os.mknod(device, 0o666 | stat.S_IFCHR, os.makedev(1, 7))
        device.open("wb").close()
    except PermissionError:
        device = files.Path("/dev/full")
        if os.getuid() == 0:
            pytest.skip("no devices can be made here")
    for arguments in (("fit", table, *TOLD), ("audit", table, *TOLD)):
        done = run_here(*arguments, "-o", device)
        assert done.code == 2 and "written to files only" in done.err
    done = run_here("predict", fitted[1], table, "-o", device)
    assert done.code == 2 and done.err.endswith("cannot be written: no space left on device.\n")
    for arguments in (("tables", fitted[1]), ("demo", "-q")):
        assert run_here(*arguments, "-o", device).code == 2
    assert stat.S_ISCHR(device.stat().st_mode)


def test_a_dash_is_standard_output(fitted, table, tmp_path):
    csv = run("predict", fitted[1], table, "-o", "-", cwd=tmp_path)
    assert csv.code == 0 and csv.out.splitlines()[0].split(",")[0].strip('"') == "prediction"
    assert len(csv.out.splitlines()) == 1 + len(table.read_text().splitlines()) - 1
    page = run_here("audit", table, *TOLD, "-o", "-", cwd=tmp_path)
    assert json.loads(page.out)["verdict"]
    weights = run_here("fit", table, *TOLD, "-o", "m.skops", "--weights", "-", cwd=tmp_path)
    assert weights.out.splitlines()[0].startswith("source,rows,weight")
    assert len(weights.out.splitlines()) == 5
    again = run_here("export", fitted[1], "-o", "-", cwd=tmp_path)
    assert again.out == run_here("export", fitted[1]).out
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.skops"]
    if sys.platform == "linux":  # the same by another name
        named = run("predict", fitted[1], table, "-o", "/dev/stdout", cwd=tmp_path)
        assert named.out == csv.out
    both = ("predict", fitted[1], table, "-o", "-", "--json")
    refused(*both, cwd=tmp_path, words=o.BOTH_PRINTED)


@linux
def test_what_the_shell_has_open_is_written_behind_what_is_there(fitted, tmp_path):
    with (tmp_path / "log").open("a") as log:
        log.write("before\n")
        log.flush()
        assert run("export", fitted[1], "-o", "/dev/stdout", stdout=log).code == 0
    first, rest = (tmp_path / "log").read_text().split("\n", 1)
    assert first == "before" and json.loads(rest)


@unix
def test_links_are_followed_and_modes_kept(fitted, tmp_path):
    target, link = tmp_path / "kept" / "w.json", tmp_path / "link.json"
    target.parent.mkdir()
    target.write_text("old")
    target.chmod(0o600)
    link.symlink_to(target)
    assert run_here("export", fitted[1], "-o", link).code == 0
    assert link.is_symlink() and json.loads(target.read_text())
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert [path.name for path in target.parent.iterdir()] == ["w.json"]
    new = tmp_path / "new.json"
    link.unlink()
    link.symlink_to(new)  # to nothing yet
    assert run_here("export", fitted[1], "-o", link).code == 0
    assert link.is_symlink() and json.loads(new.read_text())
    ring = tmp_path / "ring.json"
    ring.symlink_to(ring)
    assert run_here("export", fitted[1], "-o", ring).code == 2


@unix
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o444])
def test_a_secret_file_is_never_open_to_others_meanwhile(mode, tmp_path):
    path = tmp_path / "secret"
    path.write_bytes(b"old")
    path.chmod(mode)
    with staged(path) as (temporary,):
        assert stat.S_IMODE(temporary.stat().st_mode) == mode | 0o200  # somebody has to write it
        temporary.write_bytes(b"new")
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == mode


@unix
def test_new_files_follow_the_umask_which_no_thread_sees_changed(tmp_path, monkeypatch):
    before = os.umask(0o027)
    try:
        monkeypatch.setattr(os, "umask", lambda _: pytest.fail("the umask is every thread's"))
        files.write_atomically(tmp_path / "f", b"content")
    finally:
        monkeypatch.undo()
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "f").stat().st_mode) == 0o640


def test_nothing_is_written_inside_a_folder_that_is_read(fitted, table, tmp_path):
    from pyarrow import csv, parquet

    folder = tmp_path / "parts"
    folder.mkdir()
    parquet.write_table(csv.read_csv(table), folder / "a.parquet")
    (tmp_path / "other").symlink_to(folder, target_is_directory=True)
    for place in (folder / "b.parquet", folder / "a.parquet", tmp_path / "other" / "b.parquet"):
        given = ("predict", fitted[1], folder, "-o", place)
        refused(*given, cwd=folder, words="is part of")
    refused("audit", folder, *TOLD, "-o", folder / "r.html", cwd=folder, words="is part of")


@unix
def test_an_input_is_not_replaced_through_a_link_either(fitted, table, tmp_path):
    data = tmp_path / "data.csv"
    data.write_bytes(table.read_bytes())
    for k, link in enumerate((os.link, os.symlink)):
        link(data, tmp_path / f"{k}.csv")
        given = ("predict", fitted[1], data, "-o", f"{k}.csv")
        refused(*given, cwd=tmp_path, words="both read and written")
    (tmp_path / "w.csv").symlink_to("m.skops")
    told = ("fit", data, *TOLD, "-o", "m.skops", "--weights", "w.csv")
    refused(*told, cwd=tmp_path, words="name the same file")


class TestTwoOutputs:
    """Of two outputs the second is refused its name."""

    @pytest.fixture
    def second_fails(self, monkeypatch, tmp_path):
        usual = os.replace

        def replace(source, target):
            if str(target).endswith("two"):
                raise PermissionError(1, "Operation not permitted", str(target))
            usual(source, target)

        monkeypatch.setattr(os, "replace", replace)

    @pytest.mark.parametrize("old", [b"old", None])
    def test_the_first_is_as_before(self, old, second_fails, tmp_path):
        one, two = tmp_path / "one", tmp_path / "two"
        if old:
            one.write_bytes(old)
        with pytest.raises(PermissionError), staged(one, two) as temporary:
            for file in temporary:
                file.write_bytes(b"new")
        assert [path.name for path in tmp_path.iterdir()] == (["one"] if old else [])
        assert not old or one.read_bytes() == old

    def test_where_that_cannot_be_it_is_said_which_is_new(
        self, second_fails, monkeypatch, tmp_path
    ):
        one, two = tmp_path / "one", tmp_path / "two"
        one.write_bytes(b"old")
        monkeypatch.setattr(os, "link", lambda *_: (_ for _ in ()).throw(OSError("no links")))
        with (
            pytest.raises(ValueError, match=r"two cannot be written: .*one was written before"),
            o.outputs(one, two) as temporary,
        ):
            for file in temporary:
                file.write_bytes(b"new")
        assert one.read_bytes() == b"new" and not two.exists()
        assert [path.name for path in tmp_path.iterdir()] == ["one"]


@unix
def test_the_disk_has_the_file_before_the_old_one_goes(tmp_path, monkeypatch):
    done = []
    for name in ("fsync", "replace"):
        usual = getattr(os, name)

        def call(*given, name=name, usual=usual):
            kind = ""
            if name == "fsync":
                kind = " folder" if stat.S_ISDIR(os.fstat(given[0]).st_mode) else " file"
            done.append(name + kind)
            return usual(*given)

        monkeypatch.setattr(os, name, call)
    files.write_atomically(tmp_path / "f", b"content")
    assert done == ["fsync file", "replace", "fsync folder"]
