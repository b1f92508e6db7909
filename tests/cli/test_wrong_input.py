"""Exit code 2, one sentence on standard error, nothing on standard output, nothing written."""

from __future__ import annotations

import os
import pty
import resource
import signal
import subprocess

import numpy as np
import pytest

from cli.running import COMMAND, TOLD, environment, linux, make_rows, run, run_here, write_csv
from sourcewise.validation import DISCREPANCIES


def changed(name, values):
    columns = make_rows()
    columns[name] = values if isinstance(values, list) else values(columns[name])
    return columns


def with_cell(name, row, value):
    def change(cells):
        return [value if k == row else cell for k, cell in enumerate(cells)]

    return changed(name, change)


def refuse(tmp_path, *arguments, words, command=run_here, **how):
    """Run in an empty folder: what is said, and that nothing else happened."""
    place = tmp_path / "here"
    place.mkdir(exist_ok=True)
    done = command(*arguments, cwd=place, **how)
    assert done.code == 2, done.err
    assert done.out == ""
    lines = done.err.splitlines()
    assert len(lines) == 1, done.err
    assert lines[0].startswith("sourcewise: ")
    for word in words:
        assert word in lines[0]
    assert list(place.iterdir()) == []


def table_of(tmp_path, columns, **how):
    return write_csv(tmp_path / "data.csv", columns, **how)


OUT = ("-o", "model.skops", "--weights", "weights.csv")

BAD_TABLES = {
    "reference too small": (
        lambda: changed(
            "vendor", lambda v: ["north" if k > 3 and x == "gold" else x for k, x in enumerate(v)]
        ),
        ["'gold' has 4 rows", "at least 10"],
    ),
    "reference of one class": (
        lambda: changed("verdict", lambda v: ["keep"] * 60 + v[60:]),
        ["only one class ('keep')"],
    ),
    "label unseen in the reference": (
        lambda: with_cell("verdict", 100, "burn"),
        ["'north'", "'burn'", "never shows"],
    ),
    "a source with one row": (
        lambda: with_cell("vendor", 200, "lonely"),
        ["'lonely' has one row", "--min-rows 2"],
    ),
    "all-missing column": (
        lambda: changed("weight", [""] * 420),
        ["'weight' has no value", "--drop"],
    ),
    "column missing throughout the reference": (
        lambda: changed("weight", lambda v: [""] * 60 + v[60:]),
        ["'weight' has no value in any row of the reference"],
    ),
    "nothing varies in the reference": (
        lambda: {
            name: ["1"] * len(cells) if name not in ("verdict", "vendor") else cells
            for name, cells in make_rows().items()
        },
        ["No column is left", "reference's rows differ"],
    ),
    "mixed types": (
        lambda: with_cell("size", 77, "unknown"),
        ["'size' mixes numbers and text", "row 78", "'unknown'", "--categories"],
    ),
    "dates": (
        lambda: changed("size", ["2024-05-01"] * 420),
        ["'size' holds dates", "--drop"],
    ),
    "dates in another country": (
        lambda: changed("size", ["31.12.2024"] * 420),
        ["'size' holds dates"],
    ),
    "infinity": (lambda: with_cell("size", 61, "inf"), ["'north' has infinity", "'size'"]),
    "a number too large": (
        lambda: with_cell("size", 70, "1e39"),
        ["'north' has a number beyond single precision", "'size' (row 71)", "--skip-bad-rows"],
    ),
    "missing label": (lambda: with_cell("verdict", 62, ""), ["'north' has no label", "row 63"]),
    "missing source": (lambda: with_cell("vendor", 9, ""), ["Row 10 has no source"]),
    "one source only": (lambda: changed("vendor", ["gold"] * 420), ["no source besides"]),
}


@pytest.mark.parametrize("case", BAD_TABLES)
def test_bad_table(tmp_path, case):
    make, words = BAD_TABLES[case]
    table = table_of(tmp_path, make())
    refuse(tmp_path, "fit", table, *TOLD, *OUT, words=words)


@pytest.mark.parametrize("case", ["label unseen in the reference", "mixed types"])
def test_bad_table_and_the_installed_command(tmp_path, case):
    make, words = BAD_TABLES[case]
    table = table_of(tmp_path, make())
    refuse(tmp_path, "fit", table, *TOLD, *OUT, words=words, command=run)


class TestFiles:
    def test_no_such_file(self, tmp_path):
        told = ("audit", "gone.csv", *TOLD, "-o", "r.html")
        refuse(tmp_path, *told, words=["gone.csv"], command=run)

    @pytest.mark.parametrize(
        ("name", "content", "words"),
        [
            ("data.csv", b"", ["is empty"]),
            ("data.xlsx", b"PK\x03\x04\x00\x00", ["not a table"]),
            ("data.parquet", b"PAR1 and then nothing", ["not a Parquet file"]),
            ("data.csv", b"a,b\n1,2\n1,2,3\n", ["line 3 has 3 cells and the header has 2"]),
            ("data.csv", "größe,b\n1,2\n".encode("latin-1"), ["not UTF-8", "line 1"]),
            ("data.csv", b"verdict,vendor\n", ["no rows"]),
            ("data.csv", b"verdict,vendor,verdict\na,b,c\n", ["two columns named 'verdict'"]),
        ],
    )
    def test_not_a_table(self, tmp_path, name, content, words):
        (tmp_path / name).write_bytes(content)
        refuse(tmp_path, "fit", tmp_path / name, *TOLD, *OUT, words=words)

    def test_a_text_longer_than_python_takes_in_a_ragged_table(self, tmp_path):
        (tmp_path / "d.csv").write_bytes(b"a,b\n1," + b"x" * 131_073 + b"\n1,2,3\n")
        refuse(tmp_path, "fit", tmp_path / "d.csv", *TOLD, *OUT, words=["a line has 3 cells"])

    def test_a_pipe_is_not_waited_for(self, fitted, tmp_path):
        os.mkfifo(tmp_path / "pipe")
        pipe, words = tmp_path / "pipe", ["is a pipe or a device"]
        refuse(tmp_path, "fit", pipe, *TOLD, *OUT, words=words)
        refuse(tmp_path, "predict", fitted[1], pipe, "-o", "p.csv", words=words)
        refuse(tmp_path, "fit", "/dev/zero", *TOLD, *OUT, words=words)
        refuse(tmp_path, "predict", pipe, pipe, "-o", "p.csv", words=["not a model file"])
        refuse(tmp_path, "tables", pipe, words=["no file of results"])

    def test_folder_without_parquet(self, tmp_path):
        (tmp_path / "empty").mkdir()
        refuse(tmp_path, "fit", tmp_path / "empty", *TOLD, *OUT, words=["no Parquet files"])

    def test_a_bad_byte_far_down_is_found(self, tmp_path):
        table = table_of(tmp_path, make_rows())
        table.write_bytes(table.read_bytes().replace(b"blue", b"bl\xe4u", 1))
        line = next(
            k for k, text in enumerate(table.read_bytes().splitlines(), 1) if b"\xe4" in text
        )
        refuse(tmp_path, "fit", table, *TOLD, *OUT, words=["not UTF-8", f"(line {line})"])


class TestNames:
    def test_nearest_column_is_suggested(self, table, tmp_path):
        told = ("--label", "verdikt", "--source", "vendor", "--reference", "gold")
        refuse(tmp_path, "fit", table, *told, *OUT, words=["no column 'verdikt'", "'verdict'?"])

    def test_columns_are_listed_where_none_is_near(self, table, tmp_path):
        told = ("--label", "verdict", "--source", "qqqq", "--reference", "gold")
        refuse(tmp_path, "fit", table, *told, *OUT, words=["'qqqq'; it has 'size', 'weight'"])

    def test_reference_absent(self, table, tmp_path):
        told = ("--label", "verdict", "--source", "vendor", "--reference", "Gold")
        refuse(
            tmp_path, "fit", table, *told, *OUT, words=["no value 'Gold'", "did you mean 'gold'"]
        )

    def test_reference_not_said(self, table, tmp_path):
        told = ("--label", "verdict", "--source", "vendor")
        refuse(tmp_path, "fit", table, *told, *OUT, words=["--reference", "--reference-file"])

    @pytest.mark.parametrize(
        ("extra", "words"),
        [
            (("--trade-off", "-3"), ["--trade-off"]),
            (("--trade-off", "much"), ["'much'"]),
            (("--discrepancy", "guess"), ["guess", *map(repr, DISCREPANCIES)]),
            (("--drop", "sise"), ["'sise'", "'size'?"]),
            (("--task", "regression"), ["text", "--task classification"]),
            (("--no-such-option",), ["--no-such-option"]),
        ],
    )
    def test_options(self, table, tmp_path, extra, words):
        refuse(tmp_path, "fit", table, *TOLD, *OUT, *extra, words=words)


class TestOutput:
    def test_folder_absent(self, table, tmp_path):
        refuse(tmp_path, "fit", table, *TOLD, "-o", "no/m.skops", words=["no does not exist"])

    @linux
    def test_not_writable(self, table, tmp_path):
        # Even the superuser cannot create files there.
        told = ("audit", table, *TOLD, "-o", "/proc/r.html")
        refuse(tmp_path, *told, words=["cannot be written"], command=run)

    def test_a_folder(self, table, tmp_path):
        refuse(tmp_path, "audit", table, *TOLD, "-o", tmp_path, words=["is a folder"])

    def test_no_kind_of_report(self, table, tmp_path):
        refuse(tmp_path, "audit", table, *TOLD, "-o", "r.txt", words=["r.txt", ".html", ".json"])

    def test_the_input_is_not_overwritten(self, table, tmp_path):
        before = table.read_bytes()
        refuse(tmp_path, "audit", table, *TOLD, "-o", table, words=["both read and written"])
        assert table.read_bytes() == before

    @pytest.mark.parametrize("command", ["audit", "fit"])
    def test_disk_full(self, table, tmp_path, command):
        def small_disk():
            resource.setrlimit(resource.RLIMIT_FSIZE, (2048, 2048))

        output = ("-o", "r.html") if command == "audit" else OUT
        refuse(
            tmp_path,
            *(command, table, *TOLD, "--trade-off", "theory", *output),
            words=["cannot be written", "file too large"],
            command=run,
            preexec_fn=small_disk,
        )

    @linux
    def test_standard_output_full(self, table, tmp_path):
        with open("/dev/full", "w") as full:
            done = run("export", "--help", stdout=full)
        assert done.code != 0
        assert "Traceback" not in done.err

    def test_an_old_result_survives_a_failure(self, tmp_path):
        table = table_of(tmp_path, with_cell("verdict", 100, "burn"))
        old = tmp_path / "model.skops"
        old.write_bytes(b"old")
        assert run_here("fit", table, *TOLD, "-o", old).code == 2
        assert old.read_bytes() == b"old"


class TestModels:
    def test_not_a_model(self, table, tmp_path):
        (tmp_path / "m.skops").write_bytes(b"nothing of the kind")
        refuse(
            tmp_path,
            *("predict", tmp_path / "m.skops", table, "-o", "p.csv"),
            words=["is not a model file"],
        )

    def test_no_such_model(self, table, tmp_path):
        refuse(
            tmp_path, "predict", "m.skops", table, "-o", "p.csv", words=["no model file m.skops"]
        )

    def test_new_table_lacks_a_column(self, fitted, tmp_path):
        columns = make_rows()
        del columns["colour"]
        table = table_of(tmp_path, columns)
        refuse(tmp_path, "predict", fitted[1], table, "-o", "p.csv", words=["no column 'colour'"])

    def test_new_table_has_text_for_numbers(self, fitted, tmp_path):
        table = table_of(tmp_path, changed("size", ["large"] * 420))
        refuse(
            tmp_path,
            *("predict", fitted[1], table, "-o", "p.csv"),
            words=["'size' holds 'large'", "numbers"],
        )


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_interrupted_by_ctrl_c_or_a_plain_kill(name, tmp_path):
    rng = np.random.default_rng(0)
    columns = {f"x{j}": [f"{v:.3f}" for v in rng.normal(size=6000)] for j in range(20)}
    columns["verdict"] = rng.choice(["keep", "return"], 6000).tolist()
    columns["vendor"] = np.repeat(["gold", *"abcde"], 1000).tolist()
    table = table_of(tmp_path, columns)
    place = tmp_path / "here"
    place.mkdir()
    screen, end = pty.openpty()
    process = subprocess.Popen(
        [str(COMMAND), "audit", str(table), *TOLD, "-o", "r.html"],
        cwd=place,
        stdout=subprocess.PIPE,
        stderr=end,
        env=environment() | {"TERM": "xterm"},
    )
    os.close(end)
    shown = _read_until(screen, "Comparing sources")
    assert "Reading the table" in shown
    process.send_signal(getattr(signal, name))
    shown += _read_until(screen, None)
    assert process.wait(timeout=300) == 130
    assert process.stdout.read() == b""
    process.stdout.close()
    assert shown.rstrip().endswith("sourcewise: Interrupted; nothing was written.")
    assert "Traceback" not in shown
    assert list(place.iterdir()) == []


def _read_until(screen, words):
    """Read what a terminal shows until some words come, or the other side is closed."""
    shown = ""
    while words is None or words not in shown:
        try:
            part = os.read(screen, 4096)
        except OSError:
            break
        if not part:
            break
        shown += part.decode(errors="replace")
    return shown
