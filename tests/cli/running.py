"""A small table with one bad vendor, and the installed command to run on it."""

from __future__ import annotations

import csv
import io
import os
import subprocess
import sys
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

COMMAND = Path(sys.executable).with_name("sourcewise")
NAMES = ("gold", "north", "south", "flipped <script>alert(1)</script>")
BAD = NAMES[3]
# /proc takes no files, from nobody; /dev/full takes no bytes.
linux = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc and /dev as in Linux")


@dataclass
class Result:
    code: int
    out: str
    err: str


def environment() -> dict[str, str]:
    return {**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "80", "NO_COLOR": "1"}


def run(*arguments, cwd=None, preexec_fn=None, stdout=subprocess.PIPE) -> Result:
    done = subprocess.run(
        [str(COMMAND), *map(str, arguments)],
        stdout=stdout,
        stderr=subprocess.PIPE,
        cwd=cwd,
        text=True,
        env=environment(),
        timeout=300,
        preexec_fn=preexec_fn,
    )
    return Result(done.returncode, done.stdout or "", done.stderr)


def run_here(*arguments, cwd=".") -> Result:
    """Run the command in this process: for many small cases, without starting Python each time."""
    from sourcewise.cli import main

    out, err = io.StringIO(), io.StringIO()
    with chdir(cwd), redirect_stdout(out), redirect_stderr(err):
        code = main([str(a) for a in arguments])
    return Result(code, out.getvalue(), err.getvalue())


def make_rows(n_gold=60, n_other=120, seed=0, names=NAMES):
    """Columns of a table: two numbers, a flag, a category with a rare level, gaps."""
    rng = np.random.default_rng(seed)
    counts = [n_gold, *[n_other] * (len(names) - 1)]
    n = sum(counts)
    size, weight = rng.normal(size=n), rng.normal(10, 3, size=n)
    colour = rng.choice(["red", "blue", "green"], n, p=[0.6, 0.3, 0.1])
    fragile = rng.random(n) < 0.3
    good = 2 * size + 0.3 * (weight - 10) + (colour == "red") + 0.3 * rng.normal(size=n) > 0.5
    vendor = np.repeat(list(names), counts)
    if len(names) > 3:
        good = np.where(vendor == names[3], ~good, good)
    rows = {
        "size": [f"{v:.4f}" for v in size],
        "weight": ["" if k % 17 == 3 else f"{v:.3f}" for k, v in enumerate(weight)],
        "colour": colour.tolist(),
        "fragile": [str(f).lower() for f in fragile],
        "verdict": ["keep" if g else "return" for g in good],
        "vendor": vendor.tolist(),
    }
    return rows


def write_csv(path, columns, encoding="utf-8", order=None):
    lines = list(zip(*columns.values(), strict=True))
    if order is not None:
        lines = [lines[i] for i in order]
    with open(path, "w", newline="", encoding=encoding) as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(lines)
    return path


TOLD = ("--label", "verdict", "--source", "vendor", "--reference", "gold")
