"""Peak memory of a fit, as the operating system sees it, in a process of its own.

``python -m benchmarks.memory --case NAME`` makes the pool of one line of ``benchmarks.training``,
fits it in a fresh process, and prints megabytes and sizes of the input as JSON. Python's own
account (tracemalloc) misses what the linear algebra libraries allocate.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse  # noqa: E402
import json
import resource
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import scipy.sparse

from benchmarks.cases import CASES, Case, fit
from benchmarks.shapes import Pool, class_pool, regression_pool

STATUS = Path("/proc/self/status")
PARTS = ("data", "indices", "indptr")  # of a sparse X
# Below this the memory is that of a few hundred models and of libraries, not of the rows.
COMPARABLE_MEGABYTES = 10.0


def peak_memory(case: Case, pool: Pool) -> dict[str, float]:
    """Megabytes at the peak of a fit: of the process, and in sizes of the input.

    The input itself counts. The process is a fresh one, and reads the pool from files: making it
    would leave memory behind that the fit could use unseen.
    """
    with tempfile.TemporaryDirectory() as folder:
        write_pool(pool, Path(folder))
        command = [sys.executable, "-m", "benchmarks.memory", "--case", case.name]
        command += ["--pool", folder]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return dict(json.loads(done.stdout))


def write_pool(pool: Pool, folder: Path) -> None:
    """Write arrays into a folder, one file each."""
    arrays = {"y": pool.y, "sources": pool.sources, "weights": pool.weights}
    if scipy.sparse.issparse(pool.X):
        arrays |= {name: getattr(pool.X, name) for name in PARTS}
        arrays["shape"] = np.array(pool.X.shape)
    else:
        arrays["X"] = pool.X
    for name, array in arrays.items():
        if array is not None:
            np.save(folder / f"{name}.npy", array)


def read_pool(folder: Path) -> Pool:
    """Read what `write_pool` wrote, without any temporary copy."""
    arrays = {path.stem: np.load(path) for path in folder.glob("*.npy")}
    if "X" not in arrays:
        parts = tuple(arrays[name] for name in PARTS)
        arrays["X"] = scipy.sparse.csr_matrix(parts, shape=tuple(arrays["shape"]), copy=False)
    return Pool(arrays["X"], arrays["y"], arrays["sources"], arrays.get("weights"))


def peak_bytes() -> int:
    """Most memory that this process has held so far.

    Linux tells it of the program alone; ``getrusage`` includes the process that started it.
    """
    if STATUS.exists():
        (line,) = (text for text in STATUS.read_text().splitlines() if text.startswith("VmHWM"))
        return 1024 * int(line.split()[1])
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else 1024 * most


def warm_up(case: Case) -> None:
    """Fit a few made-up rows, so that libraries are loaded."""
    few = regression_pool(3, 60, 6, 1) if case.regression else class_pool(3, 60, 6, 3, 1)
    fit(case.model(), few)


def measure(case: Case, pool: Pool) -> dict[str, float]:
    """Fit in this process and say by how much its peak grew."""
    warm_up(case)
    before = peak_bytes()
    case.work(pool)()
    peak = peak_bytes()
    return {"megabytes": peak / 1e6, "multiple": 1.0 + (peak - before) / pool.nbytes}


def main(arguments: Sequence[str] | None = None) -> None:
    """Print what one fit needs."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.memory", description=__doc__)
    parser.add_argument(
        "--case",
        required=True,
        metavar="NAME",
        help="a line of the table; `python -m benchmarks.training --list` prints them",
    )
    parser.add_argument(
        "--pool",
        type=Path,
        metavar="FOLDER",
        help="fit the rows of this folder in this process, as a measurement does",
    )
    options = parser.parse_args(arguments)
    case = next((case for case in CASES if case.name == options.case), None)
    if case is None:
        parser.error(f"no line is named {options.case!r}; `benchmarks.training --list` prints all.")
    if options.pool is None:
        print(json.dumps(peak_memory(case, case.pool())))
    else:
        print(json.dumps(measure(case, read_pool(options.pool))))


if __name__ == "__main__":
    main()
