"""``python -m benchmarks.accuracy``: run the benchmark, print and write what it says."""

from __future__ import annotations

import argparse
import hashlib
import time
from functools import partial
from pathlib import Path

import pandas as pd

from benchmarks.accuracy import plots, report
from benchmarks.accuracy.data import DATA_SETS, DataSet
from benchmarks.accuracy.methods import run_simple_choices, run_variants
from benchmarks.accuracy.runner import (
    available,
    code_fingerprint,
    execute,
    extremes_plan,
    plan,
    quick_plan,
    read,
    variants_plan,
    without_too_small,
)
from benchmarks.accuracy.text import GROUP, TEXT_SETS
from benchmarks.accuracy.variants import constants, half_and_double
from sourcewise.runs import WorkerGone

NAMES = [data.name for data in (*DATA_SETS, *TEXT_SETS)]
SEEDS = 20
# Differences from the simple choices are asked for to half a percent there, and have a standard
# error of that size with 20 draws.
EXTREME_SEEDS = 60
LONGEST_NAME = 100


def main(arguments: list[str] | None = None) -> None:
    """Parse, run, report."""
    parser = _parser()
    options = parser.parse_args(arguments)
    for name in options.only or []:
        if name not in (*NAMES, GROUP):
            known = ", ".join(map(repr, (*NAMES, GROUP)))
            parser.error(f"there is no data set {name!r}; --only knows {known}.")
    if (options.seeds is not None and options.seeds < 1) or min(options.jobs, options.every) < 1:
        parser.error("--seeds, --jobs and --every are at least 1.")
    name, planned, fit_and_judge = "runs", plan, None
    if options.quick:
        name, planned = "quick", quick_plan
    elif options.variants is not None:
        if unknown := [choice for choice in options.variants if choice not in constants()]:
            parser.error(
                f"there is no choice {unknown[0]!r}; --variants knows {', '.join(constants())}."
            )
        name, planned, fit_and_judge = "variants", variants_plan, run_variants
        if options.variants:
            name = "-".join(["variants", *options.variants])
            if len(name) > LONGEST_NAME:
                digest = hashlib.sha256(name.encode()).hexdigest()[:12]
                name = f"variants-{len(options.variants)}-{digest}"
            fit_and_judge = partial(run_variants, variants=half_and_double(options.variants))
    elif options.extremes:
        name, planned, fit_and_judge = "extremes", extremes_plan, run_simple_choices
    seeds = options.seeds or (EXTREME_SEEDS if options.extremes else SEEDS)
    wanted = chosen_sets(options.only)
    if set(wanted) <= set(TEXT_SETS):
        name = f"{GROUP}-{name}"  # a file of its own: not part of what is published
    path = options.results / f"{name}.parquet"
    if options.report:
        if not path.exists():
            parser.error(f"there are no results at {path}.")
        results = read(path)
        if set(results["code"]) != {code_fingerprint()}:
            print("These results were computed by other code than the present.\n")
    else:
        there, missing = available(wanted, options.data)
        print(*missing, sep="\n", end="\n" if missing else "")
        runs = planned(there, range(seeds))[:: options.every]
        runs, too_small = without_too_small(runs, options.data)
        print(*too_small, sep="\n", end="\n" if too_small else "")
        if not runs:
            parser.error("nothing is left to run of these data sets and seeds.")
        begin = time.monotonic()
        try:
            results = execute(
                runs, path, options.data, jobs=options.jobs, fit_and_judge=fit_and_judge
            )
        except KeyboardInterrupt:
            raise SystemExit("\nStopped. The same command continues where this one was.") from None
        except WorkerGone as gone:
            raise SystemExit(str(gone)) from None
        except OSError as error:
            raise SystemExit(f"Results cannot be written to {path}: {error}.") from error
        minutes = (time.monotonic() - begin) / 60
        print(f"This took {minutes:.1f} minutes with {options.jobs} processes.\n")
    results = results[results["data"].isin([data.name for data in wanted])]
    if not len(results):
        parser.error(f"{path} holds nothing of these data sets.")
    results, cannot = report.refusals(results)
    if cannot:
        print("## Methods that cannot\n", cannot, sep="\n")
    if not report.can_be_compared(results) and cannot:
        print(report.errors_table(results) if len(results) else "No method can.")
        return
    if options.variants is not None:
        print(report.methods_table(results))
        return
    if options.extremes:
        print(report.extremes(results))
        return
    print(report.overview(results))
    write(results, options.results / name)


def chosen_sets(only: list[str] | None) -> list[DataSet]:
    """Return the data sets of these names; without names all but text."""
    if not only:
        return list(DATA_SETS)
    text = [data for data in TEXT_SETS if GROUP in only or data.name in only]
    return [data for data in DATA_SETS if data.name in only] + text


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.accuracy", description=__doc__)
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--quick",
        action="store_true",
        help="every 14th run (ten classes: every 61st): ten minutes",
    )
    which.add_argument(
        "--variants",
        nargs="*",
        metavar="CHOICE",
        help="the default with one part changed, on the development half of the grid; with names "
        "of choices, half and double of each",
    )
    which.add_argument(
        "--extremes",
        action="store_true",
        help="more draws of the cells in which no source or every source is bad",
    )
    parser.add_argument(
        "--seeds",
        type=int,
        help=f"draws of every cell ({SEEDS}; with --extremes {EXTREME_SEEDS})",
    )
    parser.add_argument("--every", type=int, default=1, help="take every so manieth run only (1)")
    parser.add_argument("--jobs", type=int, default=2, help="processes (2)")
    parser.add_argument(
        "--only",
        nargs="+",
        metavar="DATA",
        help=f"names of data sets, or {GROUP!r}: sparse text, which is not run otherwise",
    )
    parser.add_argument(
        "--data",
        type=Path,
        default=Path("../shared/data"),
        metavar="FOLDER",
        help="where awa1, fdu-mtl and heart-hospitals are (../shared/data)",
    )
    parser.add_argument(
        "--results",
        type=Path,
        default=Path("bench-results/accuracy"),
        metavar="FOLDER",
        help="where results, tables and plots go (bench-results/accuracy)",
    )
    parser.add_argument("--report", action="store_true", help="run nothing, read what is there")
    return parser


def write(results: pd.DataFrame, folder: Path) -> None:
    """Write the overview, a table for every data set, and the two plots."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "overview.md").write_text(report.overview(results))
    for name, table in report.cell_tables(results):
        (folder / f"{name.replace(', ', '-').replace(' ', '-')}.md").write_text(table)
    plots.heat_map(results, folder / "heat-map.png")
    plots.regret_plot(results, folder / "regret.png")
    print(f"Tables and plots are in {folder}.")


if __name__ == "__main__":
    main()
