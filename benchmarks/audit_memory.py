"""Peak memory of ``sourcewise fit`` and ``sourcewise audit`` on a large Parquet file.

The bar: at most 4 times the table's size in memory (rows times columns times 8 bytes), for a
million rows, 50 columns and 200 sources.

    python -m benchmarks.audit_memory [--rows 1000000] [--sources 200] [--command fit audit]
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import parquet

TRUSTED, CHUNK = 2_000, 50_000


def write_table(path: Path, rows: int, columns: int, sources: int, dtype: str) -> int:
    """Write a table a row group at a time; a fifth of the sources have random labels."""
    rng = np.random.default_rng(0)
    truth = rng.normal(size=columns) / np.sqrt(columns)
    names = np.array(["gold", *(f"site-{k:03d}" for k in range(1, sources))])
    writer, size = None, 0
    for low in range(0, rows, CHUNK):
        n = min(CHUNK, rows - low)
        X = rng.normal(size=(n, columns)).astype(dtype)
        who = rng.integers(1, sources, n)
        who[: max(1, round(TRUSTED * n / rows))] = 0
        y = (X @ truth + 0.5 * rng.normal(size=n) > 0).astype(np.int64)
        bad = who > 0.8 * sources
        y[bad] = rng.integers(0, 2, bad.sum())
        table = pa.table(
            {
                **{f"x{j:02d}": X[:, j] for j in range(columns)},
                "label": y,
                "site": pa.array(names[who]).dictionary_encode(),
            }
        )
        writer = writer or parquet.ParquetWriter(path, table.schema)
        writer.write_table(table)
        size += X.nbytes
    assert writer is not None
    writer.close()
    return size


def run(command: list[str]) -> tuple[float, float]:
    """Seconds, and peak resident megabytes, of one command."""
    began = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"{command} failed with status {status}.")
    return time.perf_counter() - began, usage.ru_maxrss / 1e3


def main() -> None:
    """Print a line for each command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--columns", type=int, default=50)
    parser.add_argument("--sources", type=int, default=200)
    parser.add_argument("--dtype", choices=["float64", "float32"], default="float64")
    parser.add_argument("--command", nargs="+", choices=["fit", "audit"], default=["fit", "audit"])
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder, "data.parquet")
        size = write_table(data, asked.rows, asked.columns, asked.sources, asked.dtype) / 1e6
        print(f"table: {size:.0f} MB in memory ({asked.rows} x {asked.columns}, {asked.dtype})")
        start = [sys.executable, "-m", "sourcewise.cli"]
        idle = run([*start, "--version"])[1]
        print(f"the command itself: {idle:.0f} MB")
        for name, output in (("fit", "model.skops"), ("audit", "report.html")):
            if name in asked.command:
                told = ["--label", "label", "--source", "site", "--reference", "gold"]
                seconds, peak = run([*start, name, str(data), *told, "-o", f"{folder}/{output}"])
                print(f"{name}: {seconds:.0f} s, peak {peak:.0f} MB, {peak / size:.2f} x the table")


if __name__ == "__main__":
    main()
