"""Every command of docs/reproduction.md: the small ones are run, the long ones at least parsed."""

from __future__ import annotations

import fnmatch
import re
import shlex
from pathlib import Path

import pytest
import typer

from cli.running import run_here
from sourcewise.cli.app import app

PAGE = Path(__file__).parents[2] / "docs" / "reproduction.md"


def blocks(kind):
    text = PAGE.read_text(encoding="utf-8")
    return re.findall(rf"^```{kind}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


@pytest.fixture(autouse=True)
def runner():
    pytest.importorskip("sourcewise.cli.reproduce")


def test_commands_print_what_is_shown(tmp_path):
    (block,) = blocks("console")
    parts = re.split(r"^\$ sourcewise ", block, flags=re.MULTILINE)[1:]
    assert len(parts) == 3
    for part in parts:
        line, _, expected = part.partition("\n")
        done = run_here(*shlex.split(line), cwd=tmp_path)
        assert done.code == 0, done.err
        pattern = re.sub(r"([\[\]?*])", r"[\1]", expected.rstrip()).replace("...", "*")
        assert fnmatch.fnmatchcase(done.out.rstrip(), pattern), (line, done.out)
    assert (tmp_path / "tables" / "animals-paper-p1.md").exists()
    assert (tmp_path / "figures" / "figure-2-black-p1.png").exists()


def test_long_commands_have_options_that_exist():
    commands = typer.main.get_command(app).commands
    lines = [line for block in blocks("sh") for line in block.splitlines()]
    assert len(lines) == 12
    for line in lines:
        program, name, *arguments = shlex.split(line)
        assert program == "sourcewise"
        assert commands[name].make_context(name, arguments)
