"""``python -m benchmarks.accuracy``: run the benchmark, print and write what it says."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import pandas as pd

from benchmarks.accuracy import plots, report
from benchmarks.accuracy.data import DATA_SETS
from benchmarks.accuracy.runner import available, execute, plan, quick_plan, variants_plan


def main() -> None:
    """Parse, run, report."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.accuracy", description=__doc__)
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--quick", action="store_true", help="every 23rd run: ten minutes")
    which.add_argument(
        "--variants",
        action="store_true",
        help="the default with one part changed, on the development half of the grid",
    )
    parser.add_argument("--seeds", type=int, default=20, help="draws of every cell (20)")
    parser.add_argument("--jobs", type=int, default=2, help="processes (2)")
    parser.add_argument("--only", nargs="+", metavar="DATA", help="names of data sets")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), metavar="FOLDER")
    parser.add_argument("--results", type=Path, default=Path("bench-results/accuracy"))
    parser.add_argument("--report", action="store_true", help="run nothing, read what is there")
    options = parser.parse_args()
    name, planned = "runs", plan
    if options.quick:
        name, planned = "quick", quick_plan
    elif options.variants:
        name, planned = "variants", variants_plan
    path = options.results / f"{name}.parquet"
    if options.report:
        if not path.exists():
            parser.error(f"there are no results at {path}.")
        results = pd.read_parquet(path)
    else:
        wanted = [data for data in DATA_SETS if not options.only or data.name in options.only]
        if not wanted:
            names = ", ".join(repr(data.name) for data in DATA_SETS)
            parser.error(f"--only knows the data sets {names}.")
        there, missing = available(wanted, options.data)
        print(*missing, sep="\n", end="\n" if missing else "")
        begin = time.monotonic()
        runs = planned(there, range(options.seeds))
        results = execute(runs, path, options.data, jobs=options.jobs, variants=options.variants)
        minutes = (time.monotonic() - begin) / 60
        print(f"This took {minutes:.0f} minutes with {options.jobs} processes.\n")
    if options.variants:
        print(report.methods_table(results))
        return
    print(report.overview(results))
    write(results, options.results)


def write(results: pd.DataFrame, folder: Path) -> None:
    """Write the overview, a table for every data set, and the two plots."""
    (folder / "overview.md").write_text(report.overview(results))
    for name, table in report.cell_tables(results):
        (folder / f"{name.replace(', ', '-').replace(' ', '-')}.md").write_text(table)
    plots.heat_map(results, folder / "heat-map.png")
    plots.regret_plot(results, folder / "regret.png")
    print(f"Tables and plots are in {folder}.")


if __name__ == "__main__":
    main()
