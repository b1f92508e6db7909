"""``python -m benchmarks.any_model``: run the benchmark and print what it says; resumable."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from benchmarks.accuracy.data import Absent
from benchmarks.any_model.growth import growth
from benchmarks.any_model.report import report
from benchmarks.any_model.runs import FIRST_SEED, measure, plan

QUICK = 24  # runs of each half


def main(arguments: list[str] | None = None) -> None:
    """Parse, run what is not there yet, report."""
    options = _parser().parse_args(arguments)
    if options.growth:
        print(growth(options.trees))
        return
    options.results.mkdir(parents=True, exist_ok=True)
    for half in [options.half] if options.half else FIRST_SEED:
        path = options.results / f"{half}.jsonl"
        if not options.report:
            runs = plan(half, options.seeds)[: QUICK if options.quick else options.runs]
            _execute(runs, path, options)
        print(f"\n## {half}\n")
        print(report(read(path)))


def _execute(runs: list[Any], path: Path, options: Any) -> None:
    there = {json.dumps(_key(row, runs[0].key)) for row in read(path)}
    left = [run for run in runs if json.dumps(run.key) not in there]
    print(f"{path}: {len(runs) - len(left)} runs are there, {len(left)} are to do.", flush=True)
    absent: set[str] = set()
    for k, run in enumerate(left):
        if run.cell.data in absent or json.dumps(run.key) in there:
            continue
        try:
            row = measure(run, options.data, options.trees)
        except Absent as error:
            absent.add(run.cell.data)
            print(f"{run.cell.data} is left out: {error}.", flush=True)
            continue
        there.add(json.dumps(run.key))
        with path.open("a") as file:
            file.write(json.dumps(row) + "\n")
        print(f"{k + 1} of {len(left)}", end="\r", flush=True)


def _key(row: dict[str, Any], like: dict[str, Any]) -> dict[str, Any]:
    return {name: row[name] for name in like}


def read(path: Path) -> list[dict[str, Any]]:
    """Results so far; a line that was cut short is passed over."""
    rows = []
    for line in path.read_text().splitlines() if path.exists() else ():
        try:
            rows.append(json.loads(line))
        except ValueError:
            continue
    return rows


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.any_model", description=__doc__)
    parser.add_argument("--quick", action="store_true", help=f"{QUICK} runs of each half")
    parser.add_argument("--half", choices=list(FIRST_SEED), help="one half only")
    parser.add_argument("--seeds", type=int, default=1, help="draws of every cell (1)")
    parser.add_argument("--runs", type=int, help="at most so many runs of each half")
    parser.add_argument("--trees", type=int, default=30, help="trees, or rounds of boosting (30)")
    parser.add_argument("--growth", action="store_true", help="cost by number of sources, instead")
    parser.add_argument("--report", action="store_true", help="run nothing, read what is there")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), metavar="FOLDER")
    parser.add_argument(
        "--results", type=Path, default=Path("bench-results/any_model"), metavar="FOLDER"
    )
    return parser


if __name__ == "__main__":
    main()
