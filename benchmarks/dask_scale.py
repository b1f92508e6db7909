"""What a fit on a Dask cluster costs, beside the same fit in memory.

``python -m benchmarks.dask_scale`` fits 1,000 and 10,000 sources of 100 rows x 50 features on two
workers of one thread each (100,000 with ``--sources 100000``: 4 GB of rows, take an hour) and
prints CPU seconds of workers and client, the largest memory that a worker and the client ever had,
rows a second, and the slope on log-log axes. Every fit runs in processes of its own. ``--quick``
fits 300 and 1,000.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

ROWS, FEATURES, TRUSTED = 100, 50, 200
PER_FILE = 100  # sources
WORKERS = 2
BAD = 0.4


def write_sources(folder: Path, n_sources: int) -> None:
    """Write sources of two classes, of which some have shuffled and some flipped labels."""
    import pyarrow as pa
    from pyarrow import parquet

    w = np.random.default_rng(0).normal(size=FEATURES) * 2.0 / np.sqrt(FEATURES)
    for k, low in enumerate(range(0, n_sources, PER_FILE)):
        names, parts = [], []
        if low == 0:
            names.append("gold")
            parts.append(some_rows(w, TRUSTED, "good", 0))
        for i in range(low, min(low + PER_FILE, n_sources)):
            rng = np.random.default_rng([1, i])
            kind = rng.choice(["shuffled", "flipped"]) if rng.random() < BAD else "good"
            names.append(f"source-{i}")
            parts.append(some_rows(w, ROWS, kind, i + 1))
        counts = [len(y) for _, y in parts]
        X = np.concatenate([X for X, _ in parts])
        columns = {f"x{j}": X[:, j] for j in range(FEATURES)}
        columns["y"] = np.concatenate([y for _, y in parts])
        columns["vendor"] = np.repeat(names, counts)
        parquet.write_table(pa.table(columns), folder / f"part-{k}.parquet")


def some_rows(w: np.ndarray, n: int, kind: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of one source."""
    rng = np.random.default_rng([2, seed])
    X = rng.normal(size=(n, FEATURES)) * np.linspace(0.5, 1.5, FEATURES)
    y = (rng.random(n) < 1.0 / (1.0 + np.exp(-X @ w))).astype(int)
    if kind == "shuffled":
        y = rng.integers(0, 2, n)
    elif kind == "flipped":
        y = np.where(rng.random(n) < 0.8, 1 - y, y)
    return X, y


def peak_memory() -> float:
    """Largest memory that this process ever had, in MB."""
    status = Path("/proc/self/status").read_text()
    return float(status.split("VmHWM:")[1].split()[0]) / 1024.0


def used() -> tuple[float, float]:
    """CPU seconds and peak memory of this process."""
    return time.process_time(), peak_memory()


def fit_in_memory(folder: Path) -> dict[str, Any]:
    """Read everything, and fit."""
    import pyarrow.dataset

    import sourcewise as sw
    from sourcewise.files import natural

    files = sorted(map(str, folder.glob("*.parquet")), key=lambda name: natural([name]))
    start, began = time.process_time(), time.monotonic()
    table = pyarrow.dataset.dataset(files).to_table()
    X = np.column_stack([table.column(f"x{j}").to_numpy() for j in range(FEATURES)])
    y, vendor = table.column("y").to_numpy(), table.column("vendor").to_numpy()
    del table
    model = sw.SourceWeightedClassifier(reference="gold", random_state=0, keep_data=False)
    model.fit(X, y, sources=vendor)
    return {
        "cpu": time.process_time() - start,
        "wall": time.monotonic() - began,
        "client_memory": peak_memory(),
        "weights": model.source_weights_.tolist(),
        "coef": model.coef_.ravel().tolist(),
    }


def fit_on_cluster(folder: Path, limit: str) -> dict[str, Any]:
    """Fit on workers of this machine."""
    import sourcewise as sw
    from sourcewise.engines import DaskSources
    from sourcewise.engines.dask.cluster import local_cluster

    with local_cluster(WORKERS, limit) as client:
        client.run(used)
        before = client.run(used)
        start, began = time.process_time(), time.monotonic()
        sources = DaskSources(folder, label="y", source="vendor", client=client)
        model = sw.SourceWeightedClassifier(reference="gold", random_state=0, keep_data=False)
        model.fit_sources(sources)
        after = client.run(used)
        workers = sum(after[one][0] - before[one][0] for one in after)
        own = time.process_time() - start
        return {
            "cpu": workers + own,
            "workers_cpu": workers,
            "client_cpu": own,
            "wall": time.monotonic() - began,
            "tasks": sources.runner.tasks,
            "worker_memory": max(memory for _, memory in after.values()),
            "client_memory": peak_memory(),
            "weights": model.source_weights_.tolist(),
            "coef": model.coef_.ravel().tolist(),
        }


def measure(how: str, folder: Path, limit: str) -> dict[str, Any]:
    """Run one fit in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.dask_scale", "--one", how, str(folder)]
    done = subprocess.run(
        [*command, "--limit", limit], check=True, stdout=subprocess.PIPE, text=True
    ).stdout
    result: dict[str, Any] = json.loads(done.splitlines()[-1])
    return result


def line(n: int, how: str, found: dict[str, Any], base: dict[str, Any] | None) -> str:
    """Lay one fit out."""
    rows = n * ROWS
    worker = f"{found['worker_memory']:.0f}" if "worker_memory" in found else ""
    split = (
        f"{found['workers_cpu']:.1f} + {found['client_cpu']:.1f}" if "workers_cpu" in found else ""
    )
    ratio, gap = "", ""
    if base is not None and found is not base:
        ratio = f"{found['cpu'] / base['cpu']:.2f}"
        gap = f"{np.abs(np.subtract(found['weights'], base['weights'])).max():.0e}"
        gap += f" / {np.abs(np.subtract(found['coef'], base['coef'])).max():.0e}"
    return (
        f"| {n:,} | {how} | {found['cpu']:.1f} | {split} | {ratio} | {rows / found['cpu']:,.0f} "
        f"| {worker} | {found['client_memory']:.0f} | {found.get('tasks', '')} | {gap} |"
    )


HEAD = (
    "| sources | where | CPU s | workers + client | times memory | rows a CPU second | "
    "peak MB of a worker | of the client | tasks | weights / coefficients differ by |\n"
    "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"
)


def main(arguments: list[str] | None = None) -> int:
    """Measure all sizes."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sources", type=int, nargs="+", default=[1_000, 10_000])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--limit", default="1GiB", help="memory limit of a worker")
    parser.add_argument("--most-in-memory", type=int, default=20_000)
    parser.add_argument("--one", nargs=2, metavar=("HOW", "FOLDER"), help=argparse.SUPPRESS)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args(arguments)
    if given.one:
        how, folder = given.one[0], Path(given.one[1])
        found = fit_in_memory(folder) if how == "memory" else fit_on_cluster(folder, given.limit)
        print(json.dumps(found))
        return 0
    sizes = [300, 1_000] if given.quick else given.sources
    results: dict[int, dict[str, Any]] = {}
    print(HEAD, flush=True)
    for n in sizes:
        with tempfile.TemporaryDirectory() as folder:
            write_sources(Path(folder), n)
            results[n] = {}
            for how in ["memory"] * (n <= given.most_in_memory) + ["cluster"]:
                results[n][how] = measure(how, Path(folder), given.limit)
                shown = line(n, how, results[n][how], results[n].get("memory"))
                print(shown, flush=True)
    if len(sizes) > 1:
        cpu = [results[n]["cluster"]["cpu"] for n in sizes]
        slope = np.polyfit(np.log(sizes), np.log(cpu), 1)[0]
        print(f"\nSlope of the cluster's CPU time with the sources: {slope:.2f}")
    if given.json is not None:
        for found in (one for pair in results.values() for one in pair.values()):
            del found["weights"], found["coef"]
        given.json.write_text(json.dumps(results, indent=2))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
