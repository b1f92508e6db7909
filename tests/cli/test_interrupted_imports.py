"""Ctrl-C while the command's modules are still being imported."""

import os
import subprocess

import pytest

from cli.running import COMMAND, environment

INTERRUPTING = """\
import os, signal, time
os.kill(os.getpid(), signal.{name})
time.sleep(600)
"""


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("numpy", "SIGINT"),
        ("scipy", "SIGTERM"),
        ("sklearn", "SIGINT"),
        ("typer", "SIGTERM"),
    ],
)
def test_an_interruption_of_the_imports_is_no_traceback(module, name, tmp_path):
    (tmp_path / f"{module}.py").write_text(INTERRUPTING.format(name=name))
    (tmp_path / "here").mkdir()
    usual = filter(None, [os.environ.get("PYTHONPATH")])
    done = subprocess.run(
        [str(COMMAND), "demo"],
        cwd=tmp_path / "here",
        env=environment() | {"PYTHONPATH": os.pathsep.join([os.fspath(tmp_path), *usual])},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 130
    assert done.stderr == "sourcewise: Interrupted; nothing was written.\n"
    assert done.stdout == ""
    assert list((tmp_path / "here").iterdir()) == []
