"""Every command and every snippet of docs/audit.md, in the order in which they are read."""

from __future__ import annotations

import fnmatch
import re
import shlex
import subprocess
from pathlib import Path

from cli.running import NAMES, make_rows, run_here, write_csv

PAGE = Path(__file__).parents[2] / "docs" / "audit.md"


def blocks():
    text = PAGE.read_text(encoding="utf-8")
    return re.findall(r"^```(\w+)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def shell(line, folder):
    """Run one line of a console block; sourcewise itself runs in this process."""
    words = shlex.split(line)
    if words[0] == "sourcewise":
        done = run_here(*words[1:], cwd=folder)
        return done.out + done.err
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout


def test_every_block_does_what_it_says(tmp_path, monkeypatch):
    names = [*NAMES[:3], "flipped"]
    columns = make_rows(names=names)
    write_csv(tmp_path / "orders.csv", columns)
    new = {name: cells[:3] for name, cells in columns.items() if name not in ("verdict", "vendor")}
    write_csv(tmp_path / "new.csv", {"order": ["A1", "A2", "A3"], **new})
    monkeypatch.chdir(tmp_path)
    known: dict[str, object] = {}
    kinds = []
    for kind, body in blocks():
        kinds.append(kind)
        if kind == "py":
            exec(compile(body, str(PAGE), "exec"), known)
        elif kind == "console":
            for part in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
                line, _, expected = part.partition("\n")
                printed = shell(line, tmp_path)
                pattern = re.sub(r"([\[\]?*])", r"[\1]", expected.rstrip()).replace("...", "*")
                assert fnmatch.fnmatchcase(printed.rstrip(), pattern), (line, printed)
    assert kinds.count("console") == 4
    assert kinds.count("py") == 4
    assert (known["sample_weight"] >= 0).all()
    assert known["sample_weight"][-1] == 0.0
    for name in ("report.html", "from_python.html", "WeightPathDisplay.png"):
        assert (tmp_path / name).exists()
