"""Every script of the gallery runs, as somebody would run it who has downloaded it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SCRIPTS = sorted((ROOT / "examples").glob("plot_*.py"))
MINUTES = {"plot_10_fine_tuning"}
SKIPPED = 77  # what a script exits with, after one sentence, when it needs what is not here


@pytest.mark.parametrize("script", SCRIPTS, ids=[script.stem for script in SCRIPTS])
def test_the_script_runs(script, tmp_path):
    if script.stem in MINUTES and "SOURCEWISE_EXAMPLES" not in os.environ:
        pytest.skip("takes minutes: set SOURCEWISE_EXAMPLES=1")
    done = subprocess.run(
        [sys.executable, "-W", "error", str(script)],
        cwd=tmp_path,
        env={**os.environ, "MPLBACKEND": "agg", "PYTHONWARNINGS": ""},
        capture_output=True,
        text=True,
        timeout=900,
    )
    if done.returncode == SKIPPED:
        pytest.skip(done.stdout.strip().splitlines()[-1])
    assert done.returncode == 0, done.stderr


def test_there_is_a_gallery():
    assert len(SCRIPTS) >= 4
