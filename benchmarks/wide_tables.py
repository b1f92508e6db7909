"""How long wide tables take to read, beside what Arrow needs for the same bytes.

Run with ``python -m benchmarks.wide_tables``: CPU seconds of one process, and their ratio.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import csv, parquet

from sourcewise.tables.request import TableRequest
from sourcewise.tables.training import read_training

ROWS = 100
# Beyond this, Arrow's reader of whole Parquet files needs 10 GB and more: memory with the square of
# the columns, which ours does not.
MOST_OF_ARROW = {"csv": 100_000, "parquet": 20_000}


def make(columns: int, folder: Path) -> dict[str, Path]:
    """Write one table of noise as CSV and as Parquet."""
    rng = np.random.default_rng(0)
    numbers = {f"c{j}": rng.normal(size=ROWS).round(4) for j in range(columns)}
    table = pa.table(
        {
            **numbers,
            "y": rng.choice(["no", "yes"], ROWS),
            "who": np.repeat(["gold", "other"], ROWS // 2),
        }
    )
    paths = {"csv": folder / "wide.csv", "parquet": folder / "wide.parquet"}
    csv.write_csv(table, paths["csv"])
    parquet.write_table(table, paths["parquet"])
    return paths


def seconds(task) -> float:
    """CPU seconds of all threads, the better of two."""
    took = []
    for _ in range(2):
        before = time.process_time()
        task()
        took.append(time.process_time() - before)
    return min(took)


def main() -> None:
    """Print a line for each width and kind of file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--columns", type=int, nargs="+", default=[2_000, 10_000, 50_000, 100_000])
    widths = parser.parse_args().columns
    print(f"{'columns':>8}  {'file':<8}{'Arrow':>8}{'ours':>8}{'ratio':>7}")
    for columns in widths:
        with tempfile.TemporaryDirectory() as folder:
            for kind, path in make(columns, Path(folder)).items():
                read = csv.read_csv if kind == "csv" else parquet.read_table
                arrow = float("nan")
                if columns <= MOST_OF_ARROW[kind]:
                    arrow = seconds(lambda read=read, path=path: read(path))
                ours = seconds(
                    lambda path=path: read_training(TableRequest(path, "y", "who", "gold"))
                )
                print(f"{columns:>8}  {kind:<8}{arrow:>8.2f}{ours:>8.2f}{ours / arrow:>7.1f}")


if __name__ == "__main__":
    main()
