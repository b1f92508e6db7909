"""Ctrl-C while the command's modules are still being imported."""

import os
import subprocess

import pytest

from cli.running import COMMAND, environment

INTERRUPTING = """\
import os, signal, time
os.kill(os.getpid(), signal.SIGINT)
time.sleep(600)
"""


@pytest.mark.parametrize("module", ["numpy", "scipy", "sklearn", "typer"])
def test_an_interruption_of_the_imports_is_no_traceback(module, tmp_path):
    (tmp_path / f"{module}.py").write_text(INTERRUPTING)
    (tmp_path / "here").mkdir()
    done = subprocess.run(
        [str(COMMAND), "demo"],
        cwd=tmp_path / "here",
        env=environment() | {"PYTHONPATH": os.fspath(tmp_path)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 130
    assert done.stderr == "sourcewise: Interrupted; nothing was written.\n"
    assert done.stdout == ""
    assert list((tmp_path / "here").iterdir()) == []
